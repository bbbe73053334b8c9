"""The value network's kernels against plain loops, on real screens, and against finite differences."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.kernels import sites
from fastpong.kernels import value as kernels
from tests import naive
from tests.test_kernels_network import slope
from tests.test_kernels_ppo import Steps, listed

value: Any = kernels  # arguments are unpacked from lists
F32 = npt.NDArray[np.float32]
SAMPLES = np.array([12, 5, 1, 8, 9, 0, 13, 10])  # what is listed
PICKS = np.array([6, 0, 3, 2, 5])  # of these
CHOICES = 3
TARGETS = np.random.default_rng(6).standard_normal(len(SAMPLES)).astype(np.float32)


@pytest.fixture(scope="module")
def network(real_screens: npt.NDArray[np.uint8]) -> tuple[Steps, list[F32]]:
    steps = Steps(real_screens)
    w2 = np.random.default_rng(7).standard_normal((1, steps.w1.shape[1] + 1)).astype(np.float32)
    return steps, [steps.kernel, steps.bias, steps.w1, w2]


def value_of(steps: Steps, sample: int, kernel: Any, bias: Any, w1: Any, w2: Any) -> float:
    frames, past = steps.seen(sample)
    silent = np.zeros((CHOICES, w2.shape[1]))  # the actions' outputs, which tell the twin how many there are
    return float(naive.convolutional_outputs(frames, past, kernel, bias, w1, np.concatenate([silent, w2]))[-1])


def test_values(network: tuple[Steps, list[F32]]) -> None:
    steps, weights = network
    values = np.full(len(SAMPLES), 7.0, np.float32)
    value.values_of(
        *listed(steps, SAMPLES), PICKS, steps.ages.reshape(-1), 2, steps.actions.reshape(-1), SAMPLES[PICKS],
        *weights, steps.past, CHOICES, values,
    )  # fmt: skip
    for pick in PICKS.tolist():
        wanted = value_of(steps, int(SAMPLES[pick]), *weights)
        assert values[pick] == pytest.approx(wanted, rel=1e-3, abs=1e-4)
    assert (np.delete(values, PICKS) == 7.0).all()


def test_value_gradient_against_finite_differences(network: tuple[Steps, list[F32]]) -> None:
    steps, weights = network
    gradients = [np.zeros_like(array) for array in weights]
    touched = np.zeros(sites.SITES + 1, np.bool_)
    value.value_gradient(
        *listed(steps, SAMPLES), PICKS, steps.ages.reshape(-1), 2, steps.actions.reshape(-1), SAMPLES[PICKS],
        *weights, steps.past, CHOICES, TARGETS, 1 / 5, *gradients, touched,
    )  # fmt: skip
    doubles = [array.astype(np.float64) for array in weights]

    def objective() -> float:
        errors = [float(TARGETS[p]) - value_of(steps, int(SAMPLES[p]), *doubles) for p in PICKS.tolist()]
        return -0.5 * sum(error * error for error in errors) / 5

    rng = np.random.default_rng(8)
    for array, gradient in zip(doubles, gradients, strict=True):
        seen = np.argwhere(np.abs(gradient) > 1e-3)
        assert len(seen) >= 4
        for at in rng.permutation(seen)[:5]:
            index = tuple(at.tolist())
            assert gradient[index] == pytest.approx(slope(objective, array, index), rel=1e-2, abs=1e-3)
    rows = np.flatnonzero(np.abs(gradients[2]).sum(1))
    assert touched[rows // 16].all() and touched[-1]
    reached = np.zeros(sites.SITES, np.bool_)
    for pick in PICKS.tolist():
        every = np.ones((3, 8, 4, 64))
        reached |= naive.convolution(steps.seen(int(SAMPLES[pick]))[0], every, 0.0).sum(-1).reshape(-1) > 0
    np.testing.assert_array_equal(touched[:-1], reached)
