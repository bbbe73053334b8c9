"""The two engines side by side: ale-py is the judge of the console."""

from typing import Any

import numpy as np
import pytest

import fastpong
from fastpong.arrays import U8
from fastpong.config import Config
from fastpong.console.games import Games
from fastpong.console.state import STATE_BYTES
from fastpong.envs import ale
from fastpong.envs.ale import ACTIONS, Ale
from fastpong.envs.base import LocalEnvs
from fastpong.envs.console import Console
from fastpong.envs.engine import IMAGES, Engine
from fastpong.envs.memory import zeros
from fastpong.policy import make_policy
from fastpong.pong import STAY
from fastpong.training.actor import Actor
from fastpong.training.evaluate import evaluation_config

FRAME_SKIP = 4


def check_equal(ours: dict[str, Any], reference: dict[str, Any]) -> None:
    """What two engines show has to be equal. NumPy takes as long to say so as ALE to play: it is asked for a reason."""
    for name in ("rewards", "ended", *IMAGES):
        if ours[name].tobytes() != reference[name].tobytes():
            np.testing.assert_array_equal(ours[name], reference[name], err_msg=name)


class Sides:
    """Both engines, and the arrays of each."""

    def __init__(self, envs: int, frame_skip: int = FRAME_SKIP):
        self.arrays = [zeros(envs, name, IMAGES) for name in (Ale.name, Console.name)]
        self.engines: list[Engine] = [Ale(self.arrays[0], frame_skip), Console(self.arrays[1], frame_skip)]
        self.envs = range(envs)
        for engine in self.engines:
            engine.reset(self.envs)

    def step(self, actions: Any, repeats: Any) -> Any:
        """Take a step on both; everything that they show has to be equal."""
        for engine in self.engines:
            engine.step(self.envs, actions.astype(np.uint8), repeats.astype(np.uint8))
        reference, ours = self.arrays
        check_equal(ours, reference)
        for env in self.envs:
            np.testing.assert_array_equal(self.engines[1].ram(env), self.engines[0].ram(env))
        return ours


def test_random_and_held_actions() -> None:
    """25,000 frames, sticky or not, from reset to the end of games and into the next ones."""
    envs, steps, rng = 4, 25_000 // 4 // FRAME_SKIP, np.random.default_rng(11)
    sides, held, ends = Sides(envs), np.zeros(envs, np.int64), 0
    for step in range(steps):
        fresh = rng.random(envs) < np.where(np.arange(envs) < 2, 1.0, 0.1)  # the first two change at every step
        held[fresh] = rng.integers(0, len(ACTIONS), fresh.sum())
        repeats = np.minimum(rng.geometric(0.75, envs) - 1, FRAME_SKIP) * (np.arange(envs) % 2)
        shown = sides.step(np.where(rng.random(envs) < 0.005, STAY, held), repeats)
        ends += shown["ended"].sum()
        if step == steps // 2:
            sides.engines[1].restore()
    assert ends >= 4


class Both(LocalEnvs):
    """Envs on the console, and the same on ALE beside them: everything that they show has to be equal."""

    def __init__(self, config: Config):
        rules = range(config.num_envs), config.seed, config.frame_skip, config.repeat_action_probability, IMAGES
        super().__init__(*rules, engine="console")
        self._reference = LocalEnvs(*rules, engine="ale")
        self.won = 0  # points

    def reset(self, *, seed: int | None = None) -> None:
        self._reference.reset()
        super().reset()

    def send(self, group: int, actions: U8) -> None:
        super().send(group, actions)
        self._reference.send(group, actions)

    def recv(self, group: int) -> None:
        if not self._message:
            return
        super().recv(group)
        self._reference.recv(group)
        check_equal(self.arrays, self._reference.arrays)
        self.won += int((self.rewards > 0).sum())


@pytest.mark.parametrize(("greedy", "sticky"), [(True, 0.25), (False, 0.25), (False, 0.0)])
def test_learned_actions(greedy: bool, sticky: float) -> None:
    """30,000 frames in all, in which the shipped agent wins points: `bench.exactness` plays whole games, and on."""
    agent, envs = fastpong.load(sticky=sticky), 3
    config = evaluation_config(agent.config, envs, 5)
    policy = make_policy(config)
    policy.weights.load(agent.weights)
    envs_of_both = Both(config)
    actor = Actor(config, envs_of_both, policy)
    actor.start()
    for _ in range(30_000 // 3 // envs // FRAME_SKIP):
        actor.step(greedy)
        actor.rollout.release(actor.rollout.rows - 1)
    assert envs_of_both.won >= 8


@pytest.mark.parametrize("frame_skip", [1, 2, 3, 5])
def test_other_frame_skips(frame_skip: int) -> None:
    rng, sides = np.random.default_rng(frame_skip), Sides(2, frame_skip)
    for _ in range(800 // frame_skip):
        sides.step(rng.integers(0, len(ACTIONS), 2), rng.integers(0, frame_skip + 1, 2))


def test_the_limit_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game is cut off in the same frame, which may be in the middle of a step."""
    limit = 602
    monkeypatch.setattr(ale, "MAX_FRAMES", limit)
    sides = Sides(1)
    arrays = sides.arrays[1]
    given: Any = {name: arrays[name] for name in ("rows", "rewards", "ended", *IMAGES)}
    games = Games(**given, max_frames=limit)
    monkeypatch.setattr(sides.engines[1], "_games", games)
    ends = [int(sides.step(np.zeros(1), np.zeros(1))["ended"][0]) for _ in range(320)]
    assert np.flatnonzero(ends).tolist() == [limit // FRAME_SKIP, 2 * (limit // FRAME_SKIP) + 1]


def test_a_row_is_as_long_as_the_engine_says() -> None:
    assert Console.state_bytes == STATE_BYTES
