"""An epoch: all minibatches of a batch, on any number of threads, with a spin barrier.

A minibatch is worked on in `PARTS`, on any machine: so the sums are the same on all. The positions are divided: each
part adds up what its positions contribute to the hidden units of all samples, and later the gradient of its positions'
weights, which no other part reads; so these stay in the caches of one core. In between, for outputs and loss, the
samples are divided, and at last the weights that belong to no position.
"""

from typing import Any

import numpy as np

from fastpong.arrays import F32, I32, I64
from fastpong.kernels.buckets import bucket_by_minibatch, bucket_of
from fastpong.kernels.compile.barrier import arrive
from fastpong.kernels.compile.jit import kernel, new_matrix
from fastpong.kernels.conv import (
    SIDE,
    conv_hidden_backward,
    conv_hidden_forward,
    finish_hidden,
    prefix_gradient,
    prefix_sums,
    side_gradient,
    side_rows,
)
from fastpong.kernels.losses import loss_gradient
from fastpong.kernels.optimiser import adam, rates_of
from fastpong.kernels.patches import PARTS
from fastpong.kernels.structs import Adam, Epoch, Loss, Network, Patches, Rates, Rest, Workspace
from fastpong.kernels.tiles import CHANNELS

_ARRIVALS = 4  # of each thread in a minibatch


@kernel
def new_workspace(patches: Patches, network: Network) -> Workspace:
    """Return room for what a thread computes; no patch is visited."""
    count = len(patches.strip_offsets) - 1
    grad_sums = prefix_sums(network.kernel)
    grad_sums[:] = np.float32(0.0)
    channels, grads = new_matrix(count, np.int64(CHANNELS)), new_matrix(count, np.int64(CHANNELS))
    return Workspace(np.zeros(count, np.int64), np.empty(count + 1, np.int64), channels, grads, grad_sums)


@kernel
def _share_of(part: int, count: Any) -> slice:
    return slice(part * count // PARTS, (part + 1) * count // PARTS)


@kernel
def add_part(part: int, b: int, sums: F32, work: Workspace, epoch: Epoch, network: Network, totals: I32) -> None:
    """Add what a part of the positions contributes to the hidden units of minibatch b; `sums`: `prefix_sums`."""
    conv_hidden_forward(epoch.patches, bucket_of(part, b, epoch), network, sums, work, 2 * b + 1, totals)


@kernel
def rest_of(numbers: F32, network: Network) -> Rest:
    """Return what float32 numbers are the gradient of, with the shapes of `network`."""
    columns = network.w1.shape[1]
    bias = network.kernel.size
    side = bias + network.bias.size
    w2 = side + (len(network.w1) - SIDE) * columns
    return Rest(
        numbers[:bias].reshape(network.kernel.shape),
        numbers[bias:side],
        numbers[side:w2].reshape((len(network.w1) - SIDE, columns)),
        numbers[w2 : w2 + network.w2.size].reshape(network.w2.shape),
    )


@kernel
def learn_outputs(part: int, b: int, epoch: Epoch, network: Network, rest: Rest) -> None:
    """Complete the hidden units of a part of the samples of minibatch b, and take the loss's gradient back to them."""
    begin, end, loss = epoch.offsets[b], epoch.offsets[b + 1], epoch.loss
    own = _share_of(part, end - begin)
    samples, grad_hidden = epoch.samples[begin:end][own], epoch.grad_hidden[own]
    rows, owners = side_rows(epoch.inputs, samples)
    hidden = finish_hidden(epoch.totals, own.start, own.stop, rows, owners, network.w1)
    loss_gradient(
        hidden, epoch.sample_ids[begin:end][own], epoch.transitions, network.w2,
        Loss(loss.clip_low, loss.clip_high, loss.entropy_coef, loss.value_coef, epoch.scales[b]),
        rest.w2, grad_hidden, epoch.statistics[part],
    )  # fmt: skip
    side_gradient(rows, owners, grad_hidden, rest.side)


@kernel
def _flat(
    array: int,  # 0 … 3: kernel, bias, side inputs, w2
    network: Network,
) -> F32:
    if array == 0:
        return network.kernel.reshape(-1)
    if array == 1:
        return network.bias
    return network.w1.reshape(-1)[SIDE * network.w1.shape[1] :] if array == 2 else network.w2.reshape(-1)


@kernel
def _finish_rest(part: int, network: Network, gradient: Network, rests: F32, optimiser: Adam, rates: Rates) -> None:
    """Add up what all parts know of a share of the weights that belong to no position; with `apply`, take a step."""
    first = 0
    for array in range(4):
        total = _flat(array, gradient)
        own = _share_of(part, len(total))
        for other in range(PARTS):
            numbers = rests[other][first : first + len(total)]
            for i in range(own.start, own.stop):
                total[i] += numbers[i]
                numbers[i] = np.float32(0.0)
        if optimiser.apply:
            exp_avg, exp_avg_sq = _flat(array, optimiser.exp_avg), _flat(array, optimiser.exp_avg_sq)
            adam(_flat(array, network)[own], total[own], exp_avg[own], exp_avg_sq[own], rates)
        first += len(total)


@kernel
def learn_minibatches(
    thread: int,  # 0 …: this thread
    progress: I64,  # (threads, 8) see barrier.arrive; 0 at the beginning
    begin: int,  # the minibatches begin … end − 1 of the epoch
    end: int,
    epoch: Epoch,
    network: Network,  # in and out, if `optimiser.apply`
    gradient: Network,  # 0; out: the gradient, or 0 again
    rests: F32,  # (PARTS, …) 0, and 0 again: what each part adds up, see `rest_of`
    optimiser: Adam,
) -> bool:
    """Do a thread's parts of some minibatches; False if another thread has failed. Twin: naive.minibatch_gradient."""
    threads, work = len(progress), new_workspace(epoch.patches, network)
    first, last = thread * PARTS // threads, (thread + 1) * PARTS // threads
    if begin == 0:
        bucket_by_minibatch(epoch.patches, epoch.slots, epoch.buckets, epoch.bounds[first], epoch.bounds[last])
    for b in range(begin, end):
        arrived, step = _ARRIVALS * (b - begin), optimiser.updates + b - begin + 1
        rates = rates_of(optimiser.learning_rate, step)
        sums, totals = prefix_sums(network.kernel), epoch.totals[thread][: epoch.offsets[b + 1] - epoch.offsets[b]]
        totals[:] = 0
        for part in range(first, last):
            add_part(part, b, sums, work, epoch, network, totals)
        if not arrive(progress, thread, arrived + 1):
            return False
        for part in range(first, last):
            learn_outputs(part, b, epoch, network, rest_of(rests[part], network))
        if not arrive(progress, thread, arrived + 2):
            return False
        for part in range(first, last):
            rest = rest_of(rests[part], network)
            conv_hidden_backward(
                epoch.patches, bucket_of(part, b, epoch), network, epoch.grad_hidden, work, 2 * b + 2, gradient.w1,
                rest.bias, (optimiser, rates),
            )  # fmt: skip
            prefix_gradient(work.grad_sums, rest.kernel)
        if not arrive(progress, thread, arrived + 3):
            return False
        for part in range(first, last):
            _finish_rest(part, network, gradient, rests, optimiser, rates)
        if not arrive(progress, thread, arrived + 4):
            return False
    return True
