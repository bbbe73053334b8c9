"""What the games have shown and not yet taught: steps in rows of time, and the batches cut from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import images, outcomes, returns
from fastpong.kernels.images import PIXELS, SCREEN
from fastpong.kernels.records import Rows
from fastpong.ranks import Alone, Ranks
from fastpong.shards import Arrays, Layout, join

I64 = npt.NDArray[np.int64]


_ROWS = (
    "starts", "lengths", "ages", "practising", "held", "planned", "actions", "log_probs", "values", "rewards", "ended"
)  # fmt: skip

LAYOUT: Layout = {
    **{name: 1 for name in _ROWS if name != "starts"},
    "items": "lengths", "begins": 0, "last_pixels": "last_counts", "last_counts": 0,
}  # fmt: skip
"""Of the arrays of a state, see `fastpong.shards`."""


@dataclass(frozen=True)
class Batch:
    """Samples to learn from: indices into the rollout's flattened rows, and the advantage of each.

    ``samples`` int64 (m,) holds t · games + n, game by game; ``advantages`` float32 (m,).
    """

    samples: I64
    advantages: npt.NDArray[np.float32]


def join_states(parts: list[Arrays]) -> Arrays:
    """Return the state of all games from the states of consecutive shares; some may begin at an earlier row."""
    rows = max(len(part["lengths"]) for part in parts)
    aligned = []
    for part in parts:
        missing = rows - len(part["lengths"])
        late = {name: np.pad(part[name], ((missing, 0), (0, 0))) for name in _ROWS if name != "starts"}
        aligned.append({**part, **late, "begins": part["begins"] + missing})
    return join(aligned, LAYOUT)


def standardised(values: npt.NDArray[np.float32], ranks: Ranks) -> npt.NDArray[np.float32]:
    """Give values float32 (any,) mean 0 and standard deviation 1 over all ranks, with float64 sums."""
    sums = np.array([values.size, values.sum(dtype=np.float64)])
    ranks.sum(sums)
    count = max(1.0, float(sums[0]))
    deviations = values - sums[1] / count
    square = np.array([np.square(deviations).sum()])
    ranks.sum(square)
    scaled: npt.NDArray[np.float32] = (deviations / (np.sqrt(square[0] / count) + 1e-8)).astype(np.float32)
    return scaled


class Rollout:
    """Steps of all games since the last batch, with the unfinished ones of before.

    Row t of each (rows, games) array is one step of all games. What the games show is one long list (`items`: signed
    non-zeros for ``reinforce``, runs for ``ppo``, see `fastpong.kernels.images`), with `starts` and `lengths` for each
    step. All of it grows as needed.

    Parameters
    ----------
    config : Config
        Uses `algorithm`, `inputs`, `frames`, `past_actions`, `gamma`, `carry` and `standardise`.
    games : int, optional
        How many games; `envs` by default.

    Attributes
    ----------
    history : int
        How many earlier steps the network looks at.
    begins : int64 (games,)
        First row of each game that no batch has used. Earlier rows are history, which later steps still look at.
    keep : int
        How many used rows are to be remembered before this history, for a critic; 0 at first.
    ages : int64 (rows, games)
        ``ppo``: steps before this one in the game, or in the practice attempt; history goes back no further.
    practising : int8 (rows, games)
        Not 0 where the step belongs to a practice attempt, see `fastpong.practice`, and not to a game.
    held : int16 (rows, games)
        ``ppo``: not 0 where the paddle was held and not played, see `fastpong.kernels.acting.hold_start`.
    planned : int8 (rows, games)
        ``ppo``: 1 + the action that a practice attempt had to take, 0 where the agent was free to choose.
    flat : Rows
        The rows as kernels take them, (rows · games,) arrays.
    """

    def __init__(self, config: Config, games: int | None = None):
        games = config.envs if games is None else games
        self.config, self.games = config, games
        self._runs = config.algorithm == "ppo"
        self.history = max(config.frames - 1, config.past_actions) if self._runs else 0
        self.rows = self.keep = 0
        self.end = 0  # of what is used of `items`
        self.items: Any = np.zeros(1 << 20, np.int32 if self._runs else np.int16)
        self.starts, self.lengths = np.zeros((256, games), np.int64), np.zeros((256, games), np.int64)
        self.ages = np.zeros((256, games), np.int64)
        self.practising = np.zeros((256, games), np.int8)
        self.held, self.planned = np.zeros((256, games), np.int16), np.zeros((256, games), np.int8)
        self.actions = np.zeros((256, games), np.uint8)
        self.log_probs, self.values = np.zeros((256, games), np.float32), np.zeros((256, games), np.float32)
        self.rewards, self.ended = np.zeros((256, games), np.int8), np.zeros((256, games), np.int8)
        self.begins = np.zeros(games, np.int64)
        self.last_pixels = np.zeros((games, PIXELS), np.int16)
        self.last_counts = np.zeros(games, np.int64)
        self.flat = self._flattened()

    def new_row(self) -> int:
        """Open a row for the next step of all games and return its index."""
        if self.rows == len(self.starts):
            for name in _ROWS:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
            self.flat = self._flattened()
        self.rows += 1
        return self.rows - 1

    def _flattened(self) -> Rows:
        return Rows(*(getattr(self, name).reshape(-1) for name in Rows._fields))

    def observe(
        self,
        row: int,
        screens: npt.NDArray[np.uint64],
        slots: I64,
        games: I64,
        first: npt.NDArray[np.int8],
    ) -> None:
        """Preprocess the screens of some games into a row; see `fastpong.kernels.images`."""
        room = 2 * PIXELS * len(games)  # as much as the fullest of screens could need
        if self.end + room > len(self.items):
            grown = np.zeros(2 * len(self.items) + room, self.items.dtype)
            grown[: self.end] = self.items[: self.end]
            self.items = grown
        if self._runs:
            self.end = images.observe_runs(
                screens, slots, games, first, self.items, self.end, self.starts[row], self.lengths[row],
                self.ages[row - 1] if row else np.full(self.games, -1), self.ages[row],
            )  # fmt: skip
        else:
            self.end = images.observe(
                screens, slots, games, first, self.last_pixels, self.last_counts,
                self.items, self.end, self.starts[row], self.lengths[row], self.config.inputs != "difference",
            )  # fmt: skip

    def take_over(
        self,
        row: int,
        slots: I64,
        games: I64,
        rewards: npt.NDArray[np.int8],
        ended: npt.NDArray[np.int8],
        practising: npt.NDArray[np.int8],
        planned: npt.NDArray[np.int8],
    ) -> None:
        """Write down what came of the step before a row of some games, and in what the row finds them.

        The last four are int8 (slots,), see `fastpong.pong.space_of`.
        """
        # Before row 0 comes, in this sense, the last one that there is room for: not in use yet, and written anew then.
        outcomes.take_over(
            slots, games, rewards, ended, practising, planned, self.rewards[row - 1], self.ended[row - 1],
            self.practising[row], self.planned[row],
        )  # fmt: skip

    def cut_batch(self, rows: int, ranks: Ranks | None = None) -> Batch:
        """Take the finished points (or games) of the first `rows` rows: what came after carries over.

        Returns are standardised over the batches of all `ranks`, or over single games. The steps stay in place until
        `drop_used`.
        """
        ends = np.zeros_like(self.begins)
        unit = returns.GAME if self.config.carry == "game" else returns.POINT
        most = returns.finished_rows(self.rewards, self.ended, self.begins, rows, unit, ends)
        samples, segments = np.zeros(most, np.int64), np.zeros(most, np.int64)
        advantages = np.zeros(most, np.float32)
        count = returns.discounted_returns(
            self.rewards, self.ended, self.begins, ends, self.config.gamma, samples, advantages, segments
        )
        samples, segments, advantages = samples[:count], segments[:count], advantages[:count]
        if self.config.standardise == "batch":
            advantages = standardised(advantages, ranks or Alone())
        else:
            returns.standardise(advantages, segments)
        self.begins = ends
        return Batch(samples, advantages)

    def drop_used(self) -> None:
        """Forget the rows that every game is done with, but for the history of the next one and what is to be kept."""
        used = int(self.begins.min()) - self.history - self.keep
        if used <= 0:
            return
        left = self.rows - used
        base = int(self.starts[used].min()) if left else self.end
        for name in _ROWS:
            array = getattr(self, name)
            array[:left] = array[used : self.rows]
        self.starts[:left] -= base
        self.items[: self.end - base] = self.items[base : self.end]
        self.end -= base
        self.rows = left
        self.begins -= used

    def traces(self, rows: slice | I64) -> npt.NDArray[np.float32]:
        """Return, float32 (…, games), how likely those actions of some rows were that had to be taken; 1 for others."""
        chosen = self.planned[rows] == 0
        return np.where(chosen, np.float32(1.0), np.exp(self.log_probs[rows]))

    def warm_up(self) -> None:
        """Compile or load the kernel that observes; changes nothing."""
        one = np.zeros(1, np.int64)
        Rollout(self.config, 1).observe(
            0, images.as_words(np.zeros((1, *SCREEN), np.uint8)), one, one, np.zeros(1, np.int8)
        )
        zero = np.zeros(1, np.int8)
        Rollout(self.config, 1).take_over(0, one, one, zero, zero, zero, zero)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that the next batches need, by name; see `LAYOUT`."""
        rows = {name: getattr(self, name)[: self.rows].copy() for name in _ROWS if name != "starts"}
        for array in rows.values():  # so that nothing is left of what only some games are done with
            array[np.arange(self.rows)[:, None] < self.begins - self.history - self.keep] = 0
        lengths = rows["lengths"].T.reshape(-1)  # game by game, row by row
        ends = np.cumsum(lengths)
        shifts = self.starts[: self.rows].T.reshape(-1) - (ends - lengths)
        pixels = [self.last_pixels[game, :count] for game, count in enumerate(self.last_counts)]
        return rows | {
            "items": self.items[np.arange(int(lengths.sum())) + np.repeat(shifts, lengths)],
            "begins": self.begins,
            "last_pixels": np.concatenate(pixels),
            "last_counts": self.last_counts,
        }

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        rows = len(arrays["lengths"])
        lengths = arrays["lengths"].T.reshape(-1)
        starts = (np.cumsum(lengths) - lengths).reshape(self.games, rows).T
        room = max(256, 2 * rows)
        for name in _ROWS:
            source = starts if name == "starts" else arrays[name]
            array = np.zeros((room, self.games), source.dtype)
            array[:rows] = source
            setattr(self, name, array)
        self.rows, self.end, self.flat = rows, len(arrays["items"]), self._flattened()
        self.items = np.concatenate([arrays["items"], np.zeros(1 << 20, self.items.dtype)])
        self.begins = arrays["begins"].copy()
        self.keep = max(0, int(self.begins.min()) - self.history) if self._runs else 0
        self.last_counts[:] = arrays["last_counts"]
        ends = np.cumsum(self.last_counts)
        for game, (count, end) in enumerate(zip(self.last_counts, ends, strict=True)):
            self.last_pixels[game, :count] = arrays["last_pixels"][end - count : end]
