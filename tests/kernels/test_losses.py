"""The outputs, and the gradient of the loss for them, against plain loops and finite differences."""

import numpy as np
import pytest

from fastpong.arrays import F32
from fastpong.kernels import losses
from fastpong.kernels.structs import Loss, Transitions
from tests import naive

HIDDEN = 9
COEFFICIENTS = naive.Coefficients(0.2, 0.4, 0.03, 0.5)
SHIFTS = (0.0, 0.05, -0.26, 0.5, -0.5, 0.5, -0.5, 0.1)
"""Of the logarithm of the probability when each action was taken."""
ADVANTAGES = (1.0, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.0)
CLIPPED = 2  # the fifth sample, up with a ratio of 1.6, and the sixth, down with one of 0.6


def hidden_units(samples: int, scale: float = 1.0) -> F32:
    """Some are on, some are off."""
    rng = np.random.default_rng(1)
    return np.maximum(scale * rng.standard_normal((samples, HIDDEN)), 0.0).astype(np.float32)


def weights(outputs: int) -> F32:
    return np.random.default_rng(2).standard_normal((outputs, HIDDEN + 1)).astype(np.float32)


@pytest.mark.parametrize("actions", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_outputs(actions: int, scale: float) -> None:
    w2, probs, logs = weights(actions + 1), np.zeros(actions, np.float32), np.zeros(actions, np.float32)
    for unit in hidden_units(5, scale):
        value = losses.outputs(unit, w2, probs, logs)
        double = w2.astype(float)
        results = double[:, :-1] @ unit.astype(float) + double[:, -1]
        assert value == pytest.approx(results[-1], rel=1e-4, abs=1e-4)
        top = results[:-1].max()
        wanted = results[:-1] - top - np.log(np.exp(results[:-1] - top).sum())
        np.testing.assert_allclose(logs, wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(probs, np.exp(wanted), rtol=2e-3, atol=1e-6)
        if scale == 1.0:
            ref_probs, ref_logs, ref_value = naive.outputs(unit.astype(float), double)
            assert ref_value == pytest.approx(results[-1])
            np.testing.assert_allclose(probs, ref_probs, rtol=1e-4)
            np.testing.assert_allclose(logs, ref_logs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("actions", [2, 3])
def test_gradient_of_the_loss(actions: int) -> None:
    rng, w2, hidden, size = np.random.default_rng(3), weights(actions + 1), hidden_units(8), 11
    sample_ids = rng.permutation(size)[:8]  # of what is listed
    taken, log_probs = rng.integers(0, actions, size).astype(np.uint8), np.zeros(size, np.float32)
    advantages, targets = np.zeros(size, np.float32), rng.standard_normal(size).astype(np.float32)
    results = [naive.outputs(unit.astype(float), w2.astype(float)) for unit in hidden]
    for sample, shift, advantage, (_, logs, _) in zip(sample_ids, SHIFTS, ADVANTAGES, results, strict=True):
        log_probs[sample] = logs[taken[sample]] + shift
        advantages[sample] = advantage
    grad_w2, grad_hidden = np.full(w2.shape, 2.0, np.float32), np.full(hidden.shape, 9.0, np.float32)
    statistics = np.full(4, 100.0)
    losses.loss_gradient(
        hidden, sample_ids, Transitions(taken, log_probs, advantages, targets), w2, Loss(*COEFFICIENTS, 0.125),
        grad_w2, grad_hidden, statistics,
    )  # fmt: skip
    total = np.zeros(w2.shape)
    for m, s in enumerate(sample_ids.tolist()):
        learned = naive.Transition(int(taken[s]), float(log_probs[s]), float(advantages[s]), float(targets[s]))
        one, ref_hidden = naive.loss_gradient(hidden[m].astype(float), w2, learned, COEFFICIENTS)
        np.testing.assert_allclose(grad_hidden[m], ref_hidden / 8, rtol=1e-3, atol=1e-5)
        assert not grad_hidden[m][hidden[m] == 0].any()
        total += one / 8
    np.testing.assert_allclose(grad_w2 - 2.0, total, rtol=1e-3, atol=1e-5)
    errors = [float(targets[s]) - value for s, (_, _, value) in zip(sample_ids, results, strict=True)]
    ratios = np.exp(-np.array(SHIFTS))
    wanted = [
        sum(naive.entropy(probs) for probs, _, _ in results), float((ratios - 1 - np.log(ratios)).sum()), CLIPPED,
        sum(error * error for error in errors),
    ]  # fmt: skip
    np.testing.assert_allclose(statistics - 100.0, wanted, rtol=1e-4, atol=1e-6)
