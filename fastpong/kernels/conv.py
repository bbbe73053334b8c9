"""A convolution over nearly empty images, and the hidden layer on top of it: forward and gradient.

Every position (`fastpong.kernels.patches`) has 16 channels, relu(bias + Σ kernel[pixel]); a position whose patch is
empty is left out.

    channels = relu(kernel * images + bias)     (position, channel)
    hidden = relu(channels · w1 + side inputs)  w1 is (position · 16 + channel, hidden); the side inputs are a constant
                                                and the previous actions

Four things make it cheap. A vertical strip of pixels adds up consecutive rows of the kernel, which is the difference
of two prefix sums. Empty patches cost nothing. Channels are computed once for all pairs with the same patch, and their
product with `w1` once for all samples with this patch at this position. And the rows of `w1` of one position are used
for all of them, one after the other, so that they are read from memory once a minibatch. The gradient goes the same way
back.
"""

from typing import Any

import numpy as np

from fastpong.arrays import F32, I32, I64
from fastpong.dense import CELL, SIDE_INPUTS
from fastpong.kernels.compile.jit import fused, kernel, new_matrix
from fastpong.kernels.compile.simd import COLUMNS
from fastpong.kernels.gathers import add_to_rows, conv_backward, conv_forward, sum_rows
from fastpong.kernels.optimiser import adam
from fastpong.kernels.patches import POSITIONS
from fastpong.kernels.structs import Adam, Bucket, Inputs, Network, Patches, Rates, Workspace
from fastpong.kernels.tiles import (
    CHANNELS,
    ONE,
    PATCH_BLOCK,
    add_dots,
    add_four_outer,
    add_outer,
    four_products,
    products,
)

SIDE = POSITIONS * CHANNELS
"""The first row of `w1` that belongs to a side input."""
INPUTS = SIDE + SIDE_INPUTS
"""Rows of `w1`."""

GROUP_BLOCK = 32
"""Patches whose products, or sums, are computed before they are used, a power of 2: with 64 columns they take 8 KB."""

_ROWS, _COLUMNS = CELL


@kernel
def prefix_sums(
    weights: F32,  # (frames, 8, 4, 64) the kernel: of a pixel's row and column in its cell, for four positions
) -> F32:
    """Return sums over the rows above (4 cells · frames · 4 columns · 9 rows, 16): a strip costs two reads.

    Twin: naive.prefix_sums.
    """
    frames, cells = weights.shape[0], weights.shape[3] // CHANNELS
    sums = new_matrix(cells * frames * _COLUMNS * (_ROWS + 1), np.int64(CHANNELS))
    for d in range(cells):
        for f in range(frames):
            for column in range(_COLUMNS):
                first = ((d * frames + f) * _COLUMNS + column) * (_ROWS + 1)
                for c in range(CHANNELS):
                    sums[first, c] = np.float32(0.0)
                for row in range(_ROWS):
                    for c in range(CHANNELS):
                        sums[first + row + 1, c] = sums[first + row, c] + weights[f, row, column, d * CHANNELS + c]
    return sums


@kernel
def prefix_gradient(
    grad_sums: F32,  # as `prefix_sums` returns them; out: zeros
    gradient: F32,  # (frames, 8, 4, 64) in and out: the kernel's gradient is added
) -> None:
    """Turn the gradient of `prefix_sums` into that of the kernel: each row is part of all later sums."""
    frames = gradient.shape[0]
    for d in range(gradient.shape[3] // CHANNELS):
        for f in range(frames):
            for column in range(_COLUMNS):
                first = ((d * frames + f) * _COLUMNS + column) * (_ROWS + 1)
                for c in range(CHANNELS):
                    total = np.float32(0.0)
                    for row in range(_ROWS - 1, -1, -1):
                        total += grad_sums[first + row + 1, c]
                        gradient[f, row, column, d * CHANNELS + c] += total
                        grad_sums[first + row + 1, c] = np.float32(0.0)
                    grad_sums[first, c] = np.float32(0.0)


@kernel
def list_groups(
    patch_ids: I32,
    begin: Any,  # int64, begin < end
    end: Any,
    patches: I64,  # (pairs,) out: the patch of each group, in order
    heads: I64,  # (pairs + 1,) out: where the pairs of each group begin, and where those of the last end
    groups: I64,  # (pairs,) out: the group of each pair, modulo GROUP_BLOCK
) -> Any:
    """Group the pairs begin … end − 1 of a position by patch, and return the number of groups. Twin: naive.groups.

    Without branches that depend on the patches: how many samples of a minibatch have the same patch is as good as
    random, two or three mostly. A processor that predicts the end of a loop over them wrongly loses some 20 cycles, in
    which it could have added four rows.
    """
    count, last = np.int64(0), end - 1
    heads[0] = begin
    for k in range(begin, last):
        patch = np.int64(patch_ids[k])
        patches[count], heads[count + 1], groups[k - begin] = patch, k + 1, count & (GROUP_BLOCK - 1)
        count += np.int64(patch != patch_ids[k + 1])
    patches[count], heads[count + 1], groups[last - begin] = patch_ids[last], end, count & (GROUP_BLOCK - 1)
    return count + 1


@kernel
def list_new(
    patches: I64,
    count: Any,
    visited: I64,  # (patches,) in and out
    stamp: int,
    new: I64,  # (…,) out, from `known` on: the patches that had another stamp
    known: Any,
) -> Any:
    """Stamp the patches of some groups, and return `known` plus the number of new ones."""
    for i in range(count):
        patch = patches[i]
        new[known] = patch
        known += np.int64(visited[patch] != stamp)
        visited[patch] = stamp
    return known


@fused
def conv_hidden_forward(
    patches: Patches,
    bucket: Bucket,  # the pairs of some positions in this minibatch
    network: Network,  # w1 has a multiple of 64 columns
    sums: F32,  # see prefix_sums
    work: Workspace,  # visited and channels: in and out
    stamp: Any,  # of the patches whose channels are known
    totals: I32,  # (m, hidden) in and out: what the positions contribute is added, `ONE` for 1
) -> None:
    """Compute the channels of patches, and what positions contribute to the hidden units of a minibatch.

    Twin: naive.hidden_units.
    """
    w1, channels, patch_ids = network.w1, work.channels, bucket.patch_ids
    count, columns = len(totals), w1.shape[1]  # a place has at most one pair of each sample
    ids, heads, groups = np.empty(count, np.int64), np.empty(count + 1, np.int64), np.empty(count, np.int64)
    new, results = np.empty(count, np.int64), new_matrix(np.int64(GROUP_BLOCK), columns).view(np.int32)
    for place in range(bucket.first, bucket.last):
        position, begin, end = patches.positions[place], np.int64(bucket.begins[place]), np.int64(bucket.ends[place])
        base = position * CHANNELS
        if begin == end:
            continue
        total = list_groups(patch_ids, begin, end, ids, heads, groups)
        for i in range(list_new(ids, total, work.visited, stamp, new, np.int64(0))):
            p = new[i]
            conv_forward(
                channels, p, network.bias, sums, patches.strips,
                patches.strip_offsets[p], patches.strip_offsets[p + 1],
            )  # fmt: skip
        for first in range(0, total, GROUP_BLOCK):
            last = min(first + GROUP_BLOCK, total)
            fours = first + (last - first) // PATCH_BLOCK * PATCH_BLOCK
            for j in range(0, columns, COLUMNS):
                for n in range(first, fours, PATCH_BLOCK):
                    four_products(results, channels, w1, base, j, ids, n, n - first)
                for n in range(fours, last):
                    products(results, channels, w1, base, j, ids, n, n - first)
                add_to_rows(totals, bucket.slots, heads[first], heads[last], results, groups, begin, j)


@kernel
def side_rows(
    inputs: Inputs,
    samples: I64,  # (m,)
) -> tuple[I64, I64]:
    """List the side inputs of some samples, as rows of `w1` from `SIDE` on, and the index of each one's sample.

    A sample has the row of the constant, then those of its actions before, the latest first.
    """
    arrays, count = inputs.arrays, 0
    most = len(samples) * (inputs.action_history + 1)
    rows, owners = np.empty(most, np.int64), np.empty(most, np.int64)
    for m in range(len(samples)):
        for lag in range(min(inputs.action_history, arrays.steps_since_reset[samples[m]]) + 1):
            row = np.int64(0)
            if lag > 0:
                row += 1 + (lag - 1) * inputs.num_actions + np.int64(arrays.actions[samples[m] - lag * inputs.envs])
            rows[count], owners[count] = row, m
            count += 1
    return rows[:count], owners[:count]


@kernel
def finish_hidden(
    totals: I32,  # (threads, …, hidden) what positions contribute, see `conv_hidden_forward`; overwritten
    first: int,  # the samples have the rows first … last − 1 of each
    last: int,
    rows: I64,  # (n,) as `side_rows` lists them
    owners: I64,  # (n,)
    w1: F32,
) -> F32:
    """Return the hidden units of some samples, float32 (m, hidden): with the side inputs, after the relu.

    Twin: naive.hidden_units.
    """
    side, hidden, one = w1[SIDE:], new_matrix(last - first, w1.shape[1]), np.float32(1.0 / ONE)
    for m in range(len(hidden)):
        total, unit = totals[0, first + m], hidden[m]
        for other in range(1, len(totals)):
            more = totals[other, first + m]
            for j in range(len(total)):
                total[j] += more[j]
        for j in range(len(total)):
            unit[j] = one * np.float32(total[j])
    for j in range(0, hidden.shape[1], COLUMNS):
        add_to_rows(hidden, owners, np.int64(0), np.int64(len(rows)), side, rows, np.int64(0), j)
    for m in range(len(hidden)):
        unit = hidden[m]
        for j in range(len(unit)):
            unit[j] = unit[j] if unit[j] > 0.0 else np.float32(0.0)
    return hidden


@kernel
def side_gradient(
    rows: I64,  # (n,) as `side_rows` lists them
    owners: I64,  # (n,)
    grad_hidden: F32,  # (m, hidden) gradient of the hidden units, 0 where the relu is off
    grad_side: F32,  # (16, hidden) in and out: the gradient is added
) -> None:
    """Carry the gradient of the hidden units of some samples back to the side inputs' rows."""
    for j in range(0, grad_hidden.shape[1], COLUMNS):
        add_to_rows(grad_side, rows, np.int64(0), np.int64(len(rows)), grad_hidden, owners, np.int64(0), j)


@fused
def conv_hidden_backward(
    patches: Patches,  # as for `conv_hidden_forward`, here and in the next
    bucket: Bucket,
    network: Network,  # w1 in; out: new weights for these positions, if `state.apply`
    grad_hidden: F32,  # (m, hidden) gradient of the hidden units, 0 where the relu is off
    work: Workspace,  # channels: in; visited and grad_sums: in and out
    stamp: int,  # where grad_channels counts; another one than in `conv_hidden_forward`
    grad_w1: F32,  # (7072, hidden) in and out, unless `state.apply`
    grad_bias: F32,  # (16,) in and out
    optimiser: tuple[Adam, Rates],  # in and out, if `apply`; `touched`: set for the positions that have pairs
) -> None:
    """Carry the gradient of the hidden units back to the positions' rows of `w1`, and to the convolution."""
    w1, channels, grad_channels = network.w1, work.channels, work.grad_channels
    used, (state, rates) = work.used, optimiser
    exp_avg, exp_avg_sq = state.exp_avg.w1.reshape(-1), state.exp_avg_sq.w1.reshape(-1)
    count, columns = len(grad_hidden), w1.shape[1]
    ids, heads, groups = np.empty(count, np.int64), np.empty(count + 1, np.int64), np.empty(count, np.int64)
    sums = new_matrix(np.int64(GROUP_BLOCK), columns)
    known: Any = np.int64(0)
    # A gradient that is applied at once needs no more room than a position's, which stays in the first cache.
    target = new_matrix(np.int64(CHANNELS), columns) if state.apply else grad_w1
    if state.apply:
        target[:] = np.float32(0.0)
    for place in range(bucket.first, bucket.last):
        position, begin, end = patches.positions[place], np.int64(bucket.begins[place]), np.int64(bucket.ends[place])
        base = position * CHANNELS
        if begin == end:
            continue
        state.touched[position] = True
        into = 0 if state.apply else base
        total = list_groups(bucket.patch_ids, begin, end, ids, heads, groups)
        before, known = known, list_new(ids, total, work.visited, stamp, used, known)
        for i in range(before, known):
            grad_channels[used[i]] = np.float32(0.0)
        for first in range(0, total, GROUP_BLOCK):
            last = min(first + GROUP_BLOCK, total)
            fours = first + (last - first) // PATCH_BLOCK * PATCH_BLOCK
            for j in range(0, columns, COLUMNS):
                sum_rows(sums, grad_hidden, bucket.slots, heads[first], heads[last], groups, begin, j)
                for n in range(first, last):
                    add_dots(grad_channels, ids[n], sums, n - first, w1, base, j)
                for n in range(first, fours, PATCH_BLOCK):
                    add_four_outer(target, channels, sums, into, j, ids, n, n - first)
                for n in range(fours, last):
                    add_outer(target, channels, sums, into, j, ids, n, n - first)
        if state.apply:
            tile = slice(base * columns, (base + CHANNELS) * columns)
            adam(w1.reshape(-1)[tile], target.reshape(-1), exp_avg[tile], exp_avg_sq[tile], rates)
    for i in range(known):
        p = used[i]
        conv_backward(
            channels, grad_channels, p, grad_bias, work.grad_sums, patches.strips,
            patches.strip_offsets[p], patches.strip_offsets[p + 1],
        )  # fmt: skip
