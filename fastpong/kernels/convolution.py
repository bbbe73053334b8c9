"""A convolution over nearly empty images, and the hidden layer on top of it: forward and gradient.

Every site (`fastpong.kernels.sites`) has 16 channels, relu(bias + Σ kernel[pixel]); a site that sees no set pixel is
silent.

    acts = relu(kernel * frames + bias)   (site, channel)
    hidden = relu(acts · w1 + facts)      w1 is (site · 16 + channel, hidden); facts are a constant and the last actions

Four things make it cheap. A vertical run of pixels adds up consecutive rows of the kernel, which is the difference
of two prefix sums. Sites that are silent cost nothing. Channels are computed once for all samples and sites that have
the same view, and their product with `w1` once for all samples that have this view at this site. And the rows of `w1`
of one site are used for all of them, one after the other, so that they are read from memory once a minibatch. The
gradient goes the same way back.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels.aligned import new_matrix
from fastpong.kernels.gathers import (
    add_to_rows_narrow,
    add_to_rows_wide,
    clear_row,
    see,
    see_gradient,
    sum_rows_narrow,
    sum_rows_wide,
)
from fastpong.kernels.groups import AT_HAND, list_groups, list_new
from fastpong.kernels.jit import kernel, reassociated
from fastpong.kernels.optimiser import Rates, adam
from fastpong.kernels.sites import CELL, SITES, Views
from fastpong.kernels.tiles import (
    AT_ONCE,
    CHANNELS,
    add_four_outer_wide,
    add_outer_narrow,
    add_outer_wide,
    dot_rows_narrow,
    dot_rows_wide,
    four_products_wide,
    products_narrow,
    products_wide,
)
from fastpong.kernels.vectors import LANES, WIDE

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

FACTS = SITES * CHANNELS
"""The first of the 16 rows of `w1` that belong to the facts."""
INPUTS = FACTS + CHANNELS
"""Rows of `w1`."""

_ROWS, _COLUMNS = CELL
_WIDE = WIDE * LANES


@kernel
def prefix_sums(
    weights: F32,  # (frames, 8, 4, 64) the kernel: of a pixel's row and column in its cell, for four sites
) -> F32:
    """Return sums over the rows above (4 sites · frames · 4 columns · 9 rows, 16): a run of pixels costs two reads."""
    frames, quarters = weights.shape[0], weights.shape[3] // CHANNELS
    sums = new_matrix(quarters * frames * _COLUMNS * (_ROWS + 1), np.int64(CHANNELS))
    for d in range(quarters):
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


@reassociated
def add_sites(
    views: Views,  # of the sites that are this call's
    begins: I32,  # (441,) each site's entries in this minibatch are begins[site] … ends[site] − 1, see sites.deal
    ends: I32,  # (441,)
    rows: I32,
    kinds: I32,
    sums: F32,  # see prefix_sums
    bias: F32,  # (16,) of the channels
    w1: F32,  # (7072, hidden) a multiple of 16 columns
    marks: I64,  # (views,) in and out: `mark` for the views whose channels are known
    mark: Any,
    acts: F32,  # (views, 16) in and out: the channels of these views, after the relu
    hidden: F32,  # (m, hidden) in and out: what the sites contribute is added
) -> None:
    """Compute what sites contribute to the hidden units of a minibatch, and the channels of their views."""
    count, columns = len(hidden), w1.shape[1]  # a site has at most one entry of each sample
    groups, heads, members = np.empty(count, np.int64), np.empty(count + 1, np.int64), np.empty(count, np.int64)
    new = np.empty(count, np.int64)
    wide, products = columns // _WIDE * _WIDE, new_matrix(np.int64(AT_HAND), columns)
    for site in range(views.first, views.last):
        base, begin, end = site * CHANNELS, np.int64(begins[site]), np.int64(ends[site])
        if begin == end:
            continue
        total = list_groups(kinds, begin, end, groups, heads, members)
        for i in range(list_new(groups, total, marks, mark, new, np.int64(0))):
            v = new[i]
            see(acts, v, bias, sums, views.pieces, np.int64(views.bounds[v]), np.int64(views.bounds[v + 1]))
        for first in range(0, total, AT_HAND):
            last = min(first + AT_HAND, total)
            fours = first + (last - first) // AT_ONCE * AT_ONCE
            for j in range(0, wide, _WIDE):
                for n in range(first, fours, AT_ONCE):
                    four_products_wide(
                        products, acts, w1, base, j, groups[n], groups[n + 1], groups[n + 2], groups[n + 3], n - first
                    )
                for n in range(fours, last):
                    products_wide(products, acts, w1, base, j, groups[n], 0, 0, 0, n - first)
                add_to_rows_wide(hidden, rows, heads[first], heads[last], products, members, begin, j)
            for j in range(wide, columns, LANES):
                for n in range(first, last):
                    products_narrow(products, acts, w1, base, j, groups[n], 0, 0, 0, n - first)
                add_to_rows_narrow(hidden, rows, heads[first], heads[last], products, members, begin, j)


@kernel
def add_facts(
    ages: I64,  # (rows · games,)
    actions: U8,  # (rows · games,)
    games: int,
    samples: I64,  # (m,) as indices into these two arrays
    past: int,  # how many of the last actions are seen
    choices: int,  # how many actions there are
    w1: F32,
    hidden: F32,  # (m, hidden) in: what the sites contribute; out: the hidden units
) -> None:
    """Complete the hidden units of some samples: what the facts contribute, and the relu."""
    constant = w1[FACTS]
    for m in range(len(samples)):
        sample, unit = samples[m], hidden[m]
        for j in range(len(unit)):
            unit[j] += constant[j]
        for lag in range(1, min(past, ages[sample]) + 1):
            row = w1[FACTS + 1 + (lag - 1) * choices + np.int64(actions[sample - lag * games])]
            for j in range(len(unit)):
                unit[j] += row[j]
        for j in range(len(unit)):
            unit[j] = max(unit[j], np.float32(0.0))


@kernel
def facts_gradient(
    ages: I64,
    actions: U8,
    games: int,
    samples: I64,
    past: int,
    choices: int,
    grad_hidden: F32,  # (m, hidden) gradient of the hidden units, 0 where the relu is off
    grad_w1: F32,  # (7072, hidden) in and out: the gradient is added
) -> None:
    """Carry the gradient of the hidden units of some samples back to the facts; arguments as for `add_facts`."""
    constant = grad_w1[FACTS]
    for m in range(len(samples)):
        sample, grad = samples[m], grad_hidden[m]
        for j in range(len(grad)):
            constant[j] += grad[j]
        for lag in range(1, min(past, ages[sample]) + 1):
            row = grad_w1[FACTS + 1 + (lag - 1) * choices + np.int64(actions[sample - lag * games])]
            for j in range(len(grad)):
                row[j] += grad[j]


@reassociated
def sites_gradient(
    views: Views,  # as for `add_sites`, here and in the next four
    begins: I32,
    ends: I32,
    rows: I32,
    kinds: I32,
    w1: F32,  # (7072, hidden) in; out: new weights for the sites of this call, if `apply`
    grad_hidden: F32,  # (m, hidden) gradient of the hidden units, 0 where the relu is off
    marks: I64,  # (views,) in and out: `mark` where grad_acts counts; another one than in `add_sites`
    mark: int,
    acts: F32,  # (views, 16) in: the channels
    grad_acts: F32,  # (views, 16) room for their gradient
    grad_sums: F32,  # as `prefix_sums` returns them; in and out: the gradient is added, here and in the next two
    grad_bias: F32,  # (16,)
    grad_w1: F32,  # (7072, hidden) the same, unless `apply`
    touched: Flags,  # (441,) in and out: set for the sites that have entries
    apply: bool,  # take Adam's step at once
    mean: F32,  # (7072, hidden) in and out: Adam's means, if `apply`
    square: F32,
    rates: Rates,
) -> None:
    """Carry the gradient of the hidden units back to the sites' rows of `w1`, and to the convolution."""
    count, columns = len(grad_hidden), w1.shape[1]
    groups, heads, members = np.empty(count, np.int64), np.empty(count + 1, np.int64), np.empty(count, np.int64)
    wide, grads = columns // _WIDE * _WIDE, new_matrix(np.int64(AT_HAND), columns)
    used = np.empty(len(marks) + 1, np.int64)
    known: Any = np.int64(0)
    # What is applied at once needs no room but that of a site, which stays in the first cache.
    target = new_matrix(np.int64(CHANNELS), columns) if apply else grad_w1
    if apply:
        target[:] = np.float32(0.0)
    for site in range(views.first, views.last):
        base, begin, end = site * CHANNELS, np.int64(begins[site]), np.int64(ends[site])
        if begin == end:
            continue
        touched[site] = True
        into = 0 if apply else base
        total = list_groups(kinds, begin, end, groups, heads, members)
        before, known = known, list_new(groups, total, marks, mark, used, known)
        for i in range(before, known):
            clear_row(grad_acts, used[i])
        for first in range(0, total, AT_HAND):
            last = min(first + AT_HAND, total)
            fours = first + (last - first) // AT_ONCE * AT_ONCE
            for j in range(0, wide, _WIDE):
                sum_rows_wide(grads, grad_hidden, rows, heads[first], heads[last], members, begin, j)
                for n in range(first, last):
                    dot_rows_wide(grad_acts, groups[n], grads, n - first, w1, base, j)
                for n in range(first, fours, AT_ONCE):
                    add_four_outer_wide(
                        target, acts, grads, into, j, groups[n], groups[n + 1], groups[n + 2], groups[n + 3], n - first
                    )
                for n in range(fours, last):
                    add_outer_wide(target, acts, grads, into, j, groups[n], 0, 0, 0, n - first)
            for j in range(wide, columns, LANES):
                sum_rows_narrow(grads, grad_hidden, rows, heads[first], heads[last], members, begin, j)
                for n in range(first, last):
                    dot_rows_narrow(grad_acts, groups[n], grads, n - first, w1, base, j)
                    add_outer_narrow(target, acts, grads, into, j, groups[n], 0, 0, 0, n - first)
        if apply:
            tile = slice(base * columns, (base + CHANNELS) * columns)
            adam(w1.reshape(-1)[tile], target.reshape(-1), mean.reshape(-1)[tile], square.reshape(-1)[tile], rates)
    for i in range(known):
        v = used[i]
        see_gradient(
            acts, grad_acts, v, grad_bias, grad_sums, views.pieces,
            np.int64(views.bounds[v]), np.int64(views.bounds[v + 1]),
        )  # fmt: skip
