"""A network's steps of Adam: for minibatches that are worked on in two halves, on one or two threads, on all ranks."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import aligned, convolution, meeting, optimiser
from fastpong.kernels.records import Network, Optimiser
from fastpong.kernels.sites import SITES
from fastpong.kernels.tiles import CHANNELS
from fastpong.policy import views
from fastpong.ranks import Ranks

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

HALVES = 2

Work = Callable[[int, I64, int, int, Optimiser], bool]
"""Takes part in some minibatches: ``work(which, place, begin, end, optimiser)``, see `fastpong.kernels.passes`."""


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
    network : Network
        The weights.
    gradients : tuple of Network
        What either half adds up; 0 between two steps.
    touched : bool (441,)
        The sites that have a gradient.
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
        # The end is room for `touched`, so that one sum over the ranks does for both.
        self._buffer = aligned.zeros(len(weights) + SITES)
        self._flat = self._buffer[: len(weights)], aligned.zeros(len(weights))
        flat = (weights, *self._flat, self.mean, self.square)
        self.network, *gradients, self._mean, self._square = (Network(**views(shapes, array)) for array in flat)
        self.gradients: tuple[Network, ...] = tuple(gradients)
        self.touched = np.zeros(SITES, np.bool_)
        self.updates = 0
        begin = sum(int(np.prod(shapes[name])) for name in ("kernel", "bias"))
        # What is before and after the rows of `w1` that belong to sites.
        self._rest = slice(0, begin), slice(begin + convolution.FACTS * shapes["w1"][1], None)

    def run(self, work: Work, number: int, learning_rate: float, after: Callable[[], None] | None = None) -> None:
        """Take `number` steps uphill.

        Parameters
        ----------
        work : callable
            See `Work`; called from two threads if there are cores for them.
        number : int
            Minibatches of the pass.
        learning_rate : float
            The step size.
        after : callable, optional
            Called after each step that is not part of `work`: those that ranks take together.
        """
        c, begin = self.config, 0
        together = self.ranks.size > 1 and c.local_steps == 1
        while begin < number:
            end = number
            if self.ranks.size > 1:
                end = min(number, begin + c.local_steps - self.updates % c.local_steps)
            settings = Optimiser(
                self._mean, self._square, not together, learning_rate, c.adam_beta_1, c.adam_beta_2, c.adam_epsilon,
                self.updates,
            )  # fmt: skip
            self._meeting(work, begin, end, settings)
            self.updates += end - begin
            if together:
                self._step(learning_rate)
                if after:
                    after()
            elif c.local_steps > 1 and self.updates % c.local_steps == 0:
                self.average()
            begin = end

    def _meeting(self, work: Work, begin: int, end: int, settings: Optimiser) -> None:
        """Do the work of both halves: at the same time on threads that meet, if there are cores for them."""
        place = np.zeros((HALVES, 8), np.int64)
        if self.pool is None:
            work(meeting.ALONE, place, begin, end, settings)
            return

        def take_part(which: int) -> bool:
            try:
                return work(which, place, begin, end, settings)
            except BaseException:
                place[which, 0] = meeting.GONE
                raise

        other = self.pool.submit(take_part, 1)
        try:
            take_part(0)
        finally:
            other.result()

    def _step(self, learning_rate: float) -> None:
        """Take one step with the gradient of all ranks; each of them has that of its share of the minibatch."""
        c, (first, second) = self.config, self._flat
        for part in self._rest:
            first[part] += second[part]
            second[part] = 0.0
        flags = self._buffer[len(first) :]
        flags[:] = self.touched
        self.ranks.sum(self._buffer, c.wire)
        self.touched[:] = flags > 0.0
        rates = optimiser.rates_of(learning_rate, c.adam_beta_1, c.adam_beta_2, c.adam_epsilon, self.updates)
        for part in self._rest:
            optimiser.adam(self.weights[part], first[part], self.mean[part], self.square[part], rates)

        def change(begin: int, end: int) -> None:
            optimiser.adam_where_touched(
                self.network.w1, self.gradients[0].w1, self._mean.w1, self._square.w1, rates, self.touched, CHANNELS,
                begin, end,
            )  # fmt: skip

        self.both(change, [0, SITES // 2], [SITES // 2, SITES])
        self.touched[:] = False

    def warm_up(self) -> None:
        """Compile or load the kernels of steps that ranks take together; changes nothing."""
        if self.ranks.size > 1 and self.config.local_steps == 1:
            none = self.weights[:0]
            rates = optimiser.rates_of(0.0, 0.5, 0.5, 1.0, 1)
            optimiser.adam(none, none, none, none, rates)
            w1 = self.network.w1
            optimiser.adam_where_touched(w1, w1, w1, w1, rates, self.touched, CHANNELS, 0, 0)

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
