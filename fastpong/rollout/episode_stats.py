"""Episode statistics: games, points and means, from the outcome of each step."""

from collections import deque
from typing import NamedTuple

import numpy as np

from fastpong.arrays import I8, Arrays
from fastpong.parallel.comm import Communicator, Serial
from fastpong.parallel.sharding import ANY, Field, layout_of

RECENT = 100
"""Games in the mean that is called the score."""

FIELDS = {
    "counts": Field(np.int64, (7,), -ANY),
    "running": Field(np.float64, (), -ANY, maybe_nan=True),  # before the first game
    "recent": Field(np.int64, ("games", 2), -ANY),
    "score": Field(np.int64, ("envs",), -ANY),
    "length": Field(np.int64, ("envs",)),
}
"""The arrays of a state by name."""
LAYOUT = layout_of(FIELDS)
"""How they are cut, see `fastpong.parallel.sharding`."""


class Point(NamedTuple):
    """A finished point."""

    steps: int  # of the run, when it ended
    env: int  # global index
    reward: int  # won minus lost in that step: 1 or −1, unless a step has very many frames


class Game(NamedTuple):
    """A finished game."""

    steps: int  # of the run, when it ended
    env: int  # global index
    score: int  # points won minus lost
    length: int  # steps of the game


class EpisodeStats:
    """Statistics of a run's games, the same on all ranks from one `synchronise` to the next.

    `num_envs` counts the envs of all ranks, `envs` are those of this one (all by default). `steps` counts all steps so
    far; as of the last `synchronise`, `games` counts finished games, `batch_games` those since the last `begin_batch`,
    and `net_points` points won minus points lost; `new_points` and `new_games` are those counted since the last
    `forget_new`, in order, each game with the running reward after it. `running_reward` is the mean that the reference
    programs report, with `decay` per game; it starts with the first game's score (None before).
    """

    def __init__(self, num_envs: int, decay: float, envs: range | None = None):
        envs = range(num_envs) if envs is None else envs
        self._decay, self._num_envs, self._offset = decay, num_envs, envs.start
        self.steps = self.games = self.batch_games = self.net_points = 0
        self.running_reward: float | None = None
        self.won = self.lost = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)  # (score, length) of a game
        self._since = 0  # steps before which the games of the score may not have begun
        self._score = np.zeros(len(envs), np.int64)
        self._taken, self._begun = 0, np.zeros(len(envs), np.int64)  # steps of each env, and those before its game
        self._points: list[Point] = []
        self._finished: list[Game] = []
        self.new_points: list[Point] = []
        self.new_games: list[tuple[Game, float]] = []

    def add(self, rewards: I8, ended: I8) -> None:
        """Count one step of every env of this rank: `rewards` and `ended` are int8 (envs,)."""
        self.steps += self._num_envs
        self._taken += 1
        if rewards.any():
            self._score += rewards
            for env in np.flatnonzero(rewards).tolist():
                self._points.append(Point(self.steps, self._offset + env, int(rewards[env])))
        if ended.any():
            for env in np.flatnonzero(ended).tolist():
                length = self._taken - int(self._begun[env])
                self._finished.append(Game(self.steps, self._offset + env, int(self._score[env]), length))
                self._score[env], self._begun[env] = 0, self._taken

    def take_finished(self) -> list[Game]:
        """Return this rank's games that have ended since the last `synchronise` or `take_finished`, in order.

        They, and the points since then, are not counted any more.
        """
        finished, self._finished, self._points = self._finished, [], []
        return finished

    def synchronise(self, comm: Communicator | None = None) -> None:
        """Count what has happened on all ranks since the last time, in the order of steps and envs."""
        mine = self._points, self._finished
        self._points, self._finished = [], []
        news = (comm or Serial()).allgather(mine)
        new_points = sorted(point for points, _ in news for point in points)
        self.new_points += new_points
        self.won += sum(max(point.reward, 0) for point in new_points)
        self.lost += sum(max(-point.reward, 0) for point in new_points)
        self.net_points += sum(point.reward for point in new_points)
        for game in sorted(game for _, games in news for game in games):
            if game.steps - game.length * self._num_envs >= self._since:
                self._recent.append((game.score, game.length))
            before = self.running_reward
            after = game.score if before is None else self._decay * before + (1 - self._decay) * game.score
            self.running_reward = after
            self.new_games.append((game, after))
            self.games += 1
            self.batch_games += 1

    def forget_new(self) -> None:
        """Begin `new_points` and `new_games` anew."""
        self.new_points, self.new_games = [], []

    def forget_games(self) -> None:
        """Begin the last 100 games, of which the score is the mean, anew; games that began before never count."""
        self._recent.clear()
        self._since = self.steps

    def begin_batch(self) -> None:
        """Count the games of a batch anew."""
        self.batch_games = 0

    @property
    def score(self) -> float | None:
        """Mean score of the last 100 finished games (of all that count, if they are fewer); None before the first."""
        return sum(score for score, _ in self._recent) / len(self._recent) if self._recent else None

    @property
    def game_length(self) -> float | None:
        """Mean number of steps of the same games."""
        return sum(length for _, length in self._recent) / len(self._recent) if self._recent else None

    def reached(self, target: float) -> bool:
        """Whether the mean of 100 games, no fewer, is at least `target`."""
        return len(self._recent) == RECENT and (self.score or 0.0) >= target

    def point_rate(self) -> float | None:
        """Share of the points since the last call that were won; None if there were none."""
        points = self.won + self.lost
        rate = self.won / points if points else None
        self.won = self.lost = 0
        return rate

    def state(self) -> Arrays:
        """Everything, as arrays by name, after a `synchronise`; see `LAYOUT`."""
        assert not self._finished and not self._points, "synchronise comes first"
        running = np.nan if self.running_reward is None else self.running_reward
        counts = [self.steps, self.games, self.batch_games, self.won, self.lost, self.net_points, self._since]
        return {
            "counts": np.array(counts, np.int64),
            "running": np.array(running, np.float64),
            "recent": np.array(self._recent, np.int64).reshape(-1, 2),
            "score": self._score,
            "length": self._taken - self._begun,
        }

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""
        counts = arrays["counts"].tolist()
        self.steps, self.games, self.batch_games, self.won, self.lost, self.net_points, self._since = counts
        self.running_reward = None if np.isnan(arrays["running"]) else float(arrays["running"])
        self._recent = deque(((int(a), int(b)) for a, b in arrays["recent"]), maxlen=RECENT)
        self._score[:], self._begun[:] = arrays["score"], self._taken - arrays["length"]
