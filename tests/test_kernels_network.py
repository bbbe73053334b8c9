from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpong.kernels import network
from fastpong.kernels.noise import hash64, uniform
from tests import naive

Golden = dict[str, npt.NDArray[Any]]


class Sparse:
    """Dense samples as the lists of signed non-zeros that the kernels read."""

    def __init__(self, xs: npt.NDArray[Any]):
        lists = [[int(np.sign(x[i])) * (int(i) + 1) for i in np.flatnonzero(x)] for x in xs]
        self.lengths = np.array([len(item) for item in lists], np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.changes = np.array([change for item in lists for change in item] + [0], np.int16)


def random_net(seed: int, hidden: int, actions: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    w1 = rng.standard_normal((6400, hidden)).astype(np.float32) / 5
    return w1, rng.standard_normal((actions - 1, hidden)).astype(np.float32)


def random_xs(seed: int, samples: int, most: int = 70) -> npt.NDArray[np.int8]:
    rng = np.random.default_rng(seed)
    xs = np.zeros((samples, 6400), np.int8)
    for x in xs:
        at = rng.choice(6400, rng.integers(0, most), replace=False)
        x[at] = rng.choice([-1, 1], len(at))
    return xs


def forward(sparse: Sparse, sample: int, w1: Any, w2: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    hidden, probs = np.zeros(w1.shape[1], np.float32), np.zeros(len(w2) + 1, np.float32)
    network.forward_one(sparse.changes, sparse.starts[sample], sparse.lengths[sample], w1, w2, hidden, probs)
    return hidden, probs


def gradient(
    sparse: Sparse, actions: Any, advantages: Any, w1: Any, w2: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], float]:
    grad_w1, grad_w2 = np.zeros_like(w1), np.zeros_like(w2)
    entropy = network.policy_gradient(
        sparse.changes, sparse.starts, sparse.lengths, np.asarray(actions, np.uint8), np.arange(len(actions)),
        np.asarray(advantages, np.float32), w1, w2, grad_w1, grad_w2,
    )  # fmt: skip
    return grad_w1, grad_w2, entropy


def test_forward_matches_the_golden_data(golden: Golden) -> None:
    sparse = Sparse(golden["x"])
    w1, w2 = np.ascontiguousarray(golden["w1"].T), golden["w2"][None].copy()
    for t in range(len(golden["x"])):
        hidden, probs = forward(sparse, t, w1, w2)
        np.testing.assert_allclose(hidden, golden["hidden"][t], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(probs, [golden["p_up"][t], 1 - golden["p_up"][t]], rtol=1e-4)


def test_gradient_matches_the_golden_data(golden: Golden) -> None:
    w1, w2 = np.ascontiguousarray(golden["w1"].T), golden["w2"][None].copy()
    actions = np.where(golden["up"], 0, 1)
    grad_w1, grad_w2, _ = gradient(Sparse(golden["x"]), actions, golden["advantages"], w1, w2)
    np.testing.assert_allclose(grad_w2[0], golden["grad_w2"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grad_w1.T[:8], golden["grad_w1_rows"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(grad_w1), golden["grad_w1_norm"], rtol=1e-4)


@pytest.mark.parametrize("actions", [2, 3])
@pytest.mark.parametrize("hidden", [1, 13, 200])
def test_forward(actions: int, hidden: int) -> None:
    w1, w2 = random_net(1, hidden, actions)
    xs = random_xs(2, 8)
    sparse = Sparse(xs)
    for sample, x in enumerate(xs):
        ref_hidden, ref_probs = naive.forward(x.astype(float), w1, w2)
        hidden_, probs = forward(sparse, sample, w1, w2)
        np.testing.assert_allclose(hidden_, ref_hidden, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(probs, ref_probs, rtol=1e-3, atol=1e-6)


@given(st.lists(st.integers(1, 6400), max_size=11, unique=True), st.floats(0.1, 1000))
def test_forward_edge_cases(positions: list[int], scale: float) -> None:
    """Any number of non-zeros modulo four, the first and last pixel, and logits far from zero."""
    w1, w2 = random_net(3, 5, 3)
    w2 *= np.float32(scale)
    x = np.zeros((1, 6400), np.int8)
    for k, position in enumerate(positions):
        x[0, position - 1] = 1 if k % 2 else -1
    ref_hidden, ref_probs = naive.forward(x[0].astype(float), w1, w2)
    hidden, probs = forward(Sparse(x), 0, w1, w2)
    np.testing.assert_allclose(hidden, ref_hidden, rtol=1e-4, atol=1e-5)
    assert np.isfinite(probs).all() and abs(probs.sum() - 1) < 1e-5
    np.testing.assert_allclose(probs, ref_probs, atol=2e-5 * max(1.0, scale))


@pytest.mark.parametrize("actions", [2, 3])
def test_policy_gradient(actions: int) -> None:
    w1, w2 = random_net(4, 7, actions)
    xs = random_xs(5, 12)
    rng = np.random.default_rng(6)
    taken, advantages = rng.integers(0, actions, 12), rng.standard_normal(12)
    dense = [x.astype(float) for x in xs]
    ref_w1, ref_w2 = naive.policy_gradient(dense, taken.tolist(), advantages.tolist(), w1, w2)
    grad_w1, grad_w2, entropy = gradient(Sparse(xs), taken, advantages, w1, w2)
    np.testing.assert_allclose(grad_w1, ref_w1, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(grad_w2, ref_w2, rtol=1e-3, atol=1e-5)
    assert entropy == pytest.approx(sum(naive.entropy(x, w1, w2) for x in dense), rel=1e-4)


@pytest.mark.parametrize("actions", [2, 3])
def test_policy_gradient_against_finite_differences(actions: int) -> None:
    w1, w2 = (w.astype(np.float64) for w in random_net(7, 6, actions))
    xs = random_xs(8, 5)
    rng = np.random.default_rng(9)
    taken, advantages = rng.integers(0, actions, 5), rng.standard_normal(5)
    dense = [x.astype(float) for x in xs]

    def objective() -> float:
        return sum(
            float(advantage) * naive.log_prob(x, action, w1, w2)
            for x, action, advantage in zip(dense, taken.tolist(), advantages, strict=True)
        )

    grad_w1, grad_w2, _ = gradient(Sparse(xs), taken, advantages, w1.astype(np.float32), w2.astype(np.float32))
    pixel = int(np.flatnonzero(np.abs(xs).sum(0))[3])
    for weights, gradients, at in ((w1, grad_w1, (pixel, j)) for j in range(6)):
        assert gradients[at] == pytest.approx(slope(objective, weights, at), rel=2e-3, abs=1e-4)
    for a in range(actions - 1):
        for j in range(6):
            assert grad_w2[a, j] == pytest.approx(slope(objective, w2, (a, j)), rel=2e-3, abs=1e-4)


def slope(objective: Any, weights: Any, at: tuple[int, int]) -> float:
    step, before = 1e-6, weights[at]
    weights[at] = before + step
    up = objective()
    weights[at] = before - step
    down = objective()
    weights[at] = before
    return float((up - down) / (2 * step))


def test_gradients_add_up_and_follow_the_samples() -> None:
    w1, w2 = random_net(10, 9, 3)
    sparse = Sparse(random_xs(11, 6))
    actions, advantages = np.array([0, 1, 2, 2, 1, 0], np.uint8), np.arange(1, 7).astype(np.float32)
    whole_w1, whole_w2, _ = gradient(sparse, actions, advantages, w1, w2)
    grad_w1, grad_w2 = np.zeros_like(w1), np.zeros_like(w2)
    for samples in (np.array([4, 1]), np.array([0, 5, 3, 2])):
        network.policy_gradient(
            sparse.changes, sparse.starts, sparse.lengths, actions, samples, advantages[samples],
            w1, w2, grad_w1, grad_w2,
        )  # fmt: skip
    np.testing.assert_allclose(grad_w1, whole_w1, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grad_w2, whole_w2, rtol=1e-4, atol=1e-5)


class Actor:
    """The act kernel with its output arrays."""

    def __init__(self, sparse: Sparse, w1: Any, w2: Any, actions: int):
        games = len(sparse.lengths)
        self.sparse, self.w1, self.w2, self.choices = sparse, w1, w2, actions
        self.actions = np.full(games, 77, np.uint8)
        self.log_probs = np.full(games, 9, np.float32)

    def act(self, games: Any, step: int, key: int = 99, greedy: bool = False) -> Any:
        noise_key: Any = np.uint64(key)
        network.act(
            self.sparse.changes, self.sparse.starts, self.sparse.lengths, np.asarray(games), self.w1, self.w2,
            noise_key, 5, step, self.choices, greedy, self.actions, self.log_probs,
        )  # fmt: skip
        return self.actions


@pytest.mark.parametrize("actions", [2, 3])
def test_act_draws_from_the_policy(actions: int) -> None:
    w1, w2 = random_net(12, 11, actions)
    xs = random_xs(13, 4)
    actor = Actor(Sparse(xs), w1, w2, actions)
    counts = np.zeros((4, actions))
    for step in range(4000):
        taken = actor.act(range(4), step)
        counts[np.arange(4), taken] += 1
        if step < 50:
            for game, x in enumerate(xs):
                probs = naive.forward(x.astype(float), w1, w2)[1]
                assert taken[game] == naive.draw(probs, naive.uniform(99, 5 + game, step))
                assert actor.log_probs[game] == pytest.approx(np.log(probs[taken[game]]), rel=1e-3, abs=1e-4)
    for game, x in enumerate(xs):
        np.testing.assert_allclose(counts[game] / 4000, naive.forward(x.astype(float), w1, w2)[1], atol=0.03)


def test_act_changes_nobody_else() -> None:
    w1, w2 = random_net(14, 3, 2)
    actor = Actor(Sparse(random_xs(15, 3)), w1, w2, 2)
    taken = actor.act([1], 0, key=1)
    assert taken[0] == taken[2] == 77 and taken[1] < 2
    assert actor.log_probs[2] == 9


@settings(max_examples=200)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(0, 2**40))
def test_noise(key: int, game: int, step: int) -> None:
    k, g, s = np.uint64(key), np.uint64(game), np.uint64(step)
    assert int(hash64(k, g, s)) == naive.hash64(key, game, step)
    number: Any = uniform(k, g, s)  # type: ignore[arg-type]
    assert number == naive.uniform(key, game, step)
    assert 0 <= number < 1
