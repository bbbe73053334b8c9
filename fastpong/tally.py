"""Keeping score: games, points and means, from the outcome of each step."""

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

RECENT = 100
"""Games in the mean that is called the score."""


class Tally:
    """Scores of the games of a run.

    Parameters
    ----------
    envs : int
        Games played side by side.
    running_mean : float
        Decay, per game, of the running mean that the seeds report.

    Attributes
    ----------
    steps, games : int
        Steps and finished games so far, over all games.
    batch_games : int
        Games finished since it was last set to 0.
    running : float or None
        The running mean; starts with the first game's score.
    """

    def __init__(self, envs: int, running_mean: float):
        self.running_mean = running_mean
        self.steps = self.games = self.batch_games = 0
        self.running: float | None = None
        self.won = self.lost = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)  # (score, steps) of a game
        self._score, self._length = np.zeros(envs, np.int64), np.zeros(envs, np.int64)

    def add(self, rewards: npt.NDArray[np.int8], ended: npt.NDArray[np.int8]) -> None:
        """Count one step of every game; `rewards` and `ended` are int8 (envs,) as the emulator gave them."""
        self.steps += len(rewards)
        self._length += 1
        if rewards.any():
            self._score += rewards
            self.won += int(rewards[rewards > 0].sum())
            self.lost -= int(rewards[rewards < 0].sum())
        for game in np.flatnonzero(ended).tolist():
            score = int(self._score[game])
            self._recent.append((score, int(self._length[game])))
            keep = self.running_mean
            self.running = score if self.running is None else keep * self.running + (1 - keep) * score
            self.games += 1
            self.batch_games += 1
            self._score[game] = self._length[game] = 0

    @property
    def score(self) -> float | None:
        """Mean score of the last 100 finished games (of all, before there are 100); None before the first."""
        return sum(score for score, _ in self._recent) / len(self._recent) if self._recent else None

    @property
    def mean_steps(self) -> float | None:
        """Mean number of steps of the same games."""
        return sum(steps for _, steps in self._recent) / len(self._recent) if self._recent else None

    def reached(self, target: float) -> bool:
        """Whether the mean of 100 games, no fewer, is at least `target`."""
        return len(self._recent) == RECENT and (self.score or 0.0) >= target

    def point_rate(self) -> float | None:
        """Share of the points since the last call that were won; None if there were none."""
        points = self.won + self.lost
        rate = self.won / points if points else None
        self.won = self.lost = 0
        return rate

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays by name."""
        running = np.nan if self.running is None else self.running
        return {
            "counts": np.array([self.steps, self.games, self.batch_games, self.won, self.lost], np.int64),
            "running": np.array(running),
            "recent": np.array(self._recent, np.int64).reshape(-1, 2),
            "score": self._score,
            "length": self._length,
        }

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.steps, self.games, self.batch_games, self.won, self.lost = arrays["counts"].tolist()
        self.running = None if np.isnan(arrays["running"]) else float(arrays["running"])
        self._recent = deque(((int(a), int(b)) for a, b in arrays["recent"]), maxlen=RECENT)
        self._score[:], self._length[:] = arrays["score"], arrays["length"]
