from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong.kernels import optimiser
from fastpong.kernels.conv import INPUTS, SIDE
from fastpong.kernels.structs import Network
from tests import naive
from tests.support.kernels import adam_state


def test_rmsprop_matches_the_golden_data(golden: dict[str, npt.NDArray[Any]]) -> None:
    weights, gradient = golden["w2"].copy(), golden["grad_w2"].astype(np.float32)
    optimiser.rmsprop(weights, gradient, np.zeros_like(weights), 1e-4, 0.99, 1e-5)
    np.testing.assert_allclose(weights, golden["w2_next"], rtol=1e-5)
    rows, gradient = golden["w1"][:8].copy().ravel(), golden["grad_w1_rows"].astype(np.float32).ravel()
    optimiser.rmsprop(rows, gradient, np.zeros_like(rows), 1e-4, 0.99, 1e-5)
    np.testing.assert_allclose(rows, golden["w1_next_rows"].ravel(), rtol=1e-4, atol=1e-7)


small = st.floats(-100, 100, width=32)


@given(st.lists(st.tuples(small, small, st.floats(0, 100, width=32)), min_size=1, max_size=40))
def test_rmsprop(items: list[tuple[float, float, float]]) -> None:
    weights, gradient, cache = (np.array(column, np.float32) for column in zip(*items, strict=True))
    optimiser.rmsprop(weights, gradient, cache, 1e-3, 0.9, 1e-5)
    for (w, g, c), weight, mean in zip(items, weights, cache, strict=True):
        ref_weight, ref_cache = naive.rmsprop(w, g, c, 1e-3, 0.9, 1e-5)
        assert weight == pytest.approx(ref_weight, rel=1e-5, abs=1e-4)
        assert mean == pytest.approx(ref_cache, rel=1e-4, abs=1e-30)
    assert (gradient == 0).all()


def test_adam() -> None:
    rng = np.random.default_rng(0)
    weights, gradient, exp_avg = (rng.standard_normal(60).astype(np.float32) for _ in range(3))
    exp_avg_sq = rng.random(60).astype(np.float32)
    before = [array.astype(float) for array in (weights, gradient, exp_avg, exp_avg_sq)]
    optimiser.adam(weights, gradient, exp_avg, exp_avg_sq, optimiser.rates_of(1e-2, 7))
    for j in range(60):
        w, g, m, v = (float(array[j]) for array in before)
        ref = naive.adam(w, g, m, v, 1e-2, 0.9, 0.999, 1e-5, 7)
        assert (weights[j], exp_avg[j], exp_avg_sq[j]) == pytest.approx(ref, rel=1e-4, abs=1e-6)
    assert not gradient.any()


def test_adams_average_of_what_has_no_gradient_any_more_ends_at_zero() -> None:
    weights, gradient, exp_avg = np.full(40, 0.1, np.float32), np.zeros(40, np.float32), np.full(40, 1e-3, np.float32)
    exp_avg_sq = exp_avg.copy()
    rates, smallest = optimiser.rates_of(1e-3, 900), np.finfo(np.float32).smallest_normal
    for _ in range(900):  # 0.9⁹⁰⁰ is 10⁻⁴¹
        optimiser.adam(weights, gradient, exp_avg, exp_avg_sq, rates)
        assert ((exp_avg == 0) | (exp_avg >= smallest)).all()
    assert not exp_avg.any() and exp_avg_sq.all()


def test_adam_moves_the_touched_positions_only() -> None:
    rng = np.random.default_rng(1)
    network, gradient = (
        Network(*(rng.random(shape).astype(np.float32) for shape in ((1, 8, 4, 64), (16,), (INPUTS, 5), (2, 6))))
        for _ in range(2)
    )
    state, rates = adam_state(network, False), optimiser.rates_of(1e-2, 7)
    state.touched[[0, 2, 5, 6]] = True
    arrays = [network.w1, gradient.w1, state.exp_avg.w1, state.exp_avg_sq.w1]
    rest = [array.copy() for part in (network, gradient) for array in part if len(array) != INPUTS]
    before, moved = [array.copy() for array in arrays], slice(2 * 16, 3 * 16)
    alone = [array[moved].reshape(-1).copy() for array in arrays]
    optimiser.adam_where_touched(network, gradient, state, rates, 1, 5)
    optimiser.adam(alone[0], alone[1], alone[2], alone[3], rates)
    for array, changed, old in zip(arrays, alone, before, strict=True):
        np.testing.assert_array_equal(array[moved].reshape(-1), changed)
        np.testing.assert_array_equal(np.delete(array, moved, 0), np.delete(old, moved, 0))
    assert not gradient.w1[moved].any() and gradient.w1[SIDE:].all()
    for array, old in zip([a for part in (network, gradient) for a in part if len(a) != INPUTS], rest, strict=True):
        np.testing.assert_array_equal(array, old)
