"""Small dense products that stay in registers, for the hidden layer: tiles of 16 channels by 64 columns.

Numba's loops do not keep a row of sums in registers from one row of weights to the next, and a call of BLAS costs more
than a tile. So these few products are written as LLVM vector code. The plain Python above each says what it computes.

Arguments, all matrices contiguous, and float32 but for `products`: `channels` (patches, 16); `weights` (…, columns), of
which the rows `base` … `base + 15` are the tile; a column at which the tile begins; `patches` int64 (…,), of which the
numbers `first`, `first + 1`, … are the rows of `channels`, and belong to the rows `into`, `into + 1`, … of another
matrix.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from fastpong.arrays import F32, I32, I64
from fastpong.kernels.compile.simd import (
    ACCUMULATORS,
    COLUMNS,
    HIGH,
    INT64,
    LANES,
    LOW,
    VECTORS_PER_TILE,
    constant,
    fma,
    load,
    nearest,
    spread,
    store,
    sum_lanes,
    vector_code,
)

CHANNELS = LANES
"""Rows of a tile."""

PATCH_BLOCK = 4
"""Patches whose products are computed together, so that the tile is read once for all of them."""

ONE = 1 << 22
"""What positions contribute to hidden units is added up in integers, of which so many are 1.

So the sum is the same in any order: with any number of threads, and when acting as when learning. A product is as
precise as in a float32 sum between 2 and 4. Sums come to 7 or so; beyond ±512, where nothing is learned any more, they
wrap around, on every processor alike.
"""

Product = Callable[[Any, F32, F32, int, int, I64, int, int], None]


def _products(block: int, accumulators: int) -> Product:
    """Make a function for one patch or four; sums of `accumulators` vectors of each stay in registers at a time."""

    def plain(
        products: I32, channels: F32, weights: F32, base: int, column: int, patches: I64, first: int, into: int
    ) -> None:
        """products[into + i] = `ONE` · channels[patches[first + i]] · weights, rounded."""
        part = slice(column, column + COLUMNS)
        for i in range(block):
            product = channels[patches[first + i]] @ weights[base : base + CHANNELS, part]
            products[into + i, part] = np.rint(np.fmax(np.fmin(ONE * product, HIGH), LOW))

    @vector_code(plain)
    def products_of(
        b: Any, products: Any, channels: Any, weights: Any, base: Any, column: Any, patches: Any, first: Any, into: Any
    ) -> None:
        factors = [channels.at(patches[b.add(first, INT64(i))]) for i in range(block)]
        one = constant(float(ONE))
        for part in range(0, VECTORS_PER_TILE, accumulators):
            totals: list[list[Any]] = []
            place = b.add(column, INT64(part * LANES))
            row = weights.at(base, place)
            for c in range(CHANNELS):
                numbers = load(b, row, accumulators)
                spreads = [spread(b, factor, c) for factor in factors]
                if c == 0:
                    totals = [[b.fmul(a, x) for x in numbers] for a in spreads]
                else:
                    totals = [
                        [fma(b, a, x, total) for x, total in zip(numbers, row_of, strict=True)]
                        for a, row_of in zip(spreads, totals, strict=True)
                    ]
                row = weights.below(row)
            for i, total in enumerate(totals):
                store(b, products.at(b.add(into, INT64(i)), place), [nearest(b, b.fmul(x, one)) for x in total])

    return products_of


def _add_dots(grads: F32, patch: int, sums: F32, row: int, weights: F32, base: int, column: int) -> None:
    """grads[patch] += weights · sums[row], over the columns of the tile."""
    part = slice(column, column + COLUMNS)
    grads[patch] += weights[base : base + CHANNELS, part] @ sums[row, part]


@vector_code(_add_dots)
def add_dots(b: Any, grads: Any, patch: Any, sums: Any, row: Any, weights: Any, base: Any, column: Any) -> None:
    """See `_add_dots`."""
    factors = load(b, sums.at(row, column), VECTORS_PER_TILE)

    def product_of(c: int) -> Any:
        numbers = load(b, weights.at(b.add(base, INT64(c)), column), VECTORS_PER_TILE)
        product = b.fmul(numbers[0], factors[0])
        for x, y in zip(numbers[1:], factors[1:], strict=True):
            product = fma(b, x, y, product)
        return product

    place = grads.at(patch)
    store(b, place, [b.fadd(load(b, place, 1)[0], sum_lanes(b, product_of))])


def _add_outer(block: int, accumulators: int) -> Product:
    """Make a function for one patch or four; `accumulators` vectors of each gradient stay in registers at a time."""

    def plain(
        weights: F32, channels: F32, sums: F32, base: int, column: int, patches: I64, first: int, into: int
    ) -> None:
        """weights[base + c] += channels[patches[first + i], c] · sums[into + i]."""
        part = slice(column, column + COLUMNS)
        for i in range(block):
            weights[base : base + CHANNELS, part] += channels[patches[first + i]][:, None] * sums[into + i, part]

    @vector_code(plain)
    def add_outer_of(
        b: Any, weights: Any, channels: Any, sums: Any, base: Any, column: Any, patches: Any, first: Any, into: Any
    ) -> None:
        factors = [channels.at(patches[b.add(first, INT64(i))]) for i in range(block)]
        for part in range(0, VECTORS_PER_TILE, accumulators):
            place = b.add(column, INT64(part * LANES))
            grads = [load(b, sums.at(b.add(into, INT64(i)), place), accumulators) for i in range(block)]
            row = weights.at(base, place)
            for c in range(CHANNELS):
                totals = load(b, row, accumulators)
                for factor, grad in zip(factors, grads, strict=True):
                    a = spread(b, factor, c)
                    totals = [fma(b, a, x, total) for x, total in zip(grad, totals, strict=True)]
                store(b, row, totals)
                row = weights.below(row)

    return add_outer_of


products, four_products = _products(1, VECTORS_PER_TILE), _products(PATCH_BLOCK, ACCUMULATORS)
add_outer, add_four_outer = _add_outer(1, VECTORS_PER_TILE), _add_outer(PATCH_BLOCK, ACCUMULATORS)
