"""Sums over lists whose totals stay in registers: of the strips of a patch, and of the rows of a matrix.

As in `tiles.py`, plain Python says what the LLVM vector code below it computes. Matrices are contiguous and float32, or
int32 in `add_to_rows`; a list is given by an array and the numbers `start` … `end` − 1 of it.
"""

from typing import Any

import numpy as np
from numba import types

from fastpong.arrays import F32, I64
from fastpong.kernels.compile.simd import (
    COLUMNS,
    INT64,
    VECTORS_PER_TILE,
    ZEROS,
    add,
    add_products,
    load,
    loop,
    masked,
    positive,
    store,
    variables,
    vector_code,
)

LENGTH_BITS = 3
"""A strip of a patch: its lowest bits are its length − 1, the others its first row of the prefix sums."""

_MASK = (1 << LENGTH_BITS) - 1


def _ends(builder: Any, strip: Any) -> tuple[Any, Any]:
    above = builder.lshr(strip, INT64(LENGTH_BITS))
    return above, builder.add(builder.add(above, INT64(1)), builder.and_(strip, INT64(_MASK)))


def _conv_forward(channels: F32, patch: Any, bias: F32, sums: F32, strips: Any, start: Any, end: Any) -> None:
    """channels[patch] = relu(bias + Σ over the strips of (sums[above + length] − sums[above]))."""
    total = bias.copy()
    for strip in strips[start:end].tolist():
        above = strip >> LENGTH_BITS
        total += sums[above + 1 + (strip & _MASK)] - sums[above]
    channels[patch] = np.maximum(total, 0.0)


@vector_code(_conv_forward)
def conv_forward(b: Any, channels: Any, patch: Any, bias: Any, sums: Any, strips: Any, start: Any, end: Any) -> None:
    """See `_conv_forward`."""
    (total,) = variables(b, load(b, bias.data, 1))
    with loop(b, start, end) as (k, _):
        above, within = (load(b, sums.at(row), 1)[0] for row in _ends(b, strips[k]))
        b.store(b.fadd(b.load(total), b.fsub(within, above)), total)
    found = b.load(total)
    store(b, channels.at(patch), [positive(b, found, found)])


def _add_strip(channels: F32, patch: Any, fresh: Any, bias: F32, sums: F32, strip: Any) -> None:
    """channels[patch] += sums[above + length] − sums[above] of a strip; to `bias`, if the patch is fresh."""
    above = strip >> LENGTH_BITS
    channels[patch] = (bias if fresh else channels[patch]) + (sums[above + 1 + (strip & _MASK)] - sums[above])


@vector_code(_add_strip)
def add_strip(b: Any, channels: Any, patch: Any, fresh: Any, bias: Any, sums: Any, strip: Any) -> None:
    """See `_add_strip`; without a branch."""
    place = channels.at(patch)
    before = b.select(fresh, load(b, bias.data, 1)[0], load(b, place, 1)[0])
    above, within = (load(b, sums.at(row), 1)[0] for row in _ends(b, strip))
    store(b, place, [b.fadd(before, b.fsub(within, above))])


def _conv_backward(
    channels: F32, grads: F32, patch: Any, bias: F32, sums: F32, strips: Any, start: Any, end: Any
) -> None:
    """Carry grads[patch] back to `bias` and `sums`, where channels[patch] > 0; see `_conv_forward`."""
    grad = np.where(channels[patch] > 0.0, grads[patch], np.float32(0.0))
    bias += grad
    for strip in strips[start:end].tolist():
        above = strip >> LENGTH_BITS
        sums[above + 1 + (strip & _MASK)] += grad
        sums[above] -= grad


@vector_code(_conv_backward)
def conv_backward(
    b: Any, channels: Any, grads: Any, patch: Any, bias: Any, sums: Any, strips: Any, start: Any, end: Any
) -> None:
    """See `_conv_backward`."""
    grad = positive(b, *(load(b, of.at(patch), 1)[0] for of in (channels, grads)))
    store(b, bias.data, [b.fadd(load(b, bias.data, 1)[0], grad)])
    with loop(b, start, end) as (k, _):
        above, within = (sums.at(row) for row in _ends(b, strips[k]))
        store(b, within, [b.fadd(load(b, within, 1)[0], grad)])
        store(b, above, [b.fsub(load(b, above, 1)[0], grad)])


def _add_to_rows(
    matrix: Any, rows: Any, start: Any, end: Any, others: Any, groups: I64, begin: Any, column: int
) -> None:
    """matrix[rows[k]] += others[groups[k − begin]] for the k of a list, in the columns of a tile."""
    part = slice(column, column + COLUMNS)
    for k in range(start, end):
        matrix[rows[k], part] += others[groups[k - begin], part]


@vector_code(_add_to_rows)
def add_to_rows(
    b: Any, matrix: Any, rows: Any, start: Any, end: Any, others: Any, groups: Any, begin: Any, column: Any
) -> None:
    """See `_add_to_rows`."""
    with loop(b, start, end) as (k, _):
        group, place = groups[b.sub(k, begin)], matrix.at(rows[k], column)
        old, added = (load(b, at, VECTORS_PER_TILE) for at in (place, others.at(group, column)))
        store(b, place, [add(b, x, y) for x, y in zip(old, added, strict=True)])


def _sum_rows(sums: F32, matrix: F32, rows: Any, start: Any, end: Any, groups: I64, begin: Any, column: int) -> None:
    """sums[groups[k − begin]] = Σ matrix[rows[k]] over those k of a list, neighbours, that have the same group."""
    part, latest = slice(column, column + COLUMNS), -1
    for k in range(start, end):
        group = groups[k - begin]
        if group != latest:
            sums[group, part] = 0.0
        sums[group, part] += matrix[rows[k], part]
        latest = group


@vector_code(_sum_rows)
def sum_rows(
    b: Any, sums: Any, matrix: Any, rows: Any, start: Any, end: Any, groups: Any, begin: Any, column: Any
) -> None:
    """See `_sum_rows`.

    The sum so far is masked away where the next group begins, and stored each time: a branch could not be foreseen.
    """
    latest, *totals = variables(b, [INT64(-1), *[ZEROS] * VECTORS_PER_TILE])
    with loop(b, start, end) as (k, _):
        group = groups[b.sub(k, begin)]
        same = b.icmp_signed("==", group, b.load(latest))
        b.store(group, latest)
        kept = [masked(b, same, b.load(total)) for total in totals]
        added = load(b, matrix.at(rows[k], column), VECTORS_PER_TILE)
        now = [b.fadd(x, y) for x, y in zip(kept, added, strict=True)]
        for total, x in zip(totals, now, strict=True):
            b.store(x, total)
        store(b, sums.at(group, column), now)


def _dot(start: Any, matrix: F32, row: int, vector: F32) -> Any:
    """Return start + Σ matrix[row, j] · vector[j]."""
    return np.float32(start + matrix[row, : len(vector)] @ vector)


@vector_code(_dot, types.float32)
def dot(b: Any, start: Any, matrix: Any, row: Any, vector: Any) -> Any:
    """See `_dot`; added up in one order on every processor.

    Four sums of eight lanes, then one of four lanes, and the rest one by one: the order in which LLVM vectorises such a
    loop for AVX2. Left to LLVM, the order would be another one with AVX-512.
    """
    place, begin = matrix.at(row), INT64(0)
    for vectors, lanes in ((4, 8), (1, 4), (1, 1)):
        end = b.and_(vector.length, INT64(-vectors * lanes))
        start = add_products(b, start, (place, vector.data), begin, end, (vectors, lanes))
        begin = end
    return start
