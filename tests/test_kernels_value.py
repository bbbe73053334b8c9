"""The value network's kernels against plain loops, on real screens, and against finite differences."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.kernels import convolution, sites
from fastpong.kernels import value as kernels
from fastpong.kernels.meeting import ALONE
from tests import naive
from tests.test_kernels_network import slope
from tests.test_kernels_ppo import Steps, adam, listed, one_pass, passes, records

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
    views, size = listed(steps, SAMPLES), 3
    over = one_pass(views, SAMPLES, [[0, 1, 2], [3, 4, 5], [6, 7]], 1.0, 0)
    for half in (0, 1):
        sites.deal(views[half], over.places, over.bounds, over.rows[half], over.kinds[half])
    for first, last in ((2, 3), (0, 1)):
        value.values_of(
            views, over.bounds, over.rows, over.kinds, size, first, last, steps.ages.reshape(-1), 2,
            steps.actions.reshape(-1), SAMPLES, *weights, steps.past, CHOICES, values,
        )  # fmt: skip
    for k in (0, 1, 2, 6, 7):
        assert values[k] == pytest.approx(value_of(steps, int(SAMPLES[k]), *weights), rel=1e-3, abs=1e-4)
    assert (values[3:6] == 7.0).all()


def test_value_gradient_against_finite_differences(network: tuple[Steps, list[F32]]) -> None:
    steps, weights = network
    halves = tuple(records.Network(*(np.zeros_like(array) for array in weights)) for _ in range(2))
    touched, views = np.zeros(sites.SITES, np.bool_), listed(steps, SAMPLES)
    none = np.zeros(0, np.float32)
    assert passes.half_of_value_pass(
        ALONE, np.zeros((2, 8), np.int64), 0, 1, views,
        one_pass(views, SAMPLES, [PICKS.tolist()], 1 / 5, steps.w1.shape[1]), steps.ages.reshape(-1),
        steps.actions.reshape(-1), TARGETS, 2, steps.past, CHOICES, records.Network(*weights), halves, touched,
        adam(weights, False), 0.9, none, none,
    )  # fmt: skip
    gradients = [one + two for one, two in zip(*halves, strict=True)]
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
    rows = np.flatnonzero(np.abs(gradients[2][: convolution.FACTS]).sum(1))
    assert touched[rows // 16].all() and gradients[2][convolution.FACTS].any()
    reached = np.zeros(sites.SITES, np.bool_)
    for pick in PICKS.tolist():
        every = np.ones((3, 8, 4, 64))
        reached |= naive.convolution(steps.seen(int(SAMPLES[pick]))[0], every, 0.0).sum(-1).reshape(-1) > 0
    np.testing.assert_array_equal(touched, reached)


def test_the_critics_mean_follows_its_weights(network: tuple[Steps, list[F32]]) -> None:
    steps, weights = network
    flat = np.concatenate([array.reshape(-1) for array in weights])
    ends = np.cumsum([0] + [array.size for array in weights])
    own = [flat[a:b].reshape(array.shape) for a, b, array in zip(ends, ends[1:], weights, strict=False)]
    halves = tuple(records.Network(*(np.zeros_like(array) for array in weights)) for _ in range(2))
    views, means, parts = listed(steps, SAMPLES), flat + np.float32(1.0), [[0, 3, 1], [5, 2]]
    before = flat.copy()
    over = one_pass(views, SAMPLES, parts, 1 / 5, steps.w1.shape[1])
    settings = adam(weights, True)
    wanted = means.astype(np.float64)
    for b in range(2):
        assert passes.half_of_value_pass(
            ALONE, np.zeros((2, 8), np.int64), b, b + 1, views, over, steps.ages.reshape(-1),
            steps.actions.reshape(-1), TARGETS, 2, steps.past, CHOICES, records.Network(*own), halves,
            np.zeros(sites.SITES, np.bool_), settings._replace(updates=b), 0.4, flat, means,
        )  # fmt: skip
        # The first time all of it is new, the second time half, and later it would be 0.6.
        wanted += (1.0, 0.6)[b] * (flat - wanted)
        np.testing.assert_allclose(means, wanted, rtol=1e-4, atol=1e-5)
    assert not np.array_equal(flat, before)
