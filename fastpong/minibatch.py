"""The minibatches of passes over steps whose views were listed once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels import aligned
from fastpong.kernels.records import Pass
from fastpong.kernels.sites import SITES, Views, list_views, middle_of
from fastpong.rollout import Rollout

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

Halves = tuple[Views, Views]
"""What either half of the sites sees, see `fastpong.kernels.passes`."""

Pairs = tuple[I32, I32]

Both = Callable[..., None]
"""``both(work, *arguments)`` calls `work` for both halves, such as `fastpong.adam.Adam.both`."""


def views_of(rollout: Rollout, samples: I64, frames: int, both: Both) -> Halves:
    """List what is seen in some steps of the rollout, int64 (m,) as indices into its rows · games."""
    starts, lengths, ages = (array.reshape(-1) for array in (rollout.starts, rollout.lengths, rollout.ages))
    middle, found = int(middle_of(rollout.items, starts, lengths, samples)), dict[int, Views]()

    def work(half: int, first: int, last: int) -> None:
        found[half] = list_views(
            rollout.items, starts, lengths, ages, rollout.games, samples, frames, first, last
        )  # fmt: skip

    both(work, [0, 1], [0, middle], [middle, SITES])
    return found[0], found[1]


def to_deal(views: Halves, minibatches: int) -> tuple[I32, Pairs, Pairs]:
    """Return room for what `fastpong.kernels.sites.deal` makes of either half: bounds, rows and kinds."""
    rows, kinds = ((np.empty_like(views[0].kinds), np.empty_like(views[1].kinds)) for _ in range(2))
    return np.zeros((minibatches + 1, SITES), np.int32), rows, kinds


class Minibatches:
    """Makes the passes over some steps, with the same room for each.

    Parameters
    ----------
    views : two Views
        What is seen in these steps.
    samples : int64 (m,)
        The steps, as indices into the rollout's rows · games.
    size : int
        Samples of a minibatch, at most.
    number : int
        Minibatches of a pass.
    hidden : int
        Hidden units.
    """

    def __init__(self, views: Halves, samples: I64, size: int, number: int, hidden: int):
        self.views, self.samples = views, samples
        self._places, self._dealt = np.empty(len(samples), np.int64), to_deal(views, number)
        rows = min(size, len(samples))
        self._room: Any = [aligned.zeros(rows * hidden).reshape(rows, hidden) for _ in range(3)]

    def of(self, picks: I64, ends: I64, scales: npt.NDArray[np.float64]) -> Pass:
        """Return the pass whose minibatch b has the samples ``picks[ends[b] : ends[b + 1]]``, indices into `samples`.

        Each of them weighs ``scales[b]``. The pass returned before must not be used any more.
        """
        self._places[:] = -1
        # The minibatch in the upper half, and the row in it in the lower one.
        firsts = (np.arange(len(ends) - 1) << 32) - ends[:-1]
        self._places[picks] = np.arange(len(picks)) + np.repeat(firsts, np.diff(ends))
        return Pass(picks, ends, scales, self.samples[picks], self._places, *self._dealt, *self._room)
