"""Gathers against sums in float64."""

from typing import Any

import numpy as np
import pytest

from fastpong.kernels import gathers
from fastpong.kernels.compile.simd import COLUMNS
from tests.support.kernels import call

RNG = np.random.default_rng(0)
CHANNELS = np.maximum(RNG.standard_normal((6, 16)), 0).astype(np.float32)
WEIGHTS = RNG.standard_normal((48, 160)).astype(np.float32)
OTHERS = RNG.standard_normal((5, 160)).astype(np.float32)
SUMS = RNG.standard_normal((30, 16)).astype(np.float32)
BIAS = RNG.standard_normal(16).astype(np.float32)
STRIPS = np.array([3 << 3 | 7, 20 << 3, 4 << 3 | 2, 3 << 3 | 1], np.int32)  # rows 3 … 11, 20 … 21, 4 … 7, 3 … 5
ENDS = [(3, 11), (20, 21), (4, 7), (3, 5)]


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (2, 2)])
def test_conv_forward(start: int, end: int) -> None:
    channels = CHANNELS.copy()
    call(gathers.conv_forward, channels, 2, BIAS, SUMS, STRIPS, start, end)
    for c in range(16):
        total = float(BIAS[c])
        for above, within in ENDS[start:end]:
            total += float(SUMS[within, c]) - float(SUMS[above, c])
        assert channels[2, c] == pytest.approx(max(0.0, total), abs=1e-5)
    np.testing.assert_array_equal(np.delete(channels, 2, 0), np.delete(CHANNELS, 2, 0))


@pytest.mark.parametrize("fresh", [False, True])
def test_add_strip(fresh: bool) -> None:
    channels, (above, within) = CHANNELS.copy(), ENDS[1]
    call(gathers.add_strip, channels, 2, fresh, BIAS, SUMS, int(STRIPS[1]))
    for c in range(16):
        total = float(BIAS[c] if fresh else CHANNELS[2, c]) + float(SUMS[within, c]) - float(SUMS[above, c])
        assert channels[2, c] == pytest.approx(total, abs=1e-5)
    np.testing.assert_array_equal(np.delete(channels, 2, 0), np.delete(CHANNELS, 2, 0))


def test_conv_backward() -> None:
    grads, bias, sums = RNG.standard_normal((4, 16)).astype(np.float32), BIAS.copy(), SUMS.copy()
    call(gathers.conv_backward, CHANNELS, grads, 3, bias, sums, STRIPS, 1, 4)
    wanted_bias, wanted_sums = BIAS.astype(float), SUMS.astype(float)
    for c in range(16):
        grad = float(grads[3, c]) if CHANNELS[3, c] > 0 else 0.0
        wanted_bias[c] += grad
        for above, within in ENDS[1:]:
            wanted_sums[within, c] += grad
            wanted_sums[above, c] -= grad
    np.testing.assert_allclose(bias, wanted_bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums, wanted_sums, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_are_added_and_added_to(kind: Any) -> None:
    rows = np.array([9, 2, 0, 2, 3, 9]).astype(kind)  # the first and the last are not meant
    groups = np.array([7, 7, 1, 1], np.int64)  # of the second … fifth
    matrix, part = OTHERS.copy(), slice(32, 32 + COLUMNS)
    call(gathers.add_to_rows, matrix, rows, 1, 5, WEIGHTS, groups, 1, 32)
    wanted = OTHERS.astype(float)
    for m, i in ((2, 7), (0, 7), (2, 1), (3, 1)):
        wanted[m, part] += WEIGHTS[i, part]
    np.testing.assert_allclose(matrix, wanted, rtol=1e-5, atol=1e-5)
    sums = WEIGHTS.copy()
    call(gathers.sum_rows, sums, OTHERS, rows, 2, 5, groups, 1, 32)
    wanted = WEIGHTS.astype(float)
    wanted[7, part] = OTHERS[0, part]
    wanted[1, part] = OTHERS[2, part].astype(float) + OTHERS[3, part]
    np.testing.assert_allclose(sums, wanted, rtol=1e-5, atol=1e-5)
