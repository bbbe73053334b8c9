"""Watch a trained agent play one game: in a window, in the terminal, or as a file."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fastpong.agent import Agent
from fastpong.arrays import U8, Arrays
from fastpong.commands import page
from fastpong.envs.base import LocalEnvs
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import UsageError, tell
from fastpong.kernels.drawing import in_colour
from fastpong.policy import make_policy
from fastpong.show import film, terminal, window
from fastpong.training.actor import Actor
from fastpong.training.evaluate import evaluation_config

FRAMES_PER_SECOND = 60.0  # of the console
Picture = U8  # (210, 160, 3)


class Step(NamedTuple):
    """A step of a game: the screen that the agent saw, uint8 (210, 160), what it chose and expected, what it got."""

    screen: U8
    action: int  # 0 up, 1 down, 2 no-op
    log_prob: float  # of the action
    value: float
    reward: int


class Match:
    """One game of a trained agent: the first one that `fastpong.training.evaluate.evaluate` plays; or no end of them.

    `score` is that of the present game: points of the agent, and of its opponent. `last` is the last of `steps`.
    """

    def __init__(self, agent: Agent, seed: int = 0, engine: str = DEFAULT_ENGINE, endless: bool = False):
        self.agent = agent
        self.config, self._greedy = evaluation_config(agent.config, 1, seed), not agent.sample
        self._policy = make_policy(self.config)
        self.load(agent.weights)
        self._env = LocalEnvs.of(self.config, engine=engine, images=("screens", "courts", "final_screens"))
        self._actor = Actor(self.config, self._env, self._policy)
        self.score = [0, 0]
        self.steps, self.last = 0, Step(self._env.screens[0], 2, 0.0, 0.0, 0)
        self._over, self._endless = False, endless

    def load(self, weights: Arrays) -> None:
        """Play on with these weights; raises `ValueError` or `KeyError` if they are another network's."""
        self._policy.weights.load(weights)

    def play(self, max_steps: int | None = None) -> Iterator[Step]:
        """Play to the end, or for `max_steps`, and yield each step."""
        actor, env, rollout = self._actor, self._env, self._actor.rollout
        actor.start()
        while self.steps != max_steps and (self._endless or not self._over):
            if self._over:
                self.score = [0, 0]
            screen = env.screens[0].copy()
            actor.step(self._greedy)
            arrays, at = rollout.arrays, rollout.rows - 1
            chosen = int(arrays.actions[at, 0]), float(arrays.log_probs[at, 0]), float(arrays.values[at, 0])
            env.recv(0)
            rollout.release(rollout.rows - 1)
            reward, self._over = int(env.rewards[0]), bool(env.ended[0])
            self.score[0] += max(reward, 0)
            self.score[1] += max(-reward, 0)
            self.steps += 1
            self.last = Step(screen, *chosen, reward)
            yield self.last

    def pictures(self, max_steps: int | None = None) -> Iterator[Picture]:
        """Play likewise, and yield the screen after each step: uint8 (210, 160, 3)."""
        for _ in self.play(max_steps):
            # The screen after the last step is the first one of the next game.
            yield in_colour(self._env.arrays["final_screens"] if self._over else self._env.screens)[0]

    def status(self) -> list[str]:
        """Return the score, the choice with its probability and, if the agent expects anything, how much."""
        won, lost = self.score
        choice = f"{('up', 'down', 'stay')[self.last.action]:4} {100 * math.exp(self.last.log_prob):3.0f} %"
        value = [f"value {self.last.value:+.2f}"] if self.config.algorithm == "ppo" else []
        return [f"agent {won:2}   opponent {lost:2}", choice, *value]


def run(
    agent: Agent, seed: int, out: Path | None, in_terminal: bool, max_steps: int | None, speed: float, as_json: bool,
    engine: str = DEFAULT_ENGINE, checkpoint: Path | None = None,
) -> None:  # fmt: skip
    """Play a game, show it, and print its result. `checkpoint` is where the agent comes from."""
    match = play(agent, out, in_terminal, max_steps, speed, seed, engine, checkpoint)
    won, lost = match.score
    if as_json:
        told = [json.dumps({"agent": won, "opponent": lost, "steps": match.steps, "out": out and str(out)})]
    else:
        written = f"; written to {out}" if out else ""
        told = [f"agent {won}, opponent {lost}, after {match.steps:,} steps{written}", f"{match.agent}, seed {seed}"]
    tell(*told, result=True)


def play(
    agent: Agent, out: Path | None = None, in_terminal: bool = False, max_steps: int | None = None,
    speed: float = 1.0, seed: int = 0, engine: str = DEFAULT_ENGINE, checkpoint: Path | None = None,
) -> Match:  # fmt: skip
    """Play a game and show it: in a file, in the terminal, or else in a window. A page is about a sampled game.

    Raises `UsageError` for an unknown file type or a window without a display, and `FastpongError` if a library for
    the file type or the window is missing or the file cannot be written.
    """
    if out is not None and in_terminal:
        raise UsageError("choose one of --out and --terminal")
    if out is not None:
        film.check(out)
    is_page = out is not None and out.suffix.lower() == ".html"
    match = Match(page.of_the_page(agent) if is_page else agent, seed, engine)
    pictures = match.pictures(max_steps)
    seconds = match.config.frame_skip / FRAMES_PER_SECOND / speed
    if out is not None and is_page:
        page.write(match.agent, match.play(max_steps), out, seconds, checkpoint, seed)
    elif out is not None:
        film.write(pictures, out, seconds, lambda: f"step {match.steps}, {match.score[0]} : {match.score[1]}")
    elif in_terminal and not sys.stdout.isatty():
        for _ in pictures:  # into a pipe goes the result alone
            pass
    else:
        show(pictures, seconds, match.status, in_terminal)
    return match


def show(
    pictures: Iterator[Picture], seconds: float, status: Callable[[], Sequence[str]], in_terminal: bool
) -> None:  # fmt: skip
    """Show a picture every so many seconds, in the terminal or else in a window, with the parts of a status."""
    (terminal.show if in_terminal else window.show)(_paced(pictures, seconds), status)


def _paced(pictures: Iterator[Picture], seconds: float) -> Iterator[Picture]:
    """Yield a picture every so many seconds; late ones at once."""
    due = time.perf_counter()
    for picture in pictures:
        due = max(due + seconds, time.perf_counter() - seconds)
        time.sleep(max(0.0, due - time.perf_counter()))
        yield picture
