"""Small dense products that stay in registers, for the hidden layer: tiles of 16 channels by 64 columns.

Numba's loops do not keep a row of sums in registers from one row of weights to the next, and a call of BLAS costs more
than a tile. So these few products are written as LLVM vector code. The plain Python beside each says what it computes,
and runs when numba is disabled.

Arguments, all matrices float32 and contiguous: `channels` (patches, 16); `weights` (…, columns), of which the rows
`base` … `base + 15` are the tile; a column at which the tile begins; `patches` int64 (…,), of which the numbers
`first`, `first + 1`, … are the rows of `channels`, and belong to the rows `into`, `into + 1`, … of another matrix.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from fastpong.kernels.compile.simd import (
    ACCUMULATORS,
    COLUMNS,
    I64,
    INT,
    LANES,
    PLAIN,
    VECTORS_PER_TILE,
    Matrix,
    Numbers,
    fma,
    load,
    spread,
    store,
    sum_lanes,
)

CHANNELS = LANES
"""Rows of a tile."""

PATCH_BLOCK = 4
"""Patches whose products are computed together, so that the tile is read once for all of them."""


def _products(block: int, accumulators: int) -> Any:
    """Make a function for one patch or four: products[into + i] = channels[patches[first + i]] · weights.

    Sums of `accumulators` vectors of each stay in registers at a time.
    """

    def products_of(typing: Any, products: Any, channels: Any, weights: Any, base: Any, column: Any,
                    patches: Any, first: Any, into: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            target, by, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            ids = Numbers(context, builder, signature.args[5], values[5])
            base, column, first, into = values[3], values[4], values[6], values[7]
            factors = [by.at(ids[builder.add(first, I64(i))]) for i in range(block)]
            for part in range(0, VECTORS_PER_TILE, accumulators):
                totals: list[list[Any]] = []
                place = builder.add(column, I64(part * LANES))
                row = rows.at(base, place)
                for c in range(CHANNELS):
                    numbers = load(builder, row, accumulators)
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
                    store(builder, target.at(builder.add(into, I64(i)), place), total)
            return context.get_dummy_value()

        return types.void(products, channels, weights, INT, INT, patches, INT, INT), code

    def plain(products: Any, channels: Any, weights: Any, base: int, column: int,
              patches: Any, first: int, into: int) -> None:  # fmt: skip
        part = slice(column, column + COLUMNS)
        for i in range(block):
            products[into + i, part] = channels[patches[first + i]] @ weights[base : base + CHANNELS, part]

    return plain if PLAIN else intrinsic(products_of)


def _add_dots() -> Any:
    """Make a function: grads[patch] += weights · sums[row], over the columns of the tile."""

    def add_dots(typing: Any, grads: Any, patch: Any, sums: Any, row: Any, weights: Any, base: Any, column: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            target, by, rows = (Matrix(context, builder, signature.args[k], values[k]) for k in (0, 2, 4))
            base, column = values[5:]
            factors = load(builder, by.at(values[3], column), VECTORS_PER_TILE)

            def product_of(c: int) -> Any:
                numbers = load(builder, rows.at(builder.add(base, I64(c)), column), VECTORS_PER_TILE)
                product = builder.fmul(numbers[0], factors[0])
                for x, y in zip(numbers[1:], factors[1:], strict=True):
                    product = fma(builder, x, y, product)
                return product

            place = target.at(values[1])
            store(builder, place, [builder.fadd(load(builder, place, 1)[0], sum_lanes(builder, product_of))])
            return context.get_dummy_value()

        return types.void(grads, INT, sums, INT, weights, INT, INT), code

    def plain(grads: Any, patch: int, sums: Any, row: int, weights: Any, base: int, column: int) -> None:
        part = slice(column, column + COLUMNS)
        grads[patch] += weights[base : base + CHANNELS, part] @ sums[row, part]

    return plain if PLAIN else intrinsic(add_dots)


def _add_outer(block: int, accumulators: int) -> Any:
    """Make a function for one patch or four: weights[base + c] += channels[patches[first + i], c] · sums[into + i].

    `accumulators` vectors of each of their gradients stay in registers at a time.
    """

    def add_outer(typing: Any, weights: Any, channels: Any, sums: Any, base: Any, column: Any,
                  patches: Any, first: Any, into: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            target, by, rows = (Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            ids = Numbers(context, builder, signature.args[5], values[5])
            base, column, first, into = values[3], values[4], values[6], values[7]
            factors = [by.at(ids[builder.add(first, I64(i))]) for i in range(block)]
            for part in range(0, VECTORS_PER_TILE, accumulators):
                place = builder.add(column, I64(part * LANES))
                grads = [load(builder, rows.at(builder.add(into, I64(i)), place), accumulators) for i in range(block)]
                row = target.at(base, place)
                for c in range(CHANNELS):
                    totals = load(builder, row, accumulators)
                    for factor, grad in zip(factors, grads, strict=True):
                        a = spread(builder, factor, c)
                        totals = [fma(builder, a, x, total) for x, total in zip(grad, totals, strict=True)]
                    store(builder, row, totals)
                    row = target.below(row)
            return context.get_dummy_value()

        return types.void(weights, channels, sums, INT, INT, patches, INT, INT), code

    def plain(weights: Any, channels: Any, sums: Any, base: int, column: int,
              patches: Any, first: int, into: int) -> None:  # fmt: skip
        part = slice(column, column + COLUMNS)
        for i in range(block):
            weights[base : base + CHANNELS, part] += channels[patches[first + i]][:, None] * sums[into + i, part]

    return plain if PLAIN else intrinsic(add_outer)


products, four_products = _products(1, VECTORS_PER_TILE), _products(PATCH_BLOCK, ACCUMULATORS)
add_dots = _add_dots()
add_outer, add_four_outer = _add_outer(1, VECTORS_PER_TILE), _add_outer(PATCH_BLOCK, ACCUMULATORS)
