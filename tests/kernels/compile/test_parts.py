"""Functions that kernels call: part of the kernel, and still what Python calls by itself."""

from typing import Any

import numba
import numpy as np
import pytest

from fastpong.kernels.compile.jit import fused, kernel, once, uncompiled


@kernel
def _halves(numbers: Any, scale: float = 0.5) -> Any:
    """Return a new array, or raise."""
    if len(numbers) == 0:
        raise ValueError("no numbers")
    out = np.empty(len(numbers))
    for i in range(len(numbers)):
        out[i] = numbers[i] * scale
    return out


@fused
def _sum_of_halves(numbers: Any, scale: float) -> float:
    total = 0.0
    for half in _halves(numbers):
        total += half
    for scaled in _halves(numbers, scale=scale):
        total += scaled
    return total


@once
def _next(number: int) -> int:
    return number + 1


@kernel
def _far_next(number: Any) -> int:
    return _next(_next(number))


def test_a_part_computes_what_it_computes_alone() -> None:
    numbers = np.arange(5.0)
    assert _sum_of_halves(numbers, 2.0) == uncompiled(_sum_of_halves)(numbers, 2.0) == 25
    np.testing.assert_array_equal(_halves(numbers), uncompiled(_halves)(numbers))  # Python may still call it
    assert _sum_of_halves(numbers.astype(np.float32), 2.0) == 25  # another version


def test_what_a_part_raises_reaches_python() -> None:
    with pytest.raises(ValueError, match="no numbers"):
        _sum_of_halves(np.zeros(0), 2.0)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64])
def test_integers_are_widened_on_the_way_into_a_part(kind: Any) -> None:
    largest = np.iinfo(kind).max if kind != np.int64 else 5
    assert _far_next(kind(largest)) == int(largest) + 2


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_part_is_lowered_and_not_compiled() -> None:
    @kernel
    def inner(x: Any) -> Any:
        return x * 3

    @kernel
    def outer(x: Any) -> Any:
        return inner(x) + 1

    assert outer(4) == 13
    compiled: Any = inner
    assert not compiled.signatures  # nothing that Python could call
    assert inner(4) == 12
    assert len(compiled.signatures) == 1
