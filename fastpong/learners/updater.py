"""Samples to new weights: minibatches, their gradient, and Adam, on two threads and on all ranks."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fastpong.arrays import F64, I64, Arrays
from fastpong.kernels import epochs, optimiser
from fastpong.kernels.compile import jit
from fastpong.kernels.compile.barrier import BOTH, PEER_FAILED
from fastpong.kernels.conv import SIDE
from fastpong.kernels.patches import POSITIONS, list_patches, middle_position
from fastpong.kernels.structs import Adam, Buckets, Epoch, Inputs, Loss, Network, Patches, Transitions
from fastpong.parallel.comm import Communicator
from fastpong.parallel.machine import usable_cores
from fastpong.policy import ConvNet

Halves = tuple[Patches, Patches]
"""The patches of either half of the positions."""


class TwoThreads:
    """Runs the two halves of some work, at the same time if this rank has a second core.

    The emulators wait while the weights change, so a second core is free for it, unless it is another rank's.
    """

    def __init__(self, comm: Communicator):
        # One half is the calling thread's: it would only wait.
        self._pool = ThreadPoolExecutor(1, "learner") if usable_cores() // comm.local_size > 1 else None

    def run(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Call `work` with the arguments of each half, given in pairs."""
        first, second = zip(*arguments, strict=True)
        other = self._pool.submit(work, *second) if self._pool else None
        work(*first)
        if other:
            other.result()
        else:
            work(*second)

    def run_with_barrier(self, work: Callable[[int, I64], bool]) -> None:
        """Call ``work(thread, progress)`` for both threads, or once for `BOTH`; see `fastpong.kernels.epochs`."""
        progress = np.zeros((2, 8), np.int64)
        if self._pool is None:
            work(BOTH, progress)
            return

        def take_part(thread: int) -> bool:
            try:
                return work(thread, progress)
            except BaseException:
                progress[thread, 0] = PEER_FAILED
                raise

        other = self._pool.submit(take_part, 1)
        try:
            take_part(0)
        finally:
            other.result()

    def close(self) -> None:
        """Stop the threads."""
        if self._pool:
            self._pool.shutdown()


class Samples:
    """Some samples of a rollout, with their distinct patches, which serve all epochs over them.

    `samples` int64 (m,) are indices into the arrays of `inputs`: the listed samples.
    """

    def __init__(self, inputs: Inputs, samples: I64, threads: TwoThreads):
        self.inputs, self.samples = inputs, samples
        middle, found = int(middle_position(inputs, samples)), dict[int, Patches]()

        def work(half: int, first: int, last: int) -> None:
            found[half] = list_patches(inputs, samples, first, last)

        threads.run(work, [0, 1], [0, middle], [middle, POSITIONS])
        self.patches: Halves = (found[0], found[1])

    def buckets(self, minibatches: int) -> Buckets:
        """Return buffers for the pairs of these samples, bucketed by minibatch."""
        slots, ids = ([np.empty_like(half.patch_ids) for half in self.patches] for _ in range(2))
        return Buckets(np.zeros((minibatches + 1, POSITIONS), np.int32), (slots[0], slots[1]), (ids[0], ids[1]))


class Epochs:
    """Makes epochs over some samples, with the same buffers for each.

    `sample_ids` int64 (size,) holds for each sample of the batch, of all ranks, its index among the listed samples, or
    −1 if it is another rank's or nothing is learned from it. A minibatch has `minibatch_size` of these, of all ranks;
    there are `count` in an epoch. `statistics` float64 (2, 4) are sums over all epochs, see
    `fastpong.kernels.losses.loss_gradient`.
    """

    def __init__(
        self, samples: Samples, transitions: Transitions, loss: Loss, sample_ids: I64, minibatch_size: int,
        hidden_units: int,
    ):  # fmt: skip
        self._samples, self._transitions, self._loss = samples, transitions, loss
        self._sample_ids, self._minibatch_size = sample_ids, minibatch_size
        self.count = -(-len(sample_ids) // minibatch_size)
        self.statistics: F64 = np.zeros((2, 4))
        listed = len(samples.samples)
        rows = min(minibatch_size, listed)
        self._slots, self._buckets = np.empty(listed, np.int64), samples.buckets(self.count)
        hidden = [jit.zeros(rows * hidden_units).reshape(rows, hidden_units) for _ in range(3)]
        self._hidden, self._grad_hidden = (hidden[0], hidden[1]), hidden[2]

    def shuffled(self, permutation: I64) -> Epoch:
        """Return the epoch that cuts this permutation, int64 (size,), into minibatches; it reuses all buffers."""
        ids, size = self._sample_ids[permutation], len(permutation)
        starts = np.arange(0, size, self._minibatch_size)
        mine = np.flatnonzero(ids >= 0)
        offsets, ids = np.searchsorted(mine, [*starts, size]), ids[mine]
        self._slots[:] = -1
        # The minibatch in the upper half, and the row in it in the lower one.
        firsts = (np.arange(self.count) << 32) - offsets[:-1]
        self._slots[ids] = np.arange(len(ids)) + np.repeat(firsts, np.diff(offsets))
        s = self._samples
        return Epoch(
            s.patches, s.inputs, self._transitions, self._loss, ids, offsets, 1.0 / np.diff(starts, append=size),
            s.samples[ids], self._slots, self._buckets, self._hidden, self._grad_hidden, self.statistics,
        )  # fmt: skip


class Updater:
    """Adam on one convolutional network, with either half of each minibatch on one of the threads.

    `updates` counts its steps.
    """

    def __init__(self, net: ConvNet, comm: Communicator, threads: TwoThreads):
        self._net, self._comm, self._threads = net, comm, threads
        size = len(net.flat)
        self.updates = 0
        self._exp_avg, self._exp_avg_sq = jit.zeros(size), jit.zeros(size)
        # The end is for `touched`, so that one sum over the ranks does for both.
        self._buffer = jit.zeros(size + POSITIONS)
        self._gradient, self._other = self._buffer[:size], jit.zeros(size)
        self._gradients = Network(**net.split(self._gradient)), Network(**net.split(self._other))
        self._averages = Network(**net.split(self._exp_avg)), Network(**net.split(self._exp_avg_sq))
        self._touched = np.zeros(POSITIONS, np.bool_)
        begin = sum(int(np.prod(net.shapes[name])) for name in ("kernel", "bias"))
        # What is before and after the rows of `w1` that belong to positions.
        self._rest = slice(0, begin), slice(begin + SIDE * net.network.w1.shape[1], None)

    def run(self, epoch: Epoch, learning_rate: float) -> None:
        """Take a step uphill for each minibatch of an epoch, with this step size."""
        count = len(epoch.scales)
        if self._comm.size == 1:
            self._add_up(epoch, 0, count, learning_rate)
            self.updates += count
            return
        for b in range(count):
            state = self._add_up(epoch, b, b + 1, learning_rate)
            self.updates += 1
            self._step(state)

    def _add_up(self, epoch: Epoch, begin: int, end: int, learning_rate: float) -> Adam:
        """Add up the gradient of some minibatches; alone, take the steps as well."""
        state = Adam(*self._averages, self._touched, self._comm.size == 1, learning_rate, self.updates)

        def work(thread: int, progress: I64) -> bool:
            return epochs.epoch_half(
                thread, progress, begin, end, epoch, self._net.network, self._gradients, state
            )  # fmt: skip

        self._threads.run_with_barrier(work)
        return state

    def _step(self, state: Adam) -> None:
        """Take one step with the gradient of all ranks; each of them has that of its share of the minibatch."""
        for part in self._rest:
            self._gradient[part] += self._other[part]
            self._other[part] = 0.0
        flags = self._buffer[len(self._gradient) :]
        flags[:] = self._touched
        self._comm.allreduce(self._buffer)
        self._touched[:] = flags > 0.0
        rates = optimiser.rates_of(state.learning_rate, self.updates)
        for part in self._rest:
            optimiser.adam(
                self._net.flat[part], self._gradient[part], self._exp_avg[part], self._exp_avg_sq[part], rates
            )

        def change(first: int, last: int) -> None:
            optimiser.adam_where_touched(self._net.network, self._gradients[0], state, rates, first, last)

        self._threads.run(change, [0, POSITIONS // 2], [POSITIONS // 2, POSITIONS])
        self._touched[:] = False

    def state(self) -> Arrays:
        """Everything but the weights, by name."""
        return {"exp_avg": self._exp_avg, "exp_avg_sq": self._exp_avg_sq, "updates": np.array(self.updates)}

    def load_state(self, arrays: Mapping[str, Any]) -> None:
        """Continue from a `state`."""
        self._exp_avg[:], self._exp_avg_sq[:] = arrays["exp_avg"], arrays["exp_avg_sq"]
        self.updates = int(arrays["updates"])
