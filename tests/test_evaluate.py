import numpy as np
import pytest

from fastpong.config import make_config
from fastpong.evaluate import evaluate, summarise
from fastpong.noise import EVALUATION, stream_key
from fastpong.policy import make_policy
from fastpong.pong import PongGames


def test_whole_games_with_a_fixed_share_for_each_place() -> None:
    config = make_config("fast", {"hidden": 16, "seed": 4})
    weights = make_policy(config).state()
    result = evaluate(config, weights, 5, seed=1, workers=2)
    assert result.games == len(result.scores) == 5
    assert result.mean == pytest.approx(np.mean(result.scores))
    assert all(-21 <= score <= 21 and score != 0 for score in result.scores)
    assert result.steps >= 5 * 700
    assert evaluate(config, weights, 5, seed=1, workers=1) == result


def test_a_game_is_scored_to_its_last_point() -> None:
    """Against a plain loop over one game with the same noise, played by an agent that always goes up."""
    config = make_config("fast", {"hidden": 16})
    policy = make_policy(config)
    policy.weights[:] = 0.0
    policy.arrays["w2"][0, -1] = 5.0  # the bias of "up"
    games = PongGames([0], seed=stream_key(9, EVALUATION) >> 1, actions=3)
    games.reset()
    score, steps, over = 0, 0, False
    while not over:
        observation = games.step(np.array([0]))[0]
        score += int(observation["rewards"][0])
        steps += 1
        over = bool(observation["ended"][0])
    result = evaluate(config, policy.state(), 1, seed=9)
    assert (result.scores, result.steps) == ((score,), steps)


def test_the_confidence_interval() -> None:
    result = summarise([21, 19, 20, -3], 100)
    assert result.mean == 14.25 and result.wins == 3
    half = 1.96 * np.std([21, 19, 20, -3], ddof=1) / 2
    assert result.ci95_low == pytest.approx(14.25 - half)
    assert result.ci95_high == pytest.approx(14.25 + half)
    assert set(result.summary()) == {"games", "mean", "ci95_low", "ci95_high", "wins", "steps"}
