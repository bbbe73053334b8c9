"""Samples to new weights: minibatches, their gradient, and Adam, on all threads and all ranks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpong.arrays import F64, I32, I64, Arrays
from fastpong.kernels import epochs, optimiser
from fastpong.kernels.compile import jit
from fastpong.kernels.conv import SIDE
from fastpong.kernels.patches import BY_COLUMN, PARTS, POSITIONS, find_pairs, list_patches, sort_by_place
from fastpong.kernels.structs import Adam, Buckets, Epoch, Inputs, Loss, Network, Patches, Transitions
from fastpong.learners.threads import Threads
from fastpong.parallel.comm import Communicator
from fastpong.policy import ConvNet

_PATCH = 5
"""How many pairs take as long as the first one of a patch at a place of a minibatch."""


class Samples:
    """Some samples of a rollout, with their distinct patches, which serve all epochs over them.

    `samples` int64 (m,) are indices into the arrays of `inputs`: the listed samples.
    """

    def __init__(self, inputs: Inputs, samples: I64, threads: Threads):
        self.inputs, self.samples, self.threads = inputs, samples, threads.count
        shares = np.arange(PARTS + 1) * len(samples) // PARTS
        pairs = threads.run(lambda part: find_pairs(inputs, samples[shares[part] : shares[part + 1]]))
        counts, distinct = (np.array([getattr(share, name) for share in pairs]) for name in ("counts", "distinct"))
        self.bounds, positions = divide(counts.sum(0) + _PATCH * distinct.sum(0))
        offsets = np.concatenate([[0], counts.sum(0)[positions].cumsum()]).astype(np.int32)
        starts = counts.cumsum(0) - counts
        starts[:, positions] += offsets[:-1]
        keys, patch_ids, sample_ids = (np.empty(offsets[-1], kind) for kind in (np.uint64, np.int32, np.int32))
        threads.run(lambda part: sort_by_place(pairs[part], shares[part], starts[part], keys, sample_ids))

        def name(part: int) -> tuple[I32, I32]:
            first, last = self.bounds[part : part + 2]
            return list_patches(inputs, samples, positions, offsets, first, last, keys, patch_ids, sample_ids)

        # A part's own numbers become those of all.
        ends, strips, patches, end = [np.zeros(1, np.int32)], [], 0, 0
        for part, (part_ends, part_strips) in enumerate(threads.run(name)):
            patch_ids[slice(*offsets[self.bounds[part : part + 2]])] += patches
            ends.append(part_ends[1:] + end)
            strips.append(part_strips)
            patches, end = patches + len(part_ends) - 1, end + len(part_strips)
        self.patches = Patches(np.concatenate(ends), np.concatenate(strips), positions, offsets, patch_ids, sample_ids)

    def buckets(self, minibatches: int) -> Buckets:
        """Return buffers for the pairs of these samples, bucketed by minibatch."""
        ids = self.patches.patch_ids
        return Buckets(np.zeros((minibatches + 1, POSITIONS), np.int32), np.empty_like(ids), np.empty_like(ids))


def divide(work: I64) -> tuple[I64, I64]:
    """Divide the positions into parts that take about as long: see `bounds` of `Epoch`, and `positions` of `Patches`.

    Columns stay together as far as possible, which saves patches. In a part positions are in order, as weights are.
    """
    so_far = work[BY_COLUMN].cumsum()
    bounds = np.searchsorted(so_far, np.arange(PARTS + 1) * so_far[-1] // PARTS)
    bounds[0], bounds[-1] = 0, POSITIONS
    return bounds, np.concatenate([np.sort(part) for part in np.split(BY_COLUMN, bounds[1:-1])])


class Epochs:
    """Makes epochs over some samples, with the same buffers for each.

    `sample_ids` int64 (size,) holds for each sample of the batch, of all ranks, its index among the listed samples, or
    −1 if it is another rank's or nothing is learned from it. A minibatch has `minibatch_size` of these, of all ranks;
    there are `count` in an epoch. `statistics` float64 (PARTS, 8) are sums over all epochs,
    see `fastpong.kernels.losses.loss_gradient`.
    """

    def __init__(
        self, samples: Samples, transitions: Transitions, loss: Loss, sample_ids: I64, minibatch_size: int,
        hidden_units: int,
    ):  # fmt: skip
        self._samples, self._transitions, self._loss = samples, transitions, loss
        self._sample_ids, self._minibatch_size = sample_ids, minibatch_size
        self.count = -(-len(sample_ids) // minibatch_size)
        self.statistics: F64 = np.zeros((PARTS, 8))
        listed = len(samples.samples)
        rows = min(minibatch_size, listed)
        self._slots, self._buckets = np.empty(listed, np.int64), samples.buckets(self.count)
        # A row more than is used, so that a sample's rows do not all have the same place in the caches.
        shape = samples.threads, rows + 1, hidden_units
        self._totals = jit.zeros(int(np.prod(shape))).view(np.int32).reshape(shape)
        self._grad_hidden = jit.zeros(rows * hidden_units).reshape(rows, hidden_units)

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
            s.patches, s.bounds, s.inputs, self._transitions, self._loss, ids, offsets,
            1.0 / np.diff(starts, append=size), s.samples[ids], self._slots, self._buckets, self._totals,
            self._grad_hidden, self.statistics,
        )  # fmt: skip


class Updater:
    """Adam on one convolutional network; `updates` counts its steps."""

    def __init__(self, net: ConvNet, comm: Communicator, threads: Threads):
        self._net, self._comm, self._threads = net, comm, threads
        size = len(net.flat)
        self.updates = 0
        self._exp_avg, self._exp_avg_sq = jit.zeros(size), jit.zeros(size)
        # The end is for `touched`, so that one sum over the ranks does for both.
        self._buffer = jit.zeros(size + POSITIONS)
        self._flat_gradient = self._buffer[:size]
        self._gradient = Network(**net.split(self._flat_gradient))
        self._averages = Network(**net.split(self._exp_avg)), Network(**net.split(self._exp_avg_sq))
        self._touched = np.zeros(POSITIONS, np.bool_)
        begin = sum(int(np.prod(net.shapes[name])) for name in ("kernel", "bias"))
        # What is before and after the rows of `w1` that belong to positions.
        self._rest = slice(0, begin), slice(begin + SIDE * net.network.w1.shape[1], size)
        columns = jit.LINE // 4 * -(-(size - SIDE * net.network.w1.shape[1]) // (jit.LINE // 4))  # whole cache lines
        self.rests = jit.zeros(PARTS * columns).reshape(PARTS, columns)

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
        assert len(epoch.totals) == self._threads.count
        state = Adam(*self._averages, self._touched, self._comm.size == 1, learning_rate, self.updates)

        def work(thread: int, progress: I64) -> bool:
            return epochs.learn_minibatches(
                thread, progress, begin, end, epoch, self._net.network, self._gradient, self.rests, state
            )

        self._threads.run_with_barrier(work)
        return state

    def _step(self, state: Adam) -> None:
        """Take one step with the gradient of all ranks; each of them has that of its share of the minibatch."""
        flags = self._buffer[len(self._flat_gradient) :]
        flags[:] = self._touched
        self._comm.allreduce(self._buffer)
        self._touched[:] = flags > 0.0
        rates = optimiser.rates_of(state.learning_rate, self.updates)
        for part in self._rest:
            optimiser.adam(
                self._net.flat[part], self._flat_gradient[part], self._exp_avg[part], self._exp_avg_sq[part], rates
            )

        def change(part: int) -> None:
            first, last = part * POSITIONS // PARTS, (part + 1) * POSITIONS // PARTS
            optimiser.adam_where_touched(self._net.network, self._gradient, state, rates, first, last)

        self._threads.run(change)
        self._touched[:] = False

    def state(self) -> Arrays:
        """Everything but the weights, by name."""
        return {"exp_avg": self._exp_avg, "exp_avg_sq": self._exp_avg_sq, "updates": np.array(self.updates)}

    def load_state(self, arrays: Mapping[str, Any]) -> None:
        """Continue from a `state`."""
        self._exp_avg[:], self._exp_avg_sq[:] = arrays["exp_avg"], arrays["exp_avg_sq"]
        self.updates = int(arrays["updates"])
