from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastpong.kernels import ppo
from tests import naive
from tests.test_kernels_network import Sparse, random_net, random_xs, slope

CLIP, ENTROPY, VALUE = 0.2, 0.03, 0.5


@given(st.data(), st.floats(0.5, 1.0), st.floats(0.0, 1.0))
def test_advantages(data: st.DataObject, gamma: float, lam: float) -> None:
    size = (data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3)))
    rewards = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1, -1])))
    ended = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1])))
    values = data.draw(arrays(np.float32, (size[0] + 1, size[1]), elements=st.floats(-1, 1, width=32)))
    advantages, targets = np.zeros(size, np.float32), np.zeros(size, np.float32)
    ppo.advantages_of(rewards, ended, values, gamma, lam, advantages, targets)
    ref_advantages, ref_targets = naive.advantages_of(rewards, ended, values, gamma, lam)
    np.testing.assert_allclose(advantages, ref_advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(targets, ref_targets, rtol=1e-4, atol=1e-5)


class Minibatch:
    """Some samples, half of them beyond the clip on either side, and what the kernel makes of them."""

    def __init__(self, actions: int, inputs: int = 6400):
        rng = np.random.default_rng(actions)
        self.w1, self.w2 = random_net(21, 6, actions + 1)
        self.xs = random_xs(22, 8)
        self.taken = rng.integers(0, actions, 8)
        dense = [x.astype(float) for x in self.xs]
        now = [naive.log_prob(x, a, self.w1, self.w2[:-1]) for x, a in zip(dense, self.taken.tolist(), strict=True)]
        self.log_probs = np.array(now, np.float32) + np.array([0, 0.05, -0.05, 0.5, -0.5, 0.5, -0.5, 0.1], np.float32)
        self.advantages = np.array([1, -1, 1, 1, 1, -1, -1, 0], np.float32)
        self.targets = rng.standard_normal(8).astype(np.float32)
        self.grad_w1, self.grad_w2 = np.zeros_like(self.w1), np.zeros_like(self.w2)
        self.statistics, self.touched = np.zeros(4), np.zeros(inputs, np.int64)
        sparse = Sparse(self.xs)
        self.count = ppo.clipped_gradient(
            sparse.changes, sparse.starts, sparse.lengths, self.taken.astype(np.uint8), self.log_probs,
            self.advantages, self.targets, np.arange(8), self.w1, self.w2, CLIP, ENTROPY, VALUE, 1 / 8,
            self.grad_w1, self.grad_w2, np.zeros(inputs, np.int64), 5, self.touched, self.statistics,
        )  # fmt: skip


@pytest.mark.parametrize("actions", [2, 3])
def test_clipped_gradient_against_finite_differences(actions: int) -> None:
    batch = Minibatch(actions)
    w1, w2 = batch.w1.astype(np.float64), batch.w2.astype(np.float64)
    dense = [x.astype(float) for x in batch.xs]

    def objective() -> float:
        return sum(
            naive.clipped_objective(
                dense[i], int(batch.taken[i]), float(batch.log_probs[i]), float(batch.advantages[i]),
                float(batch.targets[i]), w1, w2, CLIP, ENTROPY, VALUE,
            )
            for i in range(8)
        ) / 8  # fmt: skip

    for a in range(actions):
        for j in range(6):
            assert batch.grad_w2[a, j] == pytest.approx(slope(objective, w2, (a, j)), rel=2e-3, abs=1e-4)
    for pixel in np.flatnonzero(np.abs(batch.xs).sum(0))[::40].tolist():
        for j in range(6):
            assert batch.grad_w1[pixel, j] == pytest.approx(slope(objective, w1, (pixel, j)), rel=2e-3, abs=1e-4)


def test_touched_rows_and_statistics() -> None:
    batch = Minibatch(3)
    rows = batch.touched[: batch.count].tolist()
    assert sorted(rows) == np.flatnonzero(np.abs(batch.xs).sum(0)).tolist()
    others = np.setdiff1d(np.arange(6400), rows)
    assert not batch.grad_w1[others].any()
    dense = [x.astype(float) for x in batch.xs]
    assert batch.statistics[0] == pytest.approx(sum(naive.entropy(x, batch.w1, batch.w2[:2]) for x in dense), rel=1e-4)
    ratios = np.exp([0, -0.05, 0.05, -0.5, 0.5, -0.5, 0.5, -0.1])
    assert batch.statistics[1] == pytest.approx(float((ratios - 1 - np.log(ratios)).sum()), rel=1e-3)
    assert batch.statistics[2] == 2  # up with a ratio of 1.6, and down with one of 0.6
    hidden = [naive.forward(x, batch.w1, batch.w2[:2])[0] for x in dense]
    errors = [float(t) - float(batch.w2[2].astype(float) @ h) for t, h in zip(batch.targets, hidden, strict=True)]
    assert batch.statistics[3] == pytest.approx(sum(e * e for e in errors), rel=1e-3)


def test_halves_add_up() -> None:
    whole = Minibatch(2)
    sparse = Sparse(whole.xs)
    halves = []
    for samples in (np.array([7, 1, 4, 2]), np.array([0, 3, 5, 6])):
        grad_w1, grad_w2 = np.zeros_like(whole.w1), np.zeros_like(whole.w2)
        marks, touched = np.zeros(6400, np.int64), np.zeros(6400, np.int64)
        arguments: Any = (
            sparse.changes, sparse.starts, sparse.lengths, whole.taken.astype(np.uint8), whole.log_probs,
            whole.advantages, whole.targets, samples, whole.w1, whole.w2, CLIP, ENTROPY, VALUE, 1 / 8,
            grad_w1, grad_w2, marks, 3, touched, np.zeros(4),
        )  # fmt: skip
        halves.append((grad_w1, grad_w2, marks, touched, ppo.clipped_gradient(*arguments)))
    (grad_w1, grad_w2, marks, touched, count), (other_w1, other_w2, _, other_touched, other_count) = halves
    count = ppo.merge_rows(grad_w1, marks, 3, touched, count, other_w1, other_touched, other_count)
    np.testing.assert_allclose(grad_w1, whole.grad_w1, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(grad_w2 + other_w2, whole.grad_w2, rtol=1e-4, atol=1e-6)
    assert sorted(touched[:count]) == sorted(whole.touched[: whole.count])
    assert not other_w1.any()
