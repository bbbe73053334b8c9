"""Sums over lists whose totals stay in registers: of the strips of a patch, and of the rows of a matrix.

As in `tiles.py` they are LLVM vector code, and the plain Python beside each says what it computes. Matrices are float32
and contiguous; a list is given by an array and the numbers `start` … `end` − 1 of it.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from fastpong.kernels.compile.simd import (
    COLUMNS,
    I64,
    INT,
    PLAIN,
    VECTORS_PER_TILE,
    ZEROS,
    Matrix,
    Numbers,
    add_products,
    load,
    loop,
    masked,
    positive,
    store,
    variables,
)

LENGTH_BITS = 3
"""A strip of a patch: its lowest bits are its length − 1, the others its first row of the prefix sums."""

_MASK = (1 << LENGTH_BITS) - 1


def _ends(builder: Any, strip: Any) -> tuple[Any, Any]:
    above = builder.lshr(strip, I64(LENGTH_BITS))
    return above, builder.add(builder.add(above, I64(1)), builder.and_(strip, I64(_MASK)))


def _conv_forward() -> Any:
    """Make a function: channels[patch] = relu(bias + Σ over the strips of (sums[above + length] − sums[above]))."""

    def conv_forward(typing: Any, channels: Any, patch: Any, bias: Any, sums: Any, strips: Any,
                     start: Any, end: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in (0, 3))
            first, codes = (Numbers(context, builder, signature.args[i], values[i]) for i in (2, 4))
            (total,) = variables(builder, load(builder, first.data, 1))
            with loop(builder, values[5], values[6]) as (k, _):
                above, within = (load(builder, rows.at(row), 1)[0] for row in _ends(builder, codes[k]))
                builder.store(builder.fadd(builder.load(total), builder.fsub(within, above)), total)
            found = builder.load(total)
            store(builder, into.at(values[1]), [positive(builder, found, found)])
            return context.get_dummy_value()

        return types.void(channels, INT, bias, sums, strips, INT, INT), code

    def plain(channels: Any, patch: int, bias: Any, sums: Any, strips: Any, start: int, end: int) -> None:
        total = bias.copy()
        for strip in strips[start:end].tolist():
            above = strip >> LENGTH_BITS
            total += sums[above + 1 + (strip & _MASK)] - sums[above]
        channels[patch] = np.maximum(total, 0.0)

    return plain if PLAIN else intrinsic(conv_forward)


def _add_strip() -> Any:
    """Make a function: add sums[above + length] − sums[above] of a strip to channels[patch], or `bias` if `fresh`."""

    def add_strip(typing: Any, channels: Any, patch: Any, fresh: Any, bias: Any, sums: Any, strip: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in (0, 4))
            place, first = into.at(values[1]), Numbers(context, builder, signature.args[3], values[3])
            before = builder.select(values[2], load(builder, first.data, 1)[0], load(builder, place, 1)[0])
            above, within = (load(builder, rows.at(row), 1)[0] for row in _ends(builder, values[5]))
            store(builder, place, [builder.fadd(before, builder.fsub(within, above))])
            return context.get_dummy_value()

        return types.void(channels, INT, types.boolean, bias, sums, INT), code

    def plain(channels: Any, patch: int, fresh: bool, bias: Any, sums: Any, strip: int) -> None:
        above = strip >> LENGTH_BITS
        channels[patch] = (bias if fresh else channels[patch]) + (sums[above + 1 + (strip & _MASK)] - sums[above])

    return plain if PLAIN else intrinsic(add_strip)


def _conv_backward() -> Any:
    """Make a function: carry grads[patch] back to `bias` and `sums`, where channels[patch] > 0; see `conv_forward`."""

    def conv_backward(typing: Any, channels: Any, grads: Any, patch: Any, bias: Any, sums: Any, strips: Any,
                     start: Any, end: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            channels, by, into = (Matrix(context, builder, signature.args[i], values[i]) for i in (0, 1, 4))
            first, codes = (Numbers(context, builder, signature.args[i], values[i]) for i in (3, 5))
            grad = positive(builder, *(load(builder, of.at(values[2]), 1)[0] for of in (channels, by)))
            store(builder, first.data, [builder.fadd(load(builder, first.data, 1)[0], grad)])
            with loop(builder, values[6], values[7]) as (k, _):
                above, within = (into.at(row) for row in _ends(builder, codes[k]))
                store(builder, within, [builder.fadd(load(builder, within, 1)[0], grad)])
                store(builder, above, [builder.fsub(load(builder, above, 1)[0], grad)])
            return context.get_dummy_value()

        return types.void(channels, grads, INT, bias, sums, strips, INT, INT), code

    def plain(channels: Any, grads: Any, patch: int, bias: Any, sums: Any, strips: Any, start: int, end: int) -> None:
        grad = np.where(channels[patch] > 0.0, grads[patch], np.float32(0.0))
        bias += grad
        for strip in strips[start:end].tolist():
            above = strip >> LENGTH_BITS
            sums[above + 1 + (strip & _MASK)] += grad
            sums[above] -= grad

    return plain if PLAIN else intrinsic(conv_backward)


def _add_to_rows() -> Any:
    """Make a function: matrix[rows[k]] += others[groups[k − begin]] for the k of a list, in some columns."""

    def add_to_rows(typing: Any, matrix: Any, rows: Any, start: Any, end: Any, others: Any, groups: Any, begin: Any,
                    column: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, of = (Matrix(context, builder, signature.args[k], values[k]) for k in (0, 4))
            owners, numbers = (Numbers(context, builder, signature.args[k], values[k]) for k in (1, 5))
            with loop(builder, values[2], values[3]) as (k, _):
                group, place = numbers[builder.sub(k, values[6])], into.at(owners[k], values[7])
                old, added = (load(builder, at, VECTORS_PER_TILE) for at in (place, of.at(group, values[7])))
                store(builder, place, [builder.fadd(x, y) for x, y in zip(old, added, strict=True)])
            return context.get_dummy_value()

        return types.void(matrix, rows, INT, INT, others, groups, INT, INT), code

    def plain(matrix: Any, rows: Any, start: int, end: int, others: Any, groups: Any, begin: int, column: int) -> None:
        part = slice(column, column + COLUMNS)
        for k in range(start, end):
            matrix[rows[k], part] += others[groups[k - begin], part]

    return plain if PLAIN else intrinsic(add_to_rows)


def _sum_rows() -> Any:
    """Make a function: sums[groups[k − begin]] = Σ matrix[rows[k]] over those k of a list, in some columns.

    Those with the same group are neighbours. The sum so far is masked away where the next group begins,
    and stored each time: a branch there could not be foreseen.
    """

    def sum_rows(typing: Any, sums: Any, matrix: Any, rows: Any, start: Any, end: Any, groups: Any, begin: Any,
                 column: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, of = (Matrix(context, builder, signature.args[k], values[k]) for k in (0, 1))
            owners, numbers = (Numbers(context, builder, signature.args[k], values[k]) for k in (2, 5))
            latest, *totals = variables(builder, [I64(-1), *[ZEROS] * VECTORS_PER_TILE])
            with loop(builder, values[3], values[4]) as (k, _):
                group = numbers[builder.sub(k, values[6])]
                same = builder.icmp_signed("==", group, builder.load(latest))
                builder.store(group, latest)
                kept = [masked(builder, same, builder.load(total)) for total in totals]
                added = load(builder, of.at(owners[k], values[7]), VECTORS_PER_TILE)
                now = [builder.fadd(x, y) for x, y in zip(kept, added, strict=True)]
                for total, x in zip(totals, now, strict=True):
                    builder.store(x, total)
                store(builder, into.at(group, values[7]), now)
            return context.get_dummy_value()

        return types.void(sums, matrix, rows, INT, INT, groups, INT, INT), code

    def plain(sums: Any, matrix: Any, rows: Any, start: int, end: int, groups: Any, begin: int, column: int) -> None:
        part, latest = slice(column, column + COLUMNS), -1
        for k in range(start, end):
            group = groups[k - begin]
            if group != latest:
                sums[group, part] = 0.0
            sums[group, part] += matrix[rows[k], part]
            latest = group

    return plain if PLAIN else intrinsic(sum_rows)


def _dot() -> Any:
    """Make a function: start + Σ matrix[row, j] · vector[j], added up in one order on every processor.

    Four sums of eight lanes, then one of four lanes, and the rest one by one: the order in which LLVM vectorises such a
    loop for AVX2. Left to LLVM, the order would be another one with AVX-512.
    """

    def dot(typing: Any, start: Any, matrix: Any, row: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            place = Matrix(context, builder, signature.args[1], values[1]).at(values[2])
            view = context.make_array(signature.args[3])(context, builder, values[3])
            count = builder.extract_value(view.shape, 0)
            total, begin = values[0], I64(0)
            for vectors, lanes in ((4, 8), (1, 4), (1, 1)):
                end = builder.and_(count, I64(-vectors * lanes))
                total = add_products(builder, total, (place, view.data), begin, end, (vectors, lanes))
                begin = end
            return total

        return types.float32(types.float32, matrix, INT, vector), code

    def plain(start: Any, matrix: Any, row: int, vector: Any) -> Any:
        return np.float32(start + matrix[row, : len(vector)] @ vector)

    return plain if PLAIN else intrinsic(dot)


conv_forward, add_strip, conv_backward = _conv_forward(), _add_strip(), _conv_backward()
add_to_rows, sum_rows, dot = _add_to_rows(), _sum_rows(), _dot()
