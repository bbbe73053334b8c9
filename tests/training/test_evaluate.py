"""Whole games, and the best weights of a run: those that play best, not those of the luckiest window."""

from pathlib import Path

import numpy as np
import pytest

from fastpong.config import changed, make_config
from fastpong.envs.base import LocalEnvs
from fastpong.errors import UsageError
from fastpong.noise import EVALUATION, stream_key
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import load
from fastpong.runs.facts import Facts
from fastpong.runs.find import load_weights
from fastpong.runs.folder import RunFolder
from fastpong.training.evaluate import choose_best, evaluate, summarise
from tests.support.candidates import add_candidate, one_action
from tests.support.envs import step


def test_whole_games_with_a_fixed_share_for_each_env() -> None:
    config = make_config("fast", {"seed": 4})
    weights = make_policy(config).weights.arrays
    result = evaluate(config, weights, 5, seed=1, workers=2)
    assert result.games == len(result.scores) == 5
    assert result.mean == pytest.approx(np.mean(result.scores))
    assert all(-21 <= score <= 21 and score != 0 for score in result.scores)
    assert result.steps >= 5 * 700
    assert evaluate(config, weights, 5, seed=1, workers=1) == result


def test_a_game_is_scored_to_its_last_point() -> None:
    """Against a plain loop over one game with the same noise, played by an agent that always goes up."""
    config = make_config("fast")
    game = LocalEnvs(seed=stream_key(9, EVALUATION) >> 1)
    game.reset()
    score, steps, over = 0, 0, False
    while not over:
        step(game, np.zeros(1))
        score += int(game.rewards[0])
        steps += 1
        over = bool(game.ended[0])
    result = evaluate(config, one_action(config, 0), 1, seed=9)
    assert (result.scores, result.steps) == ((score,), steps)


def test_the_confidence_interval() -> None:
    scores = np.random.default_rng(0).integers(10, 22, 400).tolist()
    result = summarise(scores, [100] * 400)
    half = 1.96 * np.std(scores, ddof=1) / 20  # of many games it is the normal one
    assert result.mean == np.mean(scores) and result.wins == 400
    assert result.ci95_low == pytest.approx(result.mean - half, abs=0.03)
    assert result.ci95_high == pytest.approx(result.mean + half, abs=0.03)
    assert summarise([21, 21, 20, 21, 21] * 2, [1] * 10).ci95_high == 21  # none is beyond what a game can bring
    assert summarise([21, 19, 20, -3], [9] * 4).wins == 3 and summarise([5] * 9, [1] * 9).ci95_low is None
    assert set(result.summary()) == {"games", "mean", "ci95_low", "ci95_high", "wins", "steps"}


def test_the_candidate_that_plays_best_becomes_best(tmp_path: Path) -> None:
    shipped, weights = load_weights(None)
    config = changed(shipped, {"eval_games": 1})
    run = RunFolder(tmp_path / "run")
    run.create(config, {})
    arrays = {f"policy.{name}": array for name, array in weights.items()}
    run.add_candidate(arrays, Facts(config, 100, score=-3.0))
    assert choose_best(config, run, 1, print) is None, "one candidate is no choice"
    add_candidate(config, run, 200, 20.0, action=1)  # luckier in training
    assert choose_best(changed(config, {"eval_games": 0}), run, 1, print) is None
    with pytest.raises(UsageError, match="workers must be an integer, 1 or more"):  # as many as asked for play
        choose_best(config, run, -1, print)
    facts = choose_best(config, run, 1, print)
    assert facts is not None
    good, bad = facts["candidates"]
    assert (good["steps"], bad["steps"]) == (100, 200) and good["mean"] > 10 > -10 > bad["mean"]
    assert facts["steps"] == 100 and facts["games"] == 2 and 10 < facts["mean"] <= 21
    best, about = load(run.best)
    assert about["steps"] == 100 and about["evaluation"] == facts
    np.testing.assert_array_equal(best["policy.w2"], weights["w2"])
    assert choose_best(config, run, 1, print) is None, "they have played"
    run.candidates()[0].unlink()  # whose games are the long ones
    add_candidate(config, run, 300, 1.0, action=1)
    facts = choose_best(config, run, 1, print)
    assert facts is not None and [one["steps"] for one in facts["candidates"]] == [200, 300]


def test_a_damaged_candidate_does_not_take_part(tmp_path: Path) -> None:
    config = make_config("fast", {"eval_games": 1})
    run = RunFolder(tmp_path / "run")
    run.create(config, {})
    for steps in (100, 200):
        add_candidate(config, run, steps, 0.0, action=0)
    run.candidates()[0].write_bytes(b"half a file")
    notes: list[str] = []
    assert choose_best(config, run, 1, notes.append) is None
    assert len(notes) == 1 and "does not take part" in notes[0]
