"""The minibatches of passes over steps whose views were listed once."""

import numpy as np
import numpy.typing as npt

from fastpong.kernels import aligned
from fastpong.kernels.records import Pass
from fastpong.kernels.sites import SITES, Views, list_views
from fastpong.rollout import Rollout

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

Dealt = tuple[I64, I32, I32, I32]
"""Places, bounds, rows and kinds, see `fastpong.kernels.sites.deal`, which fills all but the first."""


def views_of(rollout: Rollout, samples: I64, frames: int) -> Views:
    """List what is seen in some steps of the rollout, int64 (m,) as indices into its rows · games."""
    starts, lengths, ages = (array.reshape(-1) for array in (rollout.starts, rollout.lengths, rollout.ages))
    return list_views(rollout.items, starts, lengths, ages, rollout.games, samples, frames)


def to_deal(views: Views, places: I64, minibatches: int) -> Dealt:
    """Return what `fastpong.kernels.sites.deal` needs and makes."""
    bounds = np.zeros((minibatches + 1, SITES), np.int32)
    return places, bounds, np.empty(len(views.kinds), np.int32), np.empty(len(views.kinds), np.int32)


class Minibatches:
    """Makes the passes over some steps, with the same room for each.

    Parameters
    ----------
    views : Views
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

    def __init__(self, views: Views, samples: I64, size: int, number: int, hidden: int):
        self.views, self.samples = views, samples
        self._dealt = to_deal(views, np.empty(len(samples), np.int64), number)
        rows = min(size, len(samples))
        self._room = [aligned.zeros(rows * hidden).reshape(rows, hidden) for _ in range(3)]

    def of(self, picks: I64, ends: I64, scales: npt.NDArray[np.float64]) -> Pass:
        """Return the pass whose minibatch b has the samples ``picks[ends[b] : ends[b + 1]]``, indices into `samples`.

        Each of them weighs ``scales[b]``. The pass returned before must not be used any more.
        """
        places = self._dealt[0]
        places[:] = -1
        minibatch = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        places[picks] = minibatch << 32 | (np.arange(len(picks)) - ends[minibatch])
        return Pass(picks, ends, scales, self.samples[picks], *self._dealt, *self._room)
