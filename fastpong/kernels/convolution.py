"""A convolution over nearly empty images, and the hidden layer on top of it: forward and gradient.

The court (160×80 pixels of 0 or 1, three or so frames deep) is cut into cells of 8×4 pixels. A *site* is a corner
where four cells meet: it sees these 16×8 pixels, so each pixel is seen by four sites, and neighbouring sites are
8 rows or 4 columns apart. Every site has 16 channels, relu(Σ kernel[pixel]); a site that sees no set pixel is silent,
and of 441 sites about 27 are not.

    acts = relu(kernel * frames)       (site, channel)
    hidden = relu(acts · w1 + facts)   w1 is (site · 16 + channel, hidden); facts are a constant and the last actions

Three things make it cheap. A vertical run of pixels adds up consecutive rows of the kernel, which is the difference
of two prefix sums. Sites that are silent cost nothing. And the rows of `w1` of one site are used for all samples that
need them, one after the other, so that they are read from memory once a minibatch and not once a sample.
"""

import numpy as np
import numpy.typing as npt

from fastpong.kernels.images import COURT, RUN
from fastpong.kernels.jit import kernel, reassociated
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
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

CELL = (RUN, 4)
"""Rows and columns of a cell."""
GRID = (COURT[0] // CELL[0] + 1, COURT[1] // CELL[1] + 1)
"""Rows and columns of sites."""
SITES = GRID[0] * GRID[1]
INPUTS = (SITES + 1) * CHANNELS
"""Rows of `w1`: the last 16 belong to the facts."""

_ROWS, _COLUMNS, _WIDTH = CELL[0], CELL[1], GRID[1]
_COURT_WIDTH = COURT[1]
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
    return np.zeros((frames, columns, rows + 1, quartets), np.float32)


@kernel
def _place(
    run: int,  # see images.find_runs
) -> tuple[np.int64, np.int64, np.int64, np.int64]:
    """Say where a run is: the first of its four sites, and its column, first row and row after the last in its cell."""
    length, position = np.int64(run) % RUN + 1, np.int64(run) // RUN
    row, column = position // _COURT_WIDTH, position % _COURT_WIDTH
    corner = row // _ROWS * _WIDTH + column // _COLUMNS
    return corner, column % _COLUMNS, row % _ROWS, row % _ROWS + length


@reassociated
def convolve(
    runs: I32,  # (…,) see images.find_runs
    starts: I64,  # (rows · games,)
    lengths: I64,  # (rows · games,)
    ages: I64,  # (rows · games,) steps of the game before this screen
    games: int,  # the sample before sample s is s − games
    samples: I64,  # (m,)
    sums: F32,  # (frames, 4, 9, 64) see prefix_sums
    bounds: I64,  # (m + 1,) out: the entries of sample i are bounds[i] … bounds[i + 1] − 1
    sites: I64,  # (…,) out: the site of each entry
    acts: F32,  # (…, 16) out: its channels, after the relu
) -> int:
    """Compute the channels of all sites that see something, and return how many entries that makes."""
    marks = np.zeros(SITES, np.int64)  # 1 + entry of each site, if it is one of this sample's
    rows = sums.reshape(-1, _QUARTETS)
    count = 0
    for m in range(len(samples)):
        first = count
        bounds[m] = count
        for f in range(min(ages[samples[m]] + 1, sums.shape[0])):
            sample = samples[m] - f * games
            for k in range(starts[sample], starts[sample] + lengths[sample]):
                corner, column, top, bottom = _place(runs[k])
                for d in range(4):
                    site = corner + (d >> 1) * _WIDTH + (d & 1)
                    if marks[site] <= first:
                        sites[count] = site
                        for c in range(CHANNELS):
                            acts[count, c] = np.float32(0.0)
                        count += 1
                        marks[site] = count
                base = (f * _COLUMNS + column) * (_ROWS + 1)
                add_run(
                    acts, rows, base + bottom, base + top, marks[corner] - 1, marks[corner + 1] - 1,
                    marks[corner + _WIDTH] - 1, marks[corner + _WIDTH + 1] - 1,
                )  # fmt: skip
    bounds[len(samples)] = count
    for i in range(count):
        for c in range(CHANNELS):
            acts[i, c] = max(acts[i, c], np.float32(0.0))
    return count


@reassociated
def convolve_gradient(
    runs: I32,
    starts: I64,
    lengths: I64,
    ages: I64,
    games: int,
    samples: I64,
    bounds: I64,
    sites: I64,
    grad_acts: F32,  # (…, 16) gradient of each entry's channels, 0 where the relu is off
    grad_sums: F32,  # (frames, 4, 9, 64) in and out: the gradient is added
) -> None:
    """Carry the gradient of the channels back to the kernel's prefix sums; arguments as for `convolve`."""
    entries = np.zeros(SITES, np.int64)
    rows = grad_sums.reshape(-1, _QUARTETS)
    for m in range(len(samples)):
        for e in range(bounds[m], bounds[m + 1]):
            entries[sites[e]] = e
        for f in range(min(ages[samples[m]] + 1, grad_sums.shape[0])):
            sample = samples[m] - f * games
            for k in range(starts[sample], starts[sample] + lengths[sample]):
                corner, column, top, bottom = _place(runs[k])
                base = (f * _COLUMNS + column) * (_ROWS + 1)
                add_run_gradient(
                    grad_acts, rows, base + bottom, base + top, entries[corner], entries[corner + 1],
                    entries[corner + _WIDTH], entries[corner + _WIDTH + 1],
                )  # fmt: skip


@kernel
def group_by_site(
    bounds: I64,  # (m + 1,)
    sites: I64,  # (…,) of each entry
    groups: I64,  # (442,) out: the entries of site s are order[groups[s]] … order[groups[s + 1] − 1]
    order: I64,  # (…,) out: entries, sorted by site
    owners: I64,  # (…,) out: the number i of the sample that each entry belongs to
) -> None:
    """Sort the entries by site."""
    count = bounds[len(bounds) - 1]
    groups[:] = 0
    for e in range(count):
        groups[sites[e] + 1] += 1
    for s in range(1, len(groups)):
        groups[s] += groups[s - 1]
    for m in range(len(bounds) - 1):
        for e in range(bounds[m], bounds[m + 1]):
            owners[e] = m
            order[groups[sites[e]]] = e
            groups[sites[e]] += 1
    for s in range(len(groups) - 1, 0, -1):
        groups[s] = groups[s - 1]
    groups[0] = 0


@reassociated
def hidden_layer(
    ages: I64,  # (rows · games,)
    actions: U8,  # (rows · games,)
    games: int,
    samples: I64,  # (m,)
    past: int,  # how many of the last actions are seen
    choices: int,  # how many actions there are
    groups: I64,
    order: I64,
    owners: I64,
    acts: F32,
    w1: F32,  # (7072, hidden) a multiple of 16 columns
    hidden: F32,  # (m, hidden) out, after the relu
) -> None:
    """Compute the hidden units of all samples; see `group_by_site` for what is not explained here."""
    for m in range(len(samples)):
        sample = samples[m]
        hidden[m] = w1[_FACTS]
        for lag in range(1, min(past, ages[sample]) + 1):
            row = w1[_FACTS + 1 + (lag - 1) * choices + np.int64(actions[sample - lag * games])]
            for j in range(hidden.shape[1]):
                hidden[m, j] += row[j]
    wide = hidden.shape[1] // _WIDE * _WIDE
    for site in range(SITES):
        base, k, end = site * CHANNELS, groups[site], groups[site + 1]
        while k < end:
            e, f = order[k], order[min(k + 1, end - 1)]
            for j in range(0, wide, _WIDE):
                if k + 1 < end:
                    add_two_rows_wide(hidden, acts, w1, base, j, e, f, owners[e], owners[f])
                else:
                    add_rows_wide(hidden, acts, w1, base, j, e, e, owners[e], owners[e])
            for i in range(k, min(k + 2, end)):
                e = order[i]
                for j in range(wide, hidden.shape[1], CHANNELS):
                    add_rows_narrow(hidden, acts, w1, base, j, e, e, owners[e], owners[e])
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
    order: I64,
    owners: I64,
    acts: F32,  # (…, 16) in: the channels; out: their gradient, 0 where the relu is off
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
            e, f, g, h = order[k], order[min(k + 1, end - 1)], order[min(k + 2, end - 1)], order[min(k + 3, end - 1)]
            if k + 4 <= end:
                p, q, r, s = owners[e], owners[f], owners[g], owners[h]
                for j in range(0, wide, _WIDE):
                    add_four_outer_wide(grad_w1, acts, grad_hidden, base, j, e, f, g, h, p, q, r, s)
            for i in range(k, min(k + 4, end)):
                e = order[i]
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


@kernel
def entries_at_most(lengths: I64, ages: I64, games: int, samples: I64, frames: int) -> int:
    """Return an upper bound of what `convolve` counts: four sites a run, and at most all sites a sample."""
    total = 0
    for m in range(len(samples)):
        number = 0
        for f in range(min(ages[samples[m]] + 1, frames)):
            number += 4 * lengths[samples[m] - f * games]
        total += min(number, SITES)
    return total


@reassociated
def forward(
    runs: I32,
    starts: I64,
    lengths: I64,
    ages: I64,
    games: int,
    actions: U8,
    samples: I64,  # (m,)
    weights: F32,  # (frames, 8, 4, 64) the kernel of the convolution
    w1: F32,  # (7072, hidden)
    past: int,
    choices: int,
) -> tuple[F32, F32, I64, I64, I64, I64, I64]:
    """Compute the hidden units (m, hidden) of all samples; arguments as for `convolve` and `hidden_layer`.

    What the gradient needs comes with them: acts, bounds, sites, groups, order and owners.
    """
    sums = new_sums(weights)
    most = entries_at_most(lengths, ages, games, samples, weights.shape[0])
    bounds, sites = np.empty(len(samples) + 1, np.int64), np.empty(most, np.int64)
    groups, order, owners = np.empty(SITES + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    acts = np.empty((most, CHANNELS), np.float32)
    hidden = np.empty((len(samples), w1.shape[1]), np.float32)
    prefix_sums(weights, sums)
    convolve(runs, starts, lengths, ages, games, samples, sums, bounds, sites, acts)
    group_by_site(bounds, sites, groups, order, owners)
    hidden_layer(ages, actions, games, samples, past, choices, groups, order, owners, acts, w1, hidden)
    return hidden, acts, bounds, sites, groups, order, owners
