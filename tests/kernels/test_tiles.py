"""Tiles against sums in float64, for one patch and for four, few registers and many."""

from typing import Any

import numpy as np
import pytest

from fastpong.kernels import tiles
from fastpong.kernels.compile.simd import COLUMNS, HIGH, LOW, VECTORS_PER_TILE
from tests.support.kernels import call

RNG = np.random.default_rng(0)
CHANNELS = np.maximum(RNG.standard_normal((6, 16)), 0).astype(np.float32)
WEIGHTS = RNG.standard_normal((48, 160)).astype(np.float32)
OTHERS = RNG.standard_normal((5, 160)).astype(np.float32)
ACCUMULATORS = (1, 2, VECTORS_PER_TILE)


@pytest.mark.parametrize(("function", "patches"), [
    (tiles.products, 1), *[(tiles._products(tiles.PATCH_BLOCK, held), 4) for held in ACCUMULATORS],
])  # fmt: skip
def test_products(function: Any, patches: int) -> None:
    products, ids = np.full((5, 160), 77, np.int32), np.array([9, 3, 5, 0, 1, 9])
    call(function, products, CHANNELS, WEIGHTS, 16, 32, ids, 1, 1)
    wanted = np.full((5, 160), 77.0)
    for i, patch in enumerate((3, 5, 0, 1)[:patches]):
        for j in range(32, 32 + COLUMNS):
            wanted[1 + i, j] = sum(float(CHANNELS[patch, c]) * float(WEIGHTS[16 + c, j]) for c in range(16)) * tiles.ONE
    np.testing.assert_allclose(products, wanted, rtol=1e-5, atol=1e-5 * tiles.ONE)
    assert (products != 77).sum() == patches * COLUMNS
    # Numbers of few bits, so that floats are exact: the nearest integer, of two equally near ones the even one.
    few = (WEIGHTS * 8).round() / 2**14
    call(function, products, (CHANNELS * 8).round() / 2**10, few, 16, 32, ids, 1, 1)
    exact = (CHANNELS[[3, 5, 0, 1]] * 8).round().astype(float) / 2**10 @ few[16:32, 32 : 32 + COLUMNS].astype(float)
    assert (exact * tiles.ONE % 1 == 0.5).any()
    np.testing.assert_array_equal(products[1 : 1 + patches, 32 : 32 + COLUMNS], np.rint(exact * tiles.ONE)[:patches])


@pytest.mark.parametrize("number", [1e3, -1e3, 1e30, -1e30, np.inf, -np.inf, np.nan])
def test_products_beyond_the_integers(number: float) -> None:
    products, weights = np.zeros((1, COLUMNS), np.int32), np.full((CHANNELS.shape[1], COLUMNS), number, np.float32)
    call(tiles.products, products, np.ones((1, 16), np.float32), weights, 0, 0, np.array([0]), 0, 0)
    assert (products == (LOW if number < 0 else HIGH)).all()


def test_add_dots() -> None:
    dots = np.tile(np.arange(16, dtype=np.float32), (3, 1))
    call(tiles.add_dots, dots, 1, OTHERS, 2, WEIGHTS, 32, 48)
    for c in range(16):
        total = sum(float(WEIGHTS[32 + c, j]) * float(OTHERS[2, j]) for j in range(48, 48 + COLUMNS))
        assert dots[1, c] == pytest.approx(c + total, abs=1e-4)
        assert dots[0, c] == dots[2, c] == c


@pytest.mark.parametrize(("function", "patches"), [
    (tiles.add_outer, 1), *[(tiles._add_outer(tiles.PATCH_BLOCK, held), 4) for held in ACCUMULATORS],
])  # fmt: skip
def test_add_outer(function: Any, patches: int) -> None:
    weights, ids = WEIGHTS.copy(), np.array([9, 9, 0, 3, 5, 1])
    call(function, weights, CHANNELS, OTHERS, 16, 80, ids, 2, 1)
    wanted = WEIGHTS.astype(float)
    for i, patch in enumerate((0, 3, 5, 1)[:patches]):
        for c in range(16):
            for j in range(80, 80 + COLUMNS):
                wanted[16 + c, j] += float(CHANNELS[patch, c]) * float(OTHERS[1 + i, j])
    np.testing.assert_allclose(weights, wanted, rtol=1e-5, atol=1e-5)
