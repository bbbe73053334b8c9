"""Small dense products that stay in registers, for the hidden layer: tiles of 16 channels by 64 (or 16) columns.

Numba's loops do not keep a row of sums in registers from one row of weights to the next, and a call of BLAS costs more
than a tile. So these few products are written as LLVM vector code. The plain Python beside each says what it computes,
and is what runs when numba is disabled.

Arguments, all matrices float32 and contiguous: `acts` (views, 16) channels; `weights` (…, columns), of which the rows
`base` … `base + 15` are the tile; a column at which the tile begins; rows of `acts` (v0 … v3) that belong to the rows
0 … 3 of another matrix.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from fastpong.kernels.vectors import (
    HELD,
    I64,
    INT,
    LANES,
    NARROW,
    PLAIN,
    WIDE,
    Matrix,
    fma,
    load,
    spread,
    store,
    sum_lanes,
)

CHANNELS = LANES
"""Rows of a tile."""

AT_ONCE = 4
"""Views whose products are computed together, so that the tile is read once for all of them."""


def _products(views: int, vectors: int, held: int) -> Any:
    """Make a function for one view or four: products[i] = acts[v] · weights, for the i-th of the views.

    Sums of `held` vectors of each stay in registers at a time.
    """

    def products_of(typing: Any, products: Any, acts: Any, weights: Any, base: Any, column: Any,
                    v0: Any, v1: Any, v2: Any, v3: Any, first: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, by, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            base, column, first = values[3], values[4], values[9]
            factors = [by.at(view) for view in values[5 : 5 + views]]
            for part in range(0, vectors, held):
                totals: list[list[Any]] = []
                place = builder.add(column, I64(part * LANES))
                row = rows.at(base, place)
                for c in range(CHANNELS):
                    numbers = load(builder, row, held)
                    spreads = [spread(builder, factor, c) for factor in factors]
                    if c == 0:
                        totals = [[builder.fmul(a, x) for x in numbers] for a in spreads]
                    else:
                        totals = [
                            [fma(builder, a, x, total) for x, total in zip(numbers, row_of, strict=True)]
                            for a, row_of in zip(spreads, totals, strict=True)
                        ]
                    row = rows.below(row)
                for i, total in enumerate(totals):
                    store(builder, into.at(builder.add(first, I64(i)), place), total)
            return context.get_dummy_value()

        return types.void(products, acts, weights, *[INT] * 7), code

    def plain(products: Any, acts: Any, weights: Any, base: int, column: int, *rest: int) -> None:
        part = slice(column, column + vectors * LANES)
        for i in range(views):
            products[rest[4] + i, part] = acts[rest[i]] @ weights[base : base + CHANNELS, part]

    return plain if PLAIN else intrinsic(products_of)


def _dot_rows(vectors: int) -> Any:
    """Make a function: dots[v] += weights · grads[i], over the columns of the tile."""

    def dot_rows(typing: Any, dots: Any, v: Any, grads: Any, i: Any, weights: Any, base: Any, column: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, by, rows = (Matrix(context, builder, signature.args[k], values[k]) for k in (0, 2, 4))
            base, column = values[5:]
            factors = load(builder, by.at(values[3], column), vectors)

            def product_of(c: int) -> Any:
                numbers = load(builder, rows.at(builder.add(base, I64(c)), column), vectors)
                product = builder.fmul(numbers[0], factors[0])
                for x, y in zip(numbers[1:], factors[1:], strict=True):
                    product = fma(builder, x, y, product)
                return product

            place = into.at(values[1])
            store(builder, place, [builder.fadd(load(builder, place, 1)[0], sum_lanes(builder, product_of))])
            return context.get_dummy_value()

        return types.void(dots, INT, grads, INT, weights, INT, INT), code

    def plain(dots: Any, v: int, grads: Any, i: int, weights: Any, base: int, column: int) -> None:
        part = slice(column, column + vectors * LANES)
        dots[v] += weights[base : base + CHANNELS, part] @ grads[i, part]

    return plain if PLAIN else intrinsic(dot_rows)


def _add_outer(views: int, vectors: int, held: int) -> Any:
    """Make a function for one view or four: weights[base + c] += acts[v, c] · grads[i], for the i-th of the views.

    `held` vectors of each of their gradients stay in registers at a time.
    """

    def add_outer(typing: Any, weights: Any, acts: Any, grads: Any, base: Any, column: Any,
                  v0: Any, v1: Any, v2: Any, v3: Any, first: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, by, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            base, column, first = values[3], values[4], values[9]
            factors = [by.at(view) for view in values[5 : 5 + views]]
            for part in range(0, vectors, held):
                place = builder.add(column, I64(part * LANES))
                grads = [load(builder, rows.at(builder.add(first, I64(i)), place), held) for i in range(views)]
                row = into.at(base, place)
                for c in range(CHANNELS):
                    totals = load(builder, row, held)
                    for factor, grad in zip(factors, grads, strict=True):
                        a = spread(builder, factor, c)
                        totals = [fma(builder, a, x, total) for x, total in zip(grad, totals, strict=True)]
                    store(builder, row, totals)
                    row = into.below(row)
            return context.get_dummy_value()

        return types.void(weights, acts, grads, *[INT] * 7), code

    def plain(weights: Any, acts: Any, grads: Any, base: int, column: int, *rest: int) -> None:
        part = slice(column, column + vectors * LANES)
        for i in range(views):
            weights[base : base + CHANNELS, part] += acts[rest[i]][:, None] * grads[rest[4] + i, part]

    return plain if PLAIN else intrinsic(add_outer)


products_wide, products_narrow = _products(1, WIDE, WIDE), _products(1, NARROW, NARROW)
four_products_wide = _products(4, WIDE, HELD)
dot_rows_wide, dot_rows_narrow = _dot_rows(WIDE), _dot_rows(NARROW)
add_outer_wide, add_outer_narrow = _add_outer(1, WIDE, WIDE), _add_outer(1, NARROW, NARROW)
add_four_outer_wide = _add_outer(4, WIDE, HELD)
