"""Keeping score: games, points and means, from the outcome of each step."""

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels import outcomes
from fastpong.ranks import Alone, Ranks
from fastpong.shards import Layout

RECENT = 100
"""Games in the mean that is called the score."""

LAYOUT: Layout = {"counts": None, "running": None, "recent": None, "score": 0, "length": 0}
"""Of the arrays of a state, see `fastpong.shards`."""


class Tally:
    """Scores of the games of a run, the same on all ranks from one `exchange` to the next.

    Parameters
    ----------
    envs : int
        Games played side by side, over all ranks.
    running_mean : float
        Decay, per game, of the running mean that the seeds report.
    games : range, optional
        Those that this rank steps; all of them by default.

    Attributes
    ----------
    steps : int
        Steps so far, over all games.
    games : int
        Finished games so far, as of the last `exchange`; so is all that follows.
    batch_games : int
        Games finished since it was last set to 0.
    net : int
        Points won minus points lost so far.
    running : float or None
        The running mean; starts with the first game's score.
    """

    def __init__(self, envs: int, running_mean: float, games: range | None = None):
        self.running_mean, self._envs = running_mean, envs
        self._first = games.start if games else 0
        self.steps = self.games = self.batch_games = self.net = 0
        self.running: float | None = None
        self.won = self.lost = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)  # (score, steps) of a game
        mine = len(games) if games else envs
        self._score, self._length, self._over = (np.zeros(mine, np.int64) for _ in range(3))
        self._new: list[tuple[int, int, int, int]] = []  # (steps at its end, game, score, steps) of finished games
        self._new_won = self._new_lost = 0

    def add(self, rewards: npt.NDArray[np.int8], ended: npt.NDArray[np.int8], practised: npt.NDArray[np.int8]) -> None:
        """Count one step of every game of this rank.

        `rewards`, `ended` and `practised` are int8 (games,), see `fastpong.pong.space_of`. A step that was practised
        is a step, and belongs to no game.
        """
        self.steps += self._envs
        won, lost, count = outcomes.count_step(rewards, ended, practised, self._score, self._length, self._over)
        self._new_won += won
        self._new_lost += lost
        for game in self._over[:count].tolist():
            self._new.append((self.steps, self._first + game, int(self._score[game]), int(self._length[game])))
            self._score[game] = self._length[game] = 0

    def warm_up(self) -> None:
        """Compile or load the kernel that counts; changes nothing."""
        nothing, nobody = np.zeros(0, np.int8), np.zeros(0, np.int64)
        outcomes.count_step(nothing, nothing, nothing, nobody, nobody, nobody)

    def exchange(self, ranks: Ranks | None = None) -> None:
        """Count what has happened on all ranks since the last time, in the order of steps and games."""
        news = (ranks or Alone()).share((self._new, self._new_won, self._new_lost))
        self._new, self._new_won, self._new_lost = [], 0, 0
        self.won += sum(won for _, won, _ in news)
        self.lost += sum(lost for _, _, lost in news)
        self.net += sum(won - lost for _, won, lost in news)
        for _, _, score, steps in sorted(game for games, _, _ in news for game in games):
            self._recent.append((score, steps))
            keep = self.running_mean
            self.running = score if self.running is None else keep * self.running + (1 - keep) * score
            self.games += 1
            self.batch_games += 1

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
        """Everything, as arrays by name, after an `exchange`; see `LAYOUT`."""
        assert not self._new and not self._new_won and not self._new_lost, "exchange comes first"
        running = np.nan if self.running is None else self.running
        return {
            "counts": np.array([self.steps, self.games, self.batch_games, self.won, self.lost, self.net], np.int64),
            "running": np.array(running),
            "recent": np.array(self._recent, np.int64).reshape(-1, 2),
            "score": self._score,
            "length": self._length,
        }

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.steps, self.games, self.batch_games, self.won, self.lost, self.net = arrays["counts"].tolist()
        self.running = None if np.isnan(arrays["running"]) else float(arrays["running"])
        self._recent = deque(((int(a), int(b)) for a, b in arrays["recent"]), maxlen=RECENT)
        self._score[:], self._length[:] = arrays["score"], arrays["length"]
