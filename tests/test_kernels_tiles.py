"""Tiles and gathers against sums in float64, for every number of views, both widths, few registers and many."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from fastpong.kernels import gathers, tiles
from fastpong.kernels.vectors import WIDE

RNG = np.random.default_rng(0)
ACTS = np.maximum(RNG.standard_normal((6, 16)), 0).astype(np.float32)
WEIGHTS = RNG.standard_normal((48, 160)).astype(np.float32)
OTHERS = RNG.standard_normal((5, 160)).astype(np.float32)
SUMS = RNG.standard_normal((30, 16)).astype(np.float32)
BIAS = RNG.standard_normal(16).astype(np.float32)
PIECES = np.array([3 << 3 | 7, 20 << 3, 4 << 3 | 2, 3 << 3 | 1], np.uint16)  # rows 3 … 11, 20 … 21, 4 … 7, 3 … 5
ENDS = [(3, 11), (20, 21), (4, 7), (3, 5)]


def call(function: Any, *arguments: Any) -> None:
    """Intrinsics are for compiled code only."""
    names = [f"a{i}" for i in range(len(arguments))]
    scope: dict[str, Any] = {"function": function}
    exec(f"def run({', '.join(names)}):\n    function({', '.join(names)})", scope)
    njit(scope["run"])(*arguments)


@pytest.mark.parametrize(("function", "views", "columns"), [
    (tiles.products_wide, 1, 64), (tiles.products_narrow, 1, 16),
    *[(tiles._products(4, WIDE, held), 4, 64) for held in (1, 2, WIDE)],
])  # fmt: skip
def test_products(function: Any, views: int, columns: int) -> None:
    products = OTHERS.copy()
    call(function, products, ACTS, WEIGHTS, 16, 32, 3, 5, 0, 1, 1)
    wanted = OTHERS.astype(float)
    for i, view in enumerate((3, 5, 0, 1)[:views]):
        for j in range(32, 32 + columns):
            wanted[1 + i, j] = sum(float(ACTS[view, c]) * float(WEIGHTS[16 + c, j]) for c in range(16))
    np.testing.assert_allclose(products, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("function", "columns"), [(tiles.dot_rows_wide, 64), (tiles.dot_rows_narrow, 16)])
def test_dot_rows(function: Any, columns: int) -> None:
    dots = np.tile(np.arange(16, dtype=np.float32), (3, 1))
    call(function, dots, 1, OTHERS, 2, WEIGHTS, 32, 48)
    for c in range(16):
        total = sum(float(WEIGHTS[32 + c, j]) * float(OTHERS[2, j]) for j in range(48, 48 + columns))
        assert dots[1, c] == pytest.approx(c + total, abs=1e-4)
        assert dots[0, c] == dots[2, c] == c


@pytest.mark.parametrize(("function", "views", "columns"), [
    (tiles.add_outer_wide, 1, 64), (tiles.add_outer_narrow, 1, 16),
    *[(tiles._add_outer(4, WIDE, held), 4, 64) for held in (1, 2, WIDE)],
])  # fmt: skip
def test_add_outer(function: Any, views: int, columns: int) -> None:
    weights = WEIGHTS.copy()
    call(function, weights, ACTS, OTHERS, 16, 80, 0, 3, 5, 1, 1)
    wanted = WEIGHTS.astype(float)
    for i, view in enumerate((0, 3, 5, 1)[:views]):
        for c in range(16):
            for j in range(80, 80 + columns):
                wanted[16 + c, j] += float(ACTS[view, c]) * float(OTHERS[1 + i, j])
    np.testing.assert_allclose(weights, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (2, 2)])
def test_see(start: int, end: int) -> None:
    acts = ACTS.copy()
    call(gathers.see, acts, 2, BIAS, SUMS, PIECES, start, end)
    for c in range(16):
        total = float(BIAS[c])
        for above, within in ENDS[start:end]:
            total += float(SUMS[within, c]) - float(SUMS[above, c])
        assert acts[2, c] == pytest.approx(max(0.0, total), abs=1e-5)
    np.testing.assert_array_equal(np.delete(acts, 2, 0), np.delete(ACTS, 2, 0))


@pytest.mark.parametrize("fresh", [False, True])
def test_add_difference(fresh: bool) -> None:
    acts, (above, within) = ACTS.copy(), ENDS[1]
    call(gathers.add_difference, acts, 2, fresh, BIAS, SUMS, int(PIECES[1]))
    for c in range(16):
        total = float(BIAS[c] if fresh else ACTS[2, c]) + float(SUMS[within, c]) - float(SUMS[above, c])
        assert acts[2, c] == pytest.approx(total, abs=1e-5)
    np.testing.assert_array_equal(np.delete(acts, 2, 0), np.delete(ACTS, 2, 0))


def test_see_gradient() -> None:
    grads, bias, sums = RNG.standard_normal((4, 16)).astype(np.float32), BIAS.copy(), SUMS.copy()
    call(gathers.see_gradient, ACTS, grads, 3, bias, sums, PIECES, 1, 4)
    wanted_bias, wanted_sums = BIAS.astype(float), SUMS.astype(float)
    for c in range(16):
        grad = float(grads[3, c]) if ACTS[3, c] > 0 else 0.0
        wanted_bias[c] += grad
        for above, within in ENDS[1:]:
            wanted_sums[within, c] += grad
            wanted_sums[above, c] -= grad
    np.testing.assert_allclose(bias, wanted_bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums, wanted_sums, rtol=1e-5, atol=1e-5)


def test_clear_row() -> None:
    acts = ACTS.copy()
    call(gathers.clear_row, acts, 4)
    assert not acts[4].any()
    np.testing.assert_array_equal(np.delete(acts, 4, 0), np.delete(ACTS, 4, 0))


@pytest.mark.parametrize(("wide", "columns"), [(True, 64), (False, 16)])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_are_added_and_added_to(wide: bool, columns: int, kind: Any) -> None:
    rows = np.array([9, 2, 0, 2, 3, 9]).astype(kind)  # the first and the last are not meant
    members = np.array([7, 7, 1, 1], np.int64)  # of the second … fifth
    matrix, part = OTHERS.copy(), slice(32, 32 + columns)
    add = gathers.add_to_rows_wide if wide else gathers.add_to_rows_narrow
    call(add, matrix, rows, 1, 5, WEIGHTS, members, 1, 32)
    wanted = OTHERS.astype(float)
    for m, i in ((2, 7), (0, 7), (2, 1), (3, 1)):
        wanted[m, part] += WEIGHTS[i, part]
    np.testing.assert_allclose(matrix, wanted, rtol=1e-5, atol=1e-5)
    sums = WEIGHTS.copy()
    call(gathers.sum_rows_wide if wide else gathers.sum_rows_narrow, sums, OTHERS, rows, 2, 5, members, 1, 32)
    wanted = WEIGHTS.astype(float)
    wanted[7, part] = OTHERS[0, part]
    wanted[1, part] = OTHERS[2, part].astype(float) + OTHERS[3, part]
    np.testing.assert_allclose(sums, wanted, rtol=1e-5, atol=1e-5)
