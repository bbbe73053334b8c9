"""Tiles against sums in float64, for every number of samples and both widths."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from fastpong.kernels import tiles

RNG = np.random.default_rng(0)
ACTS = np.maximum(RNG.standard_normal((6, 16)), 0).astype(np.float32)
WEIGHTS = RNG.standard_normal((48, 160)).astype(np.float32)
OTHERS = RNG.standard_normal((5, 160)).astype(np.float32)


def call(function: Any, *arguments: Any) -> None:
    """Intrinsics are for compiled code only."""
    names = [f"a{i}" for i in range(len(arguments))]
    scope: dict[str, Any] = {"function": function}
    exec(f"def run({', '.join(names)}):\n    function({', '.join(names)})", scope)
    njit(scope["run"])(*arguments)


@pytest.mark.parametrize(("function", "samples", "columns"), [
    (tiles.add_rows_wide, 1, 64), (tiles.add_two_rows_wide, 2, 64), (tiles.add_rows_narrow, 1, 16),
])  # fmt: skip
def test_add_rows(function: Any, samples: int, columns: int) -> None:
    sums = OTHERS.copy()
    call(function, sums, ACTS, WEIGHTS, 16, 32, 3, 5, 4, 1)
    wanted = OTHERS.astype(float)
    for entry, owner in ((3, 4), (5, 1))[:samples]:
        for j in range(32, 32 + columns):
            wanted[owner, j] += sum(float(ACTS[entry, c]) * float(WEIGHTS[16 + c, j]) for c in range(16))
    np.testing.assert_allclose(sums, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("function", "columns"), [(tiles.dot_rows_wide, 64), (tiles.dot_rows_narrow, 16)])
def test_dot_rows(function: Any, columns: int) -> None:
    dots = np.arange(16, dtype=np.float32)[None]
    call(function, dots, OTHERS, WEIGHTS, 32, 48, 2)
    for c in range(16):
        total = sum(float(WEIGHTS[32 + c, j]) * float(OTHERS[2, j]) for j in range(48, 48 + columns))
        assert dots[0, c] == pytest.approx(c + total, abs=1e-4)


@pytest.mark.parametrize(("function", "samples", "columns"), [
    (tiles.add_outer_wide, 1, 64), (tiles.add_four_outer_wide, 4, 64), (tiles.add_outer_narrow, 1, 16),
])  # fmt: skip
def test_add_outer(function: Any, samples: int, columns: int) -> None:
    weights = WEIGHTS.copy()
    pairs = ((0, 2), (3, 0), (5, 4), (1, 1))
    call(function, weights, ACTS, OTHERS, 16, 80, *(e for e, _ in pairs), *(m for _, m in pairs))
    wanted = WEIGHTS.astype(float)
    for entry, owner in pairs[:samples]:
        for c in range(16):
            for j in range(80, 80 + columns):
                wanted[16 + c, j] += float(ACTS[entry, c]) * float(OTHERS[owner, j])
    np.testing.assert_allclose(weights, wanted, rtol=1e-5, atol=1e-5)


def test_replace_positive() -> None:
    acts, dots = ACTS.copy(), -np.arange(16, dtype=np.float32)[None]
    call(tiles.replace_positive, acts, 2, dots)
    np.testing.assert_array_equal(acts[2], np.where(ACTS[2] > 0, -np.arange(16), 0))
    np.testing.assert_array_equal(acts[[0, 1, 3, 4, 5]], ACTS[[0, 1, 3, 4, 5]])
    assert not dots.any()


@pytest.mark.parametrize("gradient", [False, True])
def test_add_run(gradient: bool) -> None:
    acts, sums = ACTS.copy(), WEIGHTS[:, :64].copy()
    call(tiles.add_run_gradient if gradient else tiles.add_run, acts, sums, 7, 2, 5, 0, 3, 1)
    wanted_acts, wanted_sums = ACTS.astype(float), WEIGHTS[:, :64].astype(float)
    for d, entry in enumerate((5, 0, 3, 1)):
        for c in range(16):
            if gradient:
                wanted_sums[7, 16 * d + c] += ACTS[entry, c]
                wanted_sums[2, 16 * d + c] -= ACTS[entry, c]
            else:
                wanted_acts[entry, c] += float(WEIGHTS[7, 16 * d + c]) - float(WEIGHTS[2, 16 * d + c])
    np.testing.assert_allclose(acts, wanted_acts, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums, wanted_sums, rtol=1e-5, atol=1e-5)
