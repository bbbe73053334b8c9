from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong.arrays import F32
from fastpong.kernels import mlp
from fastpong.kernels.structs import Inputs, Mlp, Noise
from tests import naive
from tests.support.kernels import sparse_inputs

Golden = dict[str, npt.NDArray[Any]]


def random_weights(seed: int, hidden: int, actions: int) -> Mlp:
    rng = np.random.default_rng(seed)
    w1 = rng.standard_normal((6400, hidden)).astype(np.float32) / np.float32(5)
    return Mlp(w1, rng.standard_normal((actions - 1, hidden)).astype(np.float32))


def golden_weights(golden: Golden) -> Mlp:
    return Mlp(np.ascontiguousarray(golden["w1"].T), golden["w2"][None].copy())


def random_xs(seed: int, samples: int, most: int = 70) -> npt.NDArray[np.int8]:
    rng = np.random.default_rng(seed)
    xs = np.zeros((samples, 6400), np.int8)
    for x in xs:
        at = rng.choice(6400, rng.integers(0, most), replace=False)
        x[at] = rng.choice([-1, 1], len(at))
    return xs


def forward(inputs: Inputs, sample: int, weights: Mlp) -> tuple[F32, F32]:
    hidden, probs = np.zeros(weights.w1.shape[1], np.float32), np.zeros(len(weights.w2) + 1, np.float32)
    start, length = int(inputs.arrays.offsets[sample]), int(inputs.arrays.lengths[sample])
    mlp.forward_one(inputs.images, start, length, *weights, hidden, probs)
    return hidden, probs


def gradient(inputs: Inputs, actions: Any, advantages: Any, weights: Mlp) -> tuple[F32, F32, float]:
    inputs.arrays.actions[:] = actions
    grads = Mlp(np.zeros_like(weights.w1), np.zeros_like(weights.w2))
    entropy = mlp.policy_gradient(
        inputs, np.arange(len(actions)), np.asarray(advantages, np.float32), weights, grads
    )  # fmt: skip
    return *grads, entropy


def test_forward_matches_the_golden_data(golden: Golden) -> None:
    inputs, weights = sparse_inputs(golden["x"], 2), golden_weights(golden)
    for t in range(len(golden["x"])):
        hidden, probs = forward(inputs, t, weights)
        np.testing.assert_allclose(hidden, golden["hidden"][t], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(probs, [golden["p_up"][t], 1 - golden["p_up"][t]], rtol=1e-4)


def test_gradient_matches_the_golden_data(golden: Golden) -> None:
    actions, inputs = np.where(golden["up"], 0, 1), sparse_inputs(golden["x"], 2)
    grad_w1, grad_w2, _ = gradient(inputs, actions, golden["advantages"], golden_weights(golden))
    np.testing.assert_allclose(grad_w2[0], golden["grad_w2"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grad_w1.T[:8], golden["grad_w1_rows"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(grad_w1), golden["grad_w1_norm"], rtol=1e-4)


@pytest.mark.parametrize("actions", [2, 3])
@pytest.mark.parametrize("hidden", [1, 13, 200])
def test_forward(actions: int, hidden: int) -> None:
    weights, xs = random_weights(1, hidden, actions), random_xs(2, 8)
    inputs = sparse_inputs(xs, actions)
    for sample, x in enumerate(xs):
        units, probs = forward(inputs, sample, weights)
        np.testing.assert_allclose(units, naive.mlp_hidden(x.astype(float), weights.w1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(probs, naive.mlp_probs(x.astype(float), *weights), rtol=1e-3, atol=1e-6)


@given(st.lists(st.integers(1, 6400), max_size=11, unique=True), st.floats(0.1, 1000))
def test_forward_edge_cases(positions: list[int], scale: float) -> None:
    """Any number of non-zeros modulo four, the first and last pixel, and logits far from zero."""
    weights = random_weights(3, 5, 3)
    weights.w2[:] *= np.float32(scale)
    x = np.zeros((1, 6400), np.int8)
    for k, position in enumerate(positions):
        x[0, position - 1] = 1 if k % 2 else -1
    hidden, probs = forward(sparse_inputs(x, 3), 0, weights)
    np.testing.assert_allclose(hidden, naive.mlp_hidden(x[0].astype(float), weights.w1), rtol=1e-4, atol=1e-5)
    assert np.isfinite(probs).all() and abs(probs.sum() - 1) < 1e-5
    np.testing.assert_allclose(probs, naive.mlp_probs(x[0].astype(float), *weights), atol=2e-5 * max(1.0, scale))


@pytest.mark.parametrize("actions", [2, 3])
def test_policy_gradient(actions: int) -> None:
    weights, xs = random_weights(4, 7, actions), random_xs(5, 12)
    rng = np.random.default_rng(6)
    taken, advantages = rng.integers(0, actions, 12), rng.standard_normal(12)
    dense = [x.astype(float) for x in xs]
    ref_w1, ref_w2 = naive.policy_gradient(dense, taken.tolist(), advantages.tolist(), *weights)
    grad_w1, grad_w2, entropy = gradient(sparse_inputs(xs, actions), taken, advantages, weights)
    np.testing.assert_allclose(grad_w1, ref_w1, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(grad_w2, ref_w2, rtol=1e-3, atol=1e-5)
    assert entropy == pytest.approx(sum(naive.entropy(naive.mlp_probs(x, *weights)) for x in dense), rel=1e-4)


@pytest.mark.parametrize("actions", [2, 3])
def test_policy_gradient_against_finite_differences(actions: int) -> None:
    weights, xs = random_weights(7, 6, actions), random_xs(8, 5)
    w1, w2 = (array.astype(np.float64) for array in weights)
    rng = np.random.default_rng(9)
    taken, advantages = rng.integers(0, actions, 5), rng.standard_normal(5)
    dense = [x.astype(float) for x in xs]

    def objective() -> float:
        return sum(
            float(advantage) * float(np.log(naive.mlp_probs(x, w1, w2)[action]))
            for x, action, advantage in zip(dense, taken.tolist(), advantages, strict=True)
        )

    grad_w1, grad_w2, _ = gradient(sparse_inputs(xs, actions), taken, advantages, weights)
    pixel = int(np.flatnonzero(np.abs(xs).sum(0))[3])
    for j in range(6):
        assert grad_w1[pixel, j] == pytest.approx(naive.slope(objective, w1, (pixel, j)), rel=2e-3, abs=1e-4)
    for a in range(actions - 1):
        for j in range(6):
            assert grad_w2[a, j] == pytest.approx(naive.slope(objective, w2, (a, j)), rel=2e-3, abs=1e-4)


def test_gradients_add_up_and_follow_the_samples() -> None:
    weights, inputs = random_weights(10, 9, 3), sparse_inputs(random_xs(11, 6), 3)
    actions, advantages = np.array([0, 1, 2, 2, 1, 0], np.uint8), np.arange(1, 7).astype(np.float32)
    whole_w1, whole_w2, _ = gradient(inputs, actions, advantages, weights)
    grads = Mlp(np.zeros_like(weights.w1), np.zeros_like(weights.w2))
    for samples in (np.array([4, 1]), np.array([0, 5, 3, 2])):
        mlp.policy_gradient(inputs, samples, advantages[samples], weights, grads)
    np.testing.assert_allclose(grads.w1, whole_w1, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grads.w2, whole_w2, rtol=1e-4, atol=1e-5)


class Actor:
    """The act kernel with the arrays that it writes."""

    def __init__(self, xs: npt.NDArray[Any], weights: Mlp, actions: int):
        self.inputs, self.weights = sparse_inputs(xs, actions), weights
        self.arrays = self.inputs.arrays
        self.arrays.actions[:], self.arrays.log_probs[:] = 77, 9

    def act(self, members: Any, step: int, key: int = 99, greedy: bool = False) -> Any:
        noise_key: Any = np.uint64(key)
        chosen = mlp.act(self.inputs, 0, np.asarray(members), self.weights, Noise(noise_key, 5, step, greedy))
        assert chosen.tolist() == self.arrays.actions[np.asarray(members)].tolist()
        return chosen


@pytest.mark.parametrize("actions", [2, 3])
def test_act_samples_from_the_policy(actions: int) -> None:
    weights, xs = random_weights(12, 11, actions), random_xs(13, 4)
    actor, refs = Actor(xs, weights, actions), [naive.mlp_probs(x.astype(float), *weights) for x in xs]
    counts = np.zeros((4, actions))
    for step in range(4000):
        taken = actor.act(range(4), step)
        counts[np.arange(4), taken] += 1
        if step < 50:
            for env, probs in enumerate(refs):
                assert taken[env] == naive.choose(probs, naive.uniform(99, 5 + env, step))
                assert actor.arrays.log_probs[env] == pytest.approx(np.log(probs[taken[env]]), rel=1e-3, abs=1e-4)
    for env, probs in enumerate(refs):
        np.testing.assert_allclose(counts[env] / 4000, probs, atol=0.03)
    assert actor.act([2, 0], 7, greedy=True).tolist() == [int(np.argmax(refs[env])) for env in (2, 0)]


def test_act_changes_nobody_else() -> None:
    actor = Actor(random_xs(15, 3), random_weights(14, 3, 2), 2)
    assert actor.act([1], 0, key=1)[0] < 2
    assert actor.arrays.actions[0] == actor.arrays.actions[2] == 77
    assert actor.arrays.log_probs[0] == actor.arrays.log_probs[2] == 9
