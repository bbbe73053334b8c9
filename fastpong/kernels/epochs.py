"""An epoch: all minibatches of a batch, on two threads with a spin barrier, or on one.

A minibatch is worked on in two halves, on any machine: so the sums are the same on all. Positions are halved: each
half adds up what its positions contribute to the hidden units of all samples, and later the gradient of its positions'
weights, which the other half never reads; so these stay in the caches of one core. In between, for outputs and loss,
samples are halved.
"""

from typing import Any

import numpy as np

from fastpong.arrays import F32, I64
from fastpong.kernels.compile.barrier import BOTH, arrive
from fastpong.kernels.compile.jit import kernel, new_matrix
from fastpong.kernels.conv import (
    SIDE,
    add_side_inputs,
    conv_hidden_backward,
    conv_hidden_forward,
    prefix_gradient,
    prefix_sums,
    side_gradient,
    side_rows,
)
from fastpong.kernels.losses import loss_gradient
from fastpong.kernels.optimiser import adam, rates_of
from fastpong.kernels.patches import bucket_by_minibatch
from fastpong.kernels.structs import Adam, Bucket, Buckets, Epoch, Loss, Network, Patches, Rates, Workspace
from fastpong.kernels.tiles import CHANNELS

_ARRIVALS = 4  # of either thread in a minibatch


@kernel
def new_workspace(patches: Patches, network: Network) -> Workspace:
    """Return room for what a half of the positions computes; no patch is visited."""
    count = len(patches.strip_offsets) - 1
    grad_sums = prefix_sums(network.kernel)
    grad_sums[:] = np.float32(0.0)
    channels, grads = new_matrix(count, np.int64(CHANNELS)), new_matrix(count, np.int64(CHANNELS))
    return Workspace(np.zeros(count, np.int64), channels, grads, grad_sums)


@kernel
def bucket_of(buckets: Buckets, half: int, b: int) -> Bucket:
    """Return the pairs of minibatch b at a half of the positions."""
    return Bucket(buckets.offsets[b], buckets.offsets[b + 1], buckets.slots[half], buckets.patch_ids[half])


@kernel
def _half_of(half: int, count: Any) -> slice:
    middle = (count + 1) // 2
    return slice(0, middle) if half == 0 else slice(middle, count)


@kernel
def forward_half(half: int, b: int, work: Workspace, epoch: Epoch, network: Network) -> None:
    """Compute what the positions of a half contribute to the hidden units of minibatch b."""
    hidden = epoch.hidden[half][: epoch.offsets[b + 1] - epoch.offsets[b]]
    hidden[:] = np.float32(0.0)
    sums = prefix_sums(network.kernel)
    conv_hidden_forward(
        epoch.patches[half], bucket_of(epoch.buckets, half, b), network, sums, work, 2 * b + 1, hidden
    )  # fmt: skip


@kernel
def learn_outputs(half: int, b: int, epoch: Epoch, network: Network, gradient: Network) -> None:
    """Complete the hidden units of a half of the samples of minibatch b, and take the loss's gradient back to them."""
    begin, end, loss = epoch.offsets[b], epoch.offsets[b + 1], epoch.loss
    part = _half_of(half, end - begin)
    samples, grad_hidden = epoch.samples[begin:end][part], epoch.grad_hidden[part]
    hidden, others = epoch.hidden[0][part], epoch.hidden[1][part]
    for m in range(len(hidden)):
        unit, other = hidden[m], others[m]
        for j in range(len(unit)):
            unit[j] += other[j]
    rows, owners = side_rows(epoch.inputs, samples)
    add_side_inputs(rows, owners, network.w1, hidden)
    loss_gradient(
        hidden, epoch.sample_ids[begin:end][part], epoch.transitions, network.w2,
        Loss(loss.clip_low, loss.clip_high, loss.entropy_coef, loss.value_coef, epoch.scales[b]),
        gradient.w2, grad_hidden, epoch.statistics[half],
    )  # fmt: skip
    side_gradient(rows, owners, grad_hidden, gradient.w1)


@kernel
def _flat(
    part: int,  # 0 … 3: kernel, bias, side inputs, w2
    network: Network,
) -> F32:
    if part == 0:
        return network.kernel.reshape(-1)
    if part == 1:
        return network.bias
    return network.w1.reshape(-1)[SIDE * network.w1.shape[1] :] if part == 2 else network.w2.reshape(-1)


@kernel
def _step_rest(half: int, network: Network, gradients: tuple[Network, Network], optimiser: Adam, rates: Rates) -> None:
    """Change a half of the weights that belong to no position, whose gradient both halves have added to."""
    for part in range(2 * half, 2 * half + 2):
        gradient, other = _flat(part, gradients[0]), _flat(part, gradients[1])
        for i in range(len(other)):
            gradient[i] += other[i]
            other[i] = np.float32(0.0)
        exp_avg, exp_avg_sq = _flat(part, optimiser.exp_avg), _flat(part, optimiser.exp_avg_sq)
        adam(_flat(part, network), gradient, exp_avg, exp_avg_sq, rates)


@kernel
def epoch_half(
    thread: int,  # 0 or 1: this half, and this thread; BOTH: both halves
    progress: I64,  # see barrier.arrive; 0 at the beginning
    begin: int,  # the minibatches begin … end − 1 of the epoch
    end: int,
    epoch: Epoch,
    network: Network,  # in and out, if `optimiser.apply`
    gradients: tuple[Network, Network],  # 0; out: what either half added up, or 0 again; positions' are in the first
    optimiser: Adam,
) -> bool:
    """Do one half of some minibatches, or both halves; False if the other half's thread has failed.

    Twin: naive.minibatch_gradient.
    """
    work = (new_workspace(epoch.patches[0], network), new_workspace(epoch.patches[1], network))
    halves = range(2) if thread == BOTH else range(thread, thread + 1)
    buckets = epoch.buckets
    if begin == 0:
        for half in halves:
            bucket_by_minibatch(
                epoch.patches[half], epoch.slots, buckets.offsets, buckets.slots[half], buckets.patch_ids[half]
            )
    for b in range(begin, end):
        arrived, step = _ARRIVALS * (b - begin), optimiser.updates + b - begin + 1
        rates = rates_of(optimiser.learning_rate, step)
        for half in halves:
            forward_half(half, b, work[half], epoch, network)
        if not arrive(progress, thread, arrived + 1):
            return False
        for half in halves:
            learn_outputs(half, b, epoch, network, gradients[half])
        if not arrive(progress, thread, arrived + 2):
            return False
        for half in halves:
            conv_hidden_backward(
                epoch.patches[half], bucket_of(buckets, half, b), network, epoch.grad_hidden, work[half], 2 * b + 2,
                (gradients[0], gradients[half]), (optimiser, rates),
            )  # fmt: skip
            prefix_gradient(work[half].grad_sums, gradients[half].kernel)
        if not arrive(progress, thread, arrived + 3):
            return False
        if optimiser.apply:
            for half in halves:
                _step_rest(half, network, gradients, optimiser, rates)
        if not arrive(progress, thread, arrived + 4):
            return False
    return True
