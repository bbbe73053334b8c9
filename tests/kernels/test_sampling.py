"""Compiled random numbers against whole numbers of any size."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpong.kernels.sampling import choose, hash64, uniform
from fastpong.kernels.structs import Noise
from tests import naive


@settings(max_examples=200)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(0, 2**40))
def test_noise(key: int, env: int, step: int) -> None:
    k, e, s = np.uint64(key), np.uint64(env), np.uint64(step)
    assert int(hash64(k, e, s)) == naive.hash64(key, env, step)
    number: Any = uniform(k, e, s)  # type: ignore[arg-type]
    assert number == naive.uniform(key, env, step)
    assert 0 <= number < 1


@pytest.mark.parametrize("probs", [[0.2, 0.3, 0.5], [1.0, 0.0], [0.0, 0.0, 1.0], [0.4, 0.2, 0.39]])
def test_choose(probs: list[float]) -> None:
    key: Any = np.uint64(2**63 + 5)
    row = np.array(probs, np.float32)
    for step in range(300):
        chosen = choose(row, Noise(key, 40, step, False), 2)
        assert chosen == naive.choose(row.astype(float), naive.uniform(2**63 + 5, 42, step))
        assert choose(row, Noise(key, 40, step, True), 2) == int(np.argmax(row))
