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

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

CHANNELS = 16
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
    count = 0
    for m in range(len(samples)):
        first = count
        bounds[m] = count
        for f in range(min(ages[samples[m]] + 1, sums.shape[0])):
            sample = samples[m] - f * games
            for k in range(starts[sample], starts[sample] + lengths[sample]):
                corner, column, top, bottom = _place(runs[k])
                above, within = sums[f, column, top], sums[f, column, bottom]
                for d in range(4):
                    site = corner + (d >> 1) * _WIDTH + (d & 1)
                    if marks[site] <= first:
                        marks[site] = count + 1
                        sites[count] = site
                        for c in range(CHANNELS):
                            acts[count, c] = within[d * CHANNELS + c] - above[d * CHANNELS + c]
                        count += 1
                    else:
                        act = acts[marks[site] - 1]
                        for c in range(CHANNELS):
                            act[c] += within[d * CHANNELS + c] - above[d * CHANNELS + c]
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
    for m in range(len(samples)):
        for e in range(bounds[m], bounds[m + 1]):
            entries[sites[e]] = e
        for f in range(min(ages[samples[m]] + 1, grad_sums.shape[0])):
            sample = samples[m] - f * games
            for k in range(starts[sample], starts[sample] + lengths[sample]):
                corner, column, top, bottom = _place(runs[k])
                above, within = grad_sums[f, column, top], grad_sums[f, column, bottom]
                for d in range(4):
                    grad = grad_acts[entries[corner + (d >> 1) * _WIDTH + (d & 1)]]
                    for c in range(CHANNELS):
                        within[d * CHANNELS + c] += grad[c]
                        above[d * CHANNELS + c] -= grad[c]


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
def _add_rows(hidden: F32, act: F32, w1: F32, base: int) -> None:
    for c in range(0, CHANNELS, 8):
        r0, r1, r2, r3 = w1[base + c], w1[base + c + 1], w1[base + c + 2], w1[base + c + 3]
        r4, r5, r6, r7 = w1[base + c + 4], w1[base + c + 5], w1[base + c + 6], w1[base + c + 7]
        a0, a1, a2, a3 = act[c], act[c + 1], act[c + 2], act[c + 3]
        a4, a5, a6, a7 = act[c + 4], act[c + 5], act[c + 6], act[c + 7]
        for j in range(hidden.shape[0]):
            left = (a0 * r0[j] + a1 * r1[j]) + (a2 * r2[j] + a3 * r3[j])
            hidden[j] += left + ((a4 * r4[j] + a5 * r5[j]) + (a6 * r6[j] + a7 * r7[j]))


@reassociated
def _add_rows_of_two(one: F32, two: F32, act_one: F32, act_two: F32, w1: F32, base: int) -> None:
    """Two samples at once: the rows are read from the cache once for both."""
    for c in range(0, CHANNELS, 4):
        r0, r1, r2, r3 = w1[base + c], w1[base + c + 1], w1[base + c + 2], w1[base + c + 3]
        a0, a1, a2, a3 = act_one[c], act_one[c + 1], act_one[c + 2], act_one[c + 3]
        b0, b1, b2, b3 = act_two[c], act_two[c + 1], act_two[c + 2], act_two[c + 3]
        for j in range(one.shape[0]):
            one[j] += (a0 * r0[j] + a1 * r1[j]) + (a2 * r2[j] + a3 * r3[j])
            two[j] += (b0 * r0[j] + b1 * r1[j]) + (b2 * r2[j] + b3 * r3[j])


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
    w1: F32,  # (7072, hidden)
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
    for site in range(SITES):
        k = groups[site]
        while k + 2 <= groups[site + 1]:
            e, f = order[k], order[k + 1]
            _add_rows_of_two(hidden[owners[e]], hidden[owners[f]], acts[e], acts[f], w1, site * CHANNELS)
            k += 2
        if k < groups[site + 1]:
            e = order[k]
            _add_rows(hidden[owners[e]], acts[e], w1, site * CHANNELS)
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
    on = np.empty(CHANNELS, np.int64)
    for site in range(SITES):
        for k in range(groups[site], groups[site + 1]):
            e = order[k]
            act, grad = acts[e], grad_hidden[owners[e]]
            count = 0
            for c in range(CHANNELS):
                if act[c] > 0.0:
                    on[count] = site * CHANNELS + c
                    count += 1
            i = 0
            while i + 4 <= count:
                p, q, r, s = on[i], on[i + 1], on[i + 2], on[i + 3]
                w_p, w_q, w_r, w_s = w1[p], w1[q], w1[r], w1[s]
                z_p = z_q = z_r = z_s = np.float32(0.0)
                for j in range(grad.shape[0]):
                    z_p += w_p[j] * grad[j]
                    z_q += w_q[j] * grad[j]
                    z_r += w_r[j] * grad[j]
                    z_s += w_s[j] * grad[j]
                a, b, c, d = p % CHANNELS, q % CHANNELS, r % CHANNELS, s % CHANNELS
                v_p, v_q, v_r, v_s = act[a], act[b], act[c], act[d]
                g_p, g_q, g_r, g_s = grad_w1[p], grad_w1[q], grad_w1[r], grad_w1[s]
                for j in range(grad.shape[0]):
                    g_p[j] += v_p * grad[j]
                    g_q[j] += v_q * grad[j]
                    g_r[j] += v_r * grad[j]
                    g_s[j] += v_s * grad[j]
                act[a], act[b], act[c], act[d] = z_p, z_q, z_r, z_s
                i += 4
            while i < count:
                p = on[i]
                w_p, g_p, v_p = w1[p], grad_w1[p], act[p % CHANNELS]
                z_p = np.float32(0.0)
                for j in range(grad.shape[0]):
                    z_p += w_p[j] * grad[j]
                    g_p[j] += v_p * grad[j]
                act[p % CHANNELS] = z_p
                i += 1


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
