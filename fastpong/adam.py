"""A network's gradient, added up for a minibatch in two halves and over ranks, and its steps of Adam."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import aligned, optimiser, passes, ppo
from fastpong.kernels.sites import SITES
from fastpong.policy import views
from fastpong.ranks import Ranks

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

HALVES = 2
"""Parts of a minibatch that are worked on at the same time, on any machine: so the sums are the same on all."""


class Half:
    """What one half of a minibatch adds up.

    Attributes
    ----------
    gradient : float32 (any,)
        Of all weights; zeros between two steps, as is all else but `sums`.
    arrays : dict of float32
        Views of it by the names of the weights.
    touched : bool (442,)
        The sites whose rows of ``w1`` have a gradient.
    sums : float64 (4,)
        Statistics of the samples.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], size: int):
        # The end is room for `touched`, so that one sum over the ranks does for both.
        self.buffer = aligned.zeros(size + SITES + 1)
        self.gradient = self.buffer[:size]
        self.arrays = views(shapes, self.gradient)
        self.touched = np.zeros(SITES + 1, np.bool_)
        self.sums = np.zeros(4)


class Adam:
    """The optimiser of one convolutional network.

    Parameters
    ----------
    config : Config
        Uses `local_steps`, `wire` and the ``adam_*`` settings.
    shapes : mapping
        Shape of each array of weights by name, see `fastpong.policy.shapes`.
    weights : float32 (any,)
        All weights, to be changed.
    ranks : Ranks
        Who learns together.
    pool : ThreadPoolExecutor or None
        A thread for one of the halves, if there is a core for it.

    Attributes
    ----------
    updates : int
        Steps so far.
    buffers : tuple of float32 (any,)
        All weights, the gradients of both halves, and Adam's running means of the gradient and of its square.
    few : int64 (n, 2)
        Begins and ends of all weights but ``w1``, which begins at ``w1_begin``.
    """

    def __init__(
        self,
        config: Config,
        shapes: Mapping[str, tuple[int, ...]],
        weights: F32,
        ranks: Ranks,
        pool: ThreadPoolExecutor | None,
    ):
        self.config, self.weights, self.ranks, self.pool = config, weights, ranks, pool
        self.mean, self.square = (aligned.zeros(len(weights)) for _ in range(2))
        self.halves = [Half(shapes, len(weights)) for _ in range(HALVES)]
        self.updates = 0
        self.buffers = (weights, self.halves[0].gradient, self.halves[1].gradient, self.mean, self.square)
        ends = np.cumsum([np.prod(shape) for shape in shapes.values()])
        spans = dict(zip(shapes, np.stack([np.r_[0, ends[:-1]], ends], axis=1).astype(np.int64), strict=True))
        self._hidden, self.w1_begin = shapes["w1"][1], int(spans["w1"][0])
        self.few = np.array([span for name, span in spans.items() if name != "w1"])
        self._spans = np.concatenate([self.few, np.zeros((SITES + 1, 2), np.int64)])

    def step(self, add_up: Callable[[Half, I64], None], picks: I64, learning_rate: float) -> None:
        """Take a step uphill, for a minibatch of which the samples `picks`, int64 (m,), are here.

        `add_up` adds the gradient of some of them to a half; it is called from two threads.
        """
        c, (first, second) = self.config, self.halves
        self.updates += 1
        self.both(add_up, self.halves, np.array_split(picks, HALVES))
        if self.ranks.size > 1 and c.local_steps == 1:
            ppo.merge(first.arrays["w1"], first.touched, second.arrays["w1"], second.touched)
            for begin, end in self.few:
                first.gradient[begin:end] += second.gradient[begin:end]
                second.gradient[begin:end] = 0.0
            flags = first.buffer[len(first.gradient) :]
            flags[:] = first.touched
            self.ranks.sum(first.buffer, c.wire)
            first.touched[:] = flags > 0.0
        few = len(self.few)
        count = ppo.touched_spans(first.touched, second.touched, self.w1_begin, self._hidden, self._spans, few)
        first.touched[:] = second.touched[:] = False

        def change(begin: int, end: int) -> None:
            optimiser.adam(
                *self.buffers, self._spans, begin, end,
                learning_rate, c.adam_beta_1, c.adam_beta_2, c.adam_epsilon, self.updates,
            )  # fmt: skip

        middle = (few + count + 1) // 2
        self.both(change, [0, middle], [middle, count])
        if c.local_steps > 1 and self.updates % c.local_steps == 0:
            self.average()

    @property
    def together(self) -> bool:
        """Whether a whole pass can be gone over by `meeting`: there is a core for each half, and no other rank."""
        return self.pool is not None and self.ranks.size == 1

    def meeting(self, work: Callable[[int, I64], bool]) -> None:
        """Call ``work(which, place)`` for both halves at the same time, on threads that meet: see `kernels.passes`."""
        place, pool = np.zeros((HALVES, 8), np.int64), self.pool
        assert pool

        def take_part(which: int) -> bool:
            try:
                return work(which, place)
            except BaseException:
                place[which, 0] = passes.GONE
                raise

        other = pool.submit(take_part, 1)
        try:
            take_part(0)
        finally:
            other.result()

    def average(self) -> None:
        """Give all ranks the mean of their weights and of Adam's means ("local SGD")."""
        if self.ranks.size > 1:
            for array in (self.weights, self.mean, self.square):
                self.ranks.sum(array)
                array /= np.float32(self.ranks.size)

    def both(self, work: Any, *arguments: Any) -> None:
        """Call `work` with the arguments of each half, at the same time if there is a core for it."""
        first, second = zip(*arguments, strict=True)
        other = self.pool.submit(work, *second) if self.pool else None
        work(*first)
        if other:
            other.result()
        else:
            work(*second)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        return {"mean": self.mean, "square": self.square, "updates": np.array(self.updates)}

    def load_state(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.mean[:], self.square[:] = arrays["mean"], arrays["square"]
        self.updates = int(arrays["updates"])
