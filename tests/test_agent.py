"""The agent that ships with the package."""

from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest

from fastpong.agent import Agent
from fastpong.agent import load as load_agent
from fastpong.commands.play import Match
from fastpong.config import make_config
from fastpong.envs.base import LocalEnvs
from fastpong.envs.engine import SAVED_IMAGES
from fastpong.errors import UsageError
from fastpong.policy import make_policy
from fastpong.pong import COLOURS
from fastpong.runs.checkpoint import load
from fastpong.runs.find import SHIPPED, load_weights
from fastpong.training.actor import Actor
from fastpong.training.evaluate import evaluation_config

COLOUR_TABLE = np.zeros((256, 3), np.uint8)
COLOUR_TABLE[list(COLOURS)] = list(COLOURS.values())


def test_it_is_small_and_tells_how_it_was_trained() -> None:
    assert SHIPPED.stat().st_size < 6e6
    _, about = load(SHIPPED)
    # Its config.toml, or where the settings of the version that made it stand.
    assert "[about]" in about.get("trained_with", "") or "commit" in about.get("made_by", "")
    assert about["steps"] > 0
    config, weights = load_weights(None)
    assert {name: array.shape for name, array in weights.items()} == make_policy(config).weights.shapes
    assert all(np.isfinite(array).all() for array in weights.values())


def test_it_wins_a_game_with_sticky_actions() -> None:
    match = Match(load_agent(), 123)
    for _ in match.pictures():
        pass
    assert match.score[0] == 21


@pytest.fixture(scope="module")
def shipped() -> Agent:
    return load_agent()


def test_it_acts_as_the_kernels_do(shipped: Agent) -> None:
    """Screen by screen of games that the kernels play, in palette and in colour, with each output within rounding."""
    config = evaluation_config(shipped.config, 3, 0)
    envs = LocalEnvs.of(config, range(3), images=SAVED_IMAGES)
    policy = make_policy(config)
    policy.weights.load(shipped.weights)
    actor = Actor(config, envs, policy)
    actor.start()
    in_colour, same, steps = load_agent(), 0, 150
    for step in range(steps):
        envs.recv(0)
        screens = envs.screens.copy()
        probabilities, value = shipped.probabilities(screens), shipped.value(screens)
        actor.step(greedy=True)
        row = actor.rollout.rows - 1
        actions = actor.rollout.arrays.actions[row]
        chosen = shipped.act(screens)
        same += (chosen == np.array([2, 3, 0])[actions]).sum()
        log_probs = np.log(probabilities[np.arange(3), actions])
        np.testing.assert_allclose(log_probs, actor.rollout.arrays.log_probs[row], atol=2e-3)
        np.testing.assert_allclose(value, actor.rollout.arrays.values[row], atol=2e-3)
        if step < 20:
            np.testing.assert_array_equal(in_colour.act(COLOUR_TABLE[screens]), chosen)
        if (chosen != np.array([2, 3, 0])[actions]).any():
            shipped._actions[:, 0] = actions  # a tie; they play the kernels' games
    assert same >= 3 * steps - 3


def test_it_wins_in_gymnasiums_own_pong() -> None:
    """The ALE/Pong-v5 of ale-py, whose screens are in colour: until it is ahead by half of a game."""
    gymnasium.register_envs(ale_py)
    env, agent = gymnasium.make("ALE/Pong-v5"), load_agent()
    screen, _ = env.reset(seed=1)
    score, over = 0.0, False
    while score < 11 and not over:
        screen, reward, over, _, _ = env.step(agent.act(screen))
        score += float(reward)
    assert score == 11


def test_games_are_forgotten_one_by_one(shipped: Agent) -> None:
    agent, screens = load_agent(), np.random.default_rng(0).choice(list(COLOURS), (2, 210, 160)).astype(np.uint8)
    agent.act(screens)
    fresh = agent.probabilities(screens)
    assert fresh.shape == (2, 3)
    agent.reset([True, False])
    first = agent.probabilities(screens)
    agent.reset()
    np.testing.assert_array_equal(first[0], agent.probabilities(screens)[0])
    np.testing.assert_array_equal(first[1], fresh[1])
    assert (first[0] != fresh[0]).any()


def test_what_somebody_else_chose_is_remembered_like_its_own() -> None:
    first, other, screens = load_agent(), load_agent(), np.random.default_rng(0).choice([34, 92], (4, 2, 210, 160))
    for screen in screens.astype(np.uint8):
        actions = first.act(screen)
        other.remember(screen, actions)
        np.testing.assert_array_equal(first.probabilities(screen), other.probabilities(screen))
    other.remember(screens[0].astype(np.uint8), [2, 0])
    assert (first.probabilities(screens[0].astype(np.uint8)) != other.probabilities(screens[0].astype(np.uint8))).any()
    for wrong in (2, [2, 3, 0], [2, 1]):  # 1 is to press the button, which no policy does
        with pytest.raises(UsageError, match="the actions are 2 of"):
            other.remember(screens[0].astype(np.uint8), wrong)


def test_sampled_actions_have_their_probabilities() -> None:
    config = make_config("karpathy", {"hidden_units": 8})
    weights = make_policy(config).weights.arrays
    screens = np.random.default_rng(0).choice([34, 236], (400, 210, 160)).astype(np.uint8)
    agent = Agent(config, weights, sample=True, seed=3)
    agent.act(screens)
    up = agent.probabilities(screens[::-1].copy())[:, 0]
    drawn = (agent.act(screens[::-1].copy()) == 2).sum()
    assert abs(drawn - up.sum()) < 4 * np.sqrt((up * (1 - up)).sum())
    with pytest.raises(UsageError, match="has no value: preset karpathy"):
        agent.value(screens)


@pytest.mark.parametrize(
    "screens", [np.zeros((210, 160)), np.zeros((84, 84), np.uint8), np.zeros((2, 2, 210, 160), np.uint8), None]
)
def test_wrong_screens(screens: Any, shipped: Agent) -> None:
    with pytest.raises(UsageError, match="screens are uint8"):
        shipped.act(screens)


def test_another_number_of_games(shipped: Agent) -> None:
    shipped.reset()
    assert isinstance(shipped.act(np.zeros((210, 160), np.uint8)), int)
    with pytest.raises(UsageError, match="plays 1 games, not 2"):
        shipped.act(np.zeros((2, 210, 160), np.uint8))
    with pytest.raises(UsageError, match="cannot play with a set of 2"):
        load_agent(actions=2)
    for others in ([True, False], [1]):
        with pytest.raises(UsageError, match="the agent plays 1 games: "):
            shipped.reset(others)
