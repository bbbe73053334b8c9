"""A convolution over nearly empty images, and the hidden layer on top of it: forward and gradient.

Every site (`fastpong.kernels.sites`) has 16 channels, relu(bias + Σ kernel[pixel]); a site that sees no set pixel is
silent.

    acts = relu(kernel * frames + bias)   (site, channel)
    hidden = relu(acts · w1 + facts)      w1 is (site · 16 + channel, hidden); facts are a constant and the last actions

Three things make it cheap. A vertical run of pixels adds up consecutive rows of the kernel, which is the difference
of two prefix sums. Sites that are silent cost nothing. And channels lie in memory in the order of their sites: the rows
of `w1` of one site are used for all samples that need them, one after the other, so that they are read from memory
once a minibatch and not once a sample.
"""

import numpy as np
import numpy.typing as npt

from fastpong.kernels.aligned import new_matrix
from fastpong.kernels.jit import kernel, reassociated
from fastpong.kernels.sites import CELL, SITES, group_by_site, unpack
from fastpong.kernels.tiles import (
    CHANNELS,
    WIDE,
    add_four_outer_wide,
    add_outer_narrow,
    add_outer_wide,
    add_rows_narrow,
    add_rows_wide,
    add_run,
    add_run_gradient,
    add_two_rows_wide,
    dot_rows_narrow,
    dot_rows_wide,
    replace_positive,
)

F32 = npt.NDArray[np.float32]
I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

INPUTS = (SITES + 1) * CHANNELS
"""Rows of `w1`: the last 16 belong to the facts."""

_ROWS, _COLUMNS = CELL
_FACTS = SITES * CHANNELS
_QUARTETS = 4 * CHANNELS
_WIDE = WIDE * CHANNELS


@kernel
def prefix_sums(
    weights: F32,  # (frames, 8, 4, 64) the kernel: of a pixel's row and column in its cell, for four sites
    sums: F32,  # (frames, 4, 9, 64) out: sums over the rows above
) -> None:
    """Add up the kernel's rows, so that a run of pixels costs two reads."""
    for f in range(weights.shape[0]):
        for column in range(_COLUMNS):
            sums[f, column, 0] = np.float32(0.0)
            for row in range(_ROWS):
                for c in range(_QUARTETS):
                    sums[f, column, row + 1, c] = sums[f, column, row, c] + weights[f, row, column, c]


@kernel
def prefix_gradient(
    grad_sums: F32,  # (frames, 4, 9, 64)
    gradient: F32,  # (frames, 8, 4, 64) in and out: the kernel's gradient is added
) -> None:
    """Turn the gradient of `prefix_sums` into that of the kernel: each row is part of all later sums."""
    for f in range(gradient.shape[0]):
        for column in range(_COLUMNS):
            for c in range(_QUARTETS):
                total = np.float32(0.0)
                for row in range(_ROWS - 1, -1, -1):
                    total += grad_sums[f, column, row + 1, c]
                    gradient[f, row, column, c] += total


@kernel
def new_sums(
    weights: F32,  # (frames, 8, 4, 64)
) -> F32:
    """Return zeros (frames, 4, 9, 64) for `prefix_sums` or for their gradient."""
    frames, rows, columns, quartets = weights.shape
    sums = new_matrix(frames * columns * (rows + 1), quartets)
    sums[:] = np.float32(0.0)
    return sums.reshape(frames, columns, rows + 1, quartets)


@reassociated
def convolve(
    run_bounds: I64,  # see sites.list_sites
    moves: I64,
    picks: I64,  # (m,) which of the listed samples
    sums: F32,  # (frames, 4, 9, 64) see prefix_sums
    bias: F32,  # (16,) of the channels
    firsts: I64,  # (m + 1,) see sites.group_by_site
    places: I64,
    acts: F32,  # (places, 16) out: the channels at each place, after the relu
) -> None:
    """Compute the channels of all sites that see something."""
    rows, channels = sums.reshape(-1, _QUARTETS), new_matrix(SITES, CHANNELS)
    for m in range(len(picks)):
        first, count = firsts[m], firsts[m + 1] - firsts[m]
        for e in range(count):  # array = array would also compile its error text: 3 s
            for c in range(CHANNELS):
                channels[e, c] = bias[c]
        for k in range(run_bounds[picks[m]], run_bounds[picks[m] + 1]):
            within, above, e0, e1, e2, e3 = unpack(moves[k])
            add_run(channels, rows, within, above, e0, e1, e2, e3)
        for e in range(count):
            place = places[first + e]
            for c in range(CHANNELS):
                acts[place, c] = max(channels[e, c], np.float32(0.0))


@reassociated
def convolve_gradient(
    run_bounds: I64,
    moves: I64,
    picks: I64,
    firsts: I64,
    places: I64,
    grad_acts: F32,  # (places, 16) gradient of the channels, 0 where the relu is off
    grad_sums: F32,  # (frames, 4, 9, 64) in and out: the gradient is added
    grad_bias: F32,  # (16,) in and out: the gradient is added
) -> None:
    """Carry the gradient of the channels back to bias and prefix sums of the kernel; arguments as for `convolve`."""
    rows, channels = grad_sums.reshape(-1, _QUARTETS), new_matrix(SITES, CHANNELS)
    for m in range(len(picks)):
        first = firsts[m]
        for e in range(firsts[m + 1] - first):
            place = places[first + e]
            for c in range(CHANNELS):
                channels[e, c] = grad_acts[place, c]
                grad_bias[c] += grad_acts[place, c]
        for k in range(run_bounds[picks[m]], run_bounds[picks[m] + 1]):
            within, above, e0, e1, e2, e3 = unpack(moves[k])
            add_run_gradient(channels, rows, within, above, e0, e1, e2, e3)


@reassociated
def hidden_layer(
    ages: I64,  # (rows · games,)
    actions: U8,  # (rows · games,)
    games: int,
    samples: I64,  # (m,)
    past: int,  # how many of the last actions are seen
    choices: int,  # how many actions there are
    groups: I64,
    owners: I64,
    acts: F32,
    w1: F32,  # (7072, hidden) a multiple of 16 columns
    hidden: F32,  # (m, hidden) out, after the relu
) -> None:
    """Compute the hidden units of all samples; see `sites.group_by_site` for what is not explained here."""
    for m in range(len(samples)):
        sample = samples[m]
        for j in range(hidden.shape[1]):
            hidden[m, j] = w1[_FACTS, j]
        for lag in range(1, min(past, ages[sample]) + 1):
            row = w1[_FACTS + 1 + (lag - 1) * choices + np.int64(actions[sample - lag * games])]
            for j in range(hidden.shape[1]):
                hidden[m, j] += row[j]
    wide = hidden.shape[1] // _WIDE * _WIDE
    for site in range(SITES):
        base, k, end = site * CHANNELS, groups[site], groups[site + 1]
        while k < end:
            e, f = k, min(k + 1, end - 1)
            for j in range(0, wide, _WIDE):
                if e < f:
                    add_two_rows_wide(hidden, acts, w1, base, j, e, f, owners[e], owners[f])
                else:
                    add_rows_wide(hidden, acts, w1, base, j, e, e, owners[e], owners[e])
            for i in range(e, f + 1):
                for j in range(wide, hidden.shape[1], CHANNELS):
                    add_rows_narrow(hidden, acts, w1, base, j, i, i, owners[i], owners[i])
            k += 2
    for m in range(len(samples)):
        for j in range(hidden.shape[1]):
            hidden[m, j] = max(hidden[m, j], np.float32(0.0))


@reassociated
def hidden_gradient(
    ages: I64,
    actions: U8,
    games: int,
    samples: I64,
    past: int,
    choices: int,
    groups: I64,
    owners: I64,
    acts: F32,  # (places, 16) in: the channels; out: their gradient, 0 where the relu is off
    w1: F32,
    grad_hidden: F32,  # (m, hidden) gradient of the hidden units, 0 where the relu is off
    grad_w1: F32,  # (7072, hidden) in and out: the gradient is added
) -> None:
    """Carry the gradient of the hidden units back to `w1` and to the channels; arguments as for `hidden_layer`."""
    for m in range(len(samples)):
        sample, grad = samples[m], grad_hidden[m]
        constant = grad_w1[_FACTS]
        for j in range(grad.shape[0]):
            constant[j] += grad[j]
        for lag in range(1, min(past, ages[sample]) + 1):
            row = grad_w1[_FACTS + 1 + (lag - 1) * choices + np.int64(actions[sample - lag * games])]
            for j in range(grad.shape[0]):
                row[j] += grad[j]
    columns = grad_hidden.shape[1]
    wide = columns // _WIDE * _WIDE
    dots = np.zeros((1, CHANNELS), np.float32)
    for site in range(SITES):
        base, end = site * CHANNELS, groups[site + 1]
        k = groups[site]
        while k < end:
            if k + 4 <= end:
                p, q, r, s = owners[k], owners[k + 1], owners[k + 2], owners[k + 3]
                for j in range(0, wide, _WIDE):
                    add_four_outer_wide(grad_w1, acts, grad_hidden, base, j, k, k + 1, k + 2, k + 3, p, q, r, s)
            for e in range(k, min(k + 4, end)):
                m = owners[e]
                for j in range(0, wide, _WIDE):
                    if k + 4 > end:
                        add_outer_wide(grad_w1, acts, grad_hidden, base, j, e, e, e, e, m, m, m, m)
                    dot_rows_wide(dots, grad_hidden, w1, base, j, m)
                for j in range(wide, columns, CHANNELS):
                    add_outer_narrow(grad_w1, acts, grad_hidden, base, j, e, e, e, e, m, m, m, m)
                    dot_rows_narrow(dots, grad_hidden, w1, base, j, m)
                replace_positive(acts, e, dots)
            k += 4


@reassociated
def forward(
    bounds: I64,  # see sites.list_sites, here and in the next three
    sites: I16,
    run_bounds: I64,
    moves: I64,
    picks: I64,  # (m,) which of the listed samples
    ages: I64,  # (rows · games,)
    games: int,
    actions: U8,  # (rows · games,)
    samples: I64,  # (m,) the same samples, as indices into these two arrays
    weights: F32,  # (frames, 8, 4, 64) the kernel of the convolution
    bias: F32,  # (16,) of its channels
    w1: F32,  # (7072, hidden)
    past: int,
    choices: int,
) -> tuple[F32, F32, I64, I64, I64, I64]:
    """Compute the hidden units (m, hidden) of some samples; arguments as for `hidden_layer`.

    What the gradient needs comes with them: acts, groups, firsts, places and owners.
    """
    count = 0
    for pick in picks:
        count += bounds[pick + 1] - bounds[pick]
    groups, firsts = np.empty(SITES + 1, np.int64), np.empty(len(picks) + 1, np.int64)
    places, owners = np.empty(count, np.int64), np.empty(count, np.int64)
    acts, hidden = new_matrix(count, CHANNELS), new_matrix(len(picks), w1.shape[1])
    sums = new_sums(weights)
    prefix_sums(weights, sums)
    group_by_site(bounds, sites, picks, groups, firsts, places, owners)
    convolve(run_bounds, moves, picks, sums, bias, firsts, places, acts)
    hidden_layer(ages, actions, games, samples, past, choices, groups, owners, acts, w1, hidden)
    return hidden, acts, groups, firsts, places, owners


@reassociated
def backward(
    run_bounds: I64,  # see sites.list_sites, here and in the next
    moves: I64,
    picks: I64,  # (m,) which of the listed samples
    ages: I64,  # (rows · games,)
    games: int,
    actions: U8,  # (rows · games,)
    samples: I64,  # (m,) the same samples, as indices into these two arrays
    w1: F32,  # (7072, hidden)
    past: int,
    choices: int,
    acts: F32,  # as `forward` returned them; out: their gradient
    groups: I64,
    firsts: I64,
    places: I64,
    owners: I64,
    grad_hidden: F32,  # (m, hidden) gradient of the hidden units, 0 where the relu is off
    grad_weights: F32,  # (frames, 8, 4, 64) in and out: the gradient is added, here and in the next two
    grad_bias: F32,  # (16,)
    grad_w1: F32,  # (7072, hidden)
    touched: npt.NDArray[np.bool_],  # (442,) in and out: set for the sites whose rows of grad_w1 were added to
) -> None:
    """Carry the gradient of the hidden units that `forward` computed back to the weights."""
    hidden_gradient(ages, actions, games, samples, past, choices, groups, owners, acts, w1, grad_hidden, grad_w1)
    grad_sums = new_sums(grad_weights)
    convolve_gradient(run_bounds, moves, picks, firsts, places, acts, grad_sums, grad_bias)
    prefix_gradient(grad_sums, grad_weights)
    for site in range(SITES):
        if groups[site + 1] > groups[site]:
            touched[site] = True
    touched[SITES] = True
