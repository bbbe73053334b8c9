"""Sums over lists whose totals stay in registers: of the pieces of a view, and of the rows of a matrix.

As in `tiles.py` they are LLVM vector code, and the plain Python beside each says what it computes. Matrices are float32
and contiguous; the numbers `start` … `end` − 1 of a list are meant.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from fastpong.kernels.vectors import (
    I64,
    INT,
    LANES,
    NARROW,
    PLAIN,
    WIDE,
    ZEROS,
    Matrix,
    Numbers,
    load,
    loop,
    masked,
    positive,
    store,
    variables,
)

LENGTH_BITS = 3
"""Of a piece, see `sites.Views`: its lowest bits are its length − 1, the others its first row of the prefix sums."""

_MASK = (1 << LENGTH_BITS) - 1


def _ends(builder: Any, piece: Any) -> tuple[Any, Any]:
    above = builder.lshr(piece, I64(LENGTH_BITS))
    return above, builder.add(builder.add(above, I64(1)), builder.and_(piece, I64(_MASK)))


def _see() -> Any:
    """Make a function: acts[v] = relu(bias + Σ over the pieces of (sums[above + length] − sums[above]))."""

    def see(typing: Any, acts: Any, v: Any, bias: Any, sums: Any, pieces: Any, start: Any, end: Any) -> Any:
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

        return types.void(acts, INT, bias, sums, pieces, INT, INT), code

    def plain(acts: Any, v: int, bias: Any, sums: Any, pieces: Any, start: int, end: int) -> None:
        total = bias.copy()
        for piece in pieces[start:end].tolist():
            above = piece >> LENGTH_BITS
            total += sums[above + 1 + (piece & _MASK)] - sums[above]
        acts[v] = np.maximum(total, 0.0)

    return plain if PLAIN else intrinsic(see)


def _add_difference() -> Any:
    """Make a function: acts[v] = (bias if fresh else acts[v]) + sums[above + length] − sums[above], of one piece."""

    def add_difference(typing: Any, acts: Any, v: Any, fresh: Any, bias: Any, sums: Any, piece: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in (0, 4))
            place, first = into.at(values[1]), Numbers(context, builder, signature.args[3], values[3])
            before = builder.select(values[2], load(builder, first.data, 1)[0], load(builder, place, 1)[0])
            above, within = (load(builder, rows.at(row), 1)[0] for row in _ends(builder, values[5]))
            store(builder, place, [builder.fadd(before, builder.fsub(within, above))])
            return context.get_dummy_value()

        return types.void(acts, INT, types.boolean, bias, sums, INT), code

    def plain(acts: Any, v: int, fresh: bool, bias: Any, sums: Any, piece: int) -> None:
        above = piece >> LENGTH_BITS
        acts[v] = (bias if fresh else acts[v]) + (sums[above + 1 + (piece & _MASK)] - sums[above])

    return plain if PLAIN else intrinsic(add_difference)


def _see_gradient() -> Any:
    """Make a function that takes the gradient of `see` from grads[v] to `bias` and `sums`, where acts[v] > 0."""

    def see_gradient(typing: Any, acts: Any, grads: Any, v: Any, bias: Any, sums: Any, pieces: Any,
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

        return types.void(acts, grads, INT, bias, sums, pieces, INT, INT), code

    def plain(acts: Any, grads: Any, v: int, bias: Any, sums: Any, pieces: Any, start: int, end: int) -> None:
        grad = np.where(acts[v] > 0.0, grads[v], np.float32(0.0))
        bias += grad
        for piece in pieces[start:end].tolist():
            above = piece >> LENGTH_BITS
            sums[above + 1 + (piece & _MASK)] += grad
            sums[above] -= grad

    return plain if PLAIN else intrinsic(see_gradient)


def _clear_row() -> Any:
    """Make a function: matrix[v] = 0, of 16 numbers."""

    def clear_row(typing: Any, matrix: Any, v: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            store(builder, Matrix(context, builder, signature.args[0], values[0]).at(values[1]), [ZEROS])
            return context.get_dummy_value()

        return types.void(matrix, INT), code

    def plain(matrix: Any, v: int) -> None:
        matrix[v] = 0.0

    return plain if PLAIN else intrinsic(clear_row)


def _add_to_rows(vectors: int) -> Any:
    """Make a function: matrix[rows[k]] += others[members[k − begin]] for the k of a list, in some columns."""

    def add_to_rows(typing: Any, matrix: Any, rows: Any, start: Any, end: Any, others: Any, members: Any, begin: Any,
                    column: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, of = (Matrix(context, builder, signature.args[k], values[k]) for k in (0, 4))
            owners, numbers = (Numbers(context, builder, signature.args[k], values[k]) for k in (1, 5))
            with loop(builder, values[2], values[3]) as (k, _):
                member, place = numbers[builder.sub(k, values[6])], into.at(owners[k], values[7])
                old, added = (load(builder, at, vectors) for at in (place, of.at(member, values[7])))
                store(builder, place, [builder.fadd(x, y) for x, y in zip(old, added, strict=True)])
            return context.get_dummy_value()

        return types.void(matrix, rows, INT, INT, others, members, INT, INT), code

    def plain(matrix: Any, rows: Any, start: int, end: int, others: Any, members: Any, begin: int, column: int) -> None:
        part = slice(column, column + vectors * LANES)
        for k in range(start, end):
            matrix[rows[k], part] += others[members[k - begin], part]

    return plain if PLAIN else intrinsic(add_to_rows)


def _sum_rows(vectors: int) -> Any:
    """Make a function: sums[members[k − begin]] = Σ matrix[rows[k]] over those k of a list, in some columns.

    Those with the same member are neighbours. The sum so far is masked away where the next member begins,
    and stored each time: a branch there could not be foreseen.
    """

    def sum_rows(typing: Any, sums: Any, matrix: Any, rows: Any, start: Any, end: Any, members: Any, begin: Any,
                 column: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, of = (Matrix(context, builder, signature.args[k], values[k]) for k in (0, 1))
            owners, numbers = (Numbers(context, builder, signature.args[k], values[k]) for k in (2, 5))
            latest, *totals = variables(builder, [I64(-1), *[ZEROS] * vectors])
            with loop(builder, values[3], values[4]) as (k, _):
                member = numbers[builder.sub(k, values[6])]
                same = builder.icmp_signed("==", member, builder.load(latest))
                builder.store(member, latest)
                kept = [masked(builder, same, builder.load(total)) for total in totals]
                added = load(builder, of.at(owners[k], values[7]), vectors)
                now = [builder.fadd(x, y) for x, y in zip(kept, added, strict=True)]
                for total, x in zip(totals, now, strict=True):
                    builder.store(x, total)
                store(builder, into.at(member, values[7]), now)
            return context.get_dummy_value()

        return types.void(sums, matrix, rows, INT, INT, members, INT, INT), code

    def plain(sums: Any, matrix: Any, rows: Any, start: int, end: int, members: Any, begin: int, column: int) -> None:
        part, latest = slice(column, column + vectors * LANES), -1
        for k in range(start, end):
            member = members[k - begin]
            if member != latest:
                sums[member, part] = 0.0
            sums[member, part] += matrix[rows[k], part]
            latest = member

    return plain if PLAIN else intrinsic(sum_rows)


see, add_difference, see_gradient, clear_row = _see(), _add_difference(), _see_gradient(), _clear_row()
add_to_rows_wide, add_to_rows_narrow = _add_to_rows(WIDE), _add_to_rows(NARROW)
sum_rows_wide, sum_rows_narrow = _sum_rows(WIDE), _sum_rows(NARROW)
