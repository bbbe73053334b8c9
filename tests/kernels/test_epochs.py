"""Epochs of minibatches against plain loops on real screens and finite differences."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.arrays import F64, I64, Bool
from fastpong.kernels.compile.barrier import PEER_FAILED
from fastpong.kernels.conv import SIDE
from fastpong.kernels.epochs import learn_minibatches
from fastpong.kernels.patches import POSITIONS
from fastpong.kernels.structs import Adam, Epoch, Loss, Network, Transitions
from tests import naive
from tests.support.kernels import SmallRollout, adam_state, epoch_of, flattened, rests_of, zeros_like

SAMPLES = np.array([12, 5, 1, 8, 9, 0, 13, 10])
"""What is listed."""
SHIFTS = np.array([0, 0.05, -0.26, 0.5, -0.5, 0.5, -0.5, 0.1])
"""Of the logarithm of the probability when each action was taken: half of them are beyond the clip on either side."""
CLIPPED = 2  # up with a ratio of 1.6, and down with one of 0.6
PPO = naive.Coefficients(0.2, 0.4, 0.03, 0.5)


class Learning:
    """The samples, what is learned from them, and what the kernel makes of it."""

    def __init__(self, screens: npt.NDArray[np.uint8]):
        self.rollout = SmallRollout(screens)
        self.network = self.rollout.network
        self.scale = 1 / len(SAMPLES)
        targets = np.random.default_rng(4).standard_normal(8).astype(np.float32)
        self.samples = [self.rollout.sample(s) for s in SAMPLES.tolist()]
        self.results = [self.rollout.outputs(s) for s in SAMPLES.tolist()]
        taken = self.rollout.inputs.arrays.actions[SAMPLES]
        log_probs = np.array([logs[a] for (_, logs, _), a in zip(self.results, taken, strict=True)]) + SHIFTS
        advantages = np.array([1, -1, 1, 1, 1, -1, -1, 0], np.float32)
        self.transitions = Transitions(taken, log_probs.astype(np.float32), advantages, targets)
        self.learned = [
            naive.Transition(int(a), float(p), float(advantage), float(target))
            for a, p, advantage, target in zip(*self.transitions, strict=True)
        ]
        self.gradient, self.touched, self.statistics = self.gradient_of(list(range(8)))

    def epoch(self, minibatches: list[list[int]], threads: int = 1) -> Epoch:
        return epoch_of(
            self.rollout.inputs, SAMPLES, self.transitions, minibatches, Loss(*PPO, self.scale),
            self.network.w1.shape[1], threads,
        )  # fmt: skip

    def gradient_of(self, part: list[int], network: Network | None = None) -> tuple[Network, Bool, F64]:
        """Gradient of a minibatch of the listed samples, which positions it touches, and statistics."""
        network, epoch = network or self.network, self.epoch([part])
        gradient, rests, state = zeros_like(network), rests_of(network), adam_state(network, False)
        assert learn_minibatches(0, np.zeros((1, 8), np.int64), 0, 1, epoch, network, gradient, rests, state)
        assert not rests.any() and not epoch.statistics[:, 4:].any()
        return gradient, state.touched, epoch.statistics.sum(0)[:4]

    def objective(self, network: list[F64]) -> float:
        num_actions = self.rollout.inputs.num_actions
        return self.scale * naive.minibatch_objective(self.samples, self.learned, num_actions, PPO, *network)


@pytest.fixture(scope="module")
def learning(real_screens: npt.NDArray[np.uint8]) -> Learning:
    return Learning(real_screens)


def test_gradient_against_finite_differences(learning: Learning) -> None:
    network = [array.astype(np.float64) for array in learning.network]
    rng = np.random.default_rng(5)
    for array, gradient, number in zip(network, learning.gradient, (6, 4, 6, 6), strict=True):
        seen = np.argwhere(np.abs(gradient) > 1e-3)
        assert len(seen) >= number
        for at in rng.permutation(seen)[:number]:
            index = tuple(at.tolist())
            wanted = naive.slope(lambda: learning.objective(network), array, index)
            assert gradient[index] == pytest.approx(wanted, rel=5e-3, abs=2e-4)
    side = learning.gradient.w1[SIDE:]
    assert side[0].any() and side[1:7].any() and not side[7:].any()


def test_gradient_of_all_weights(learning: Learning) -> None:
    num_actions = learning.rollout.inputs.num_actions
    ref = naive.minibatch_gradient(learning.samples, learning.learned, num_actions, PPO, *learning.network)
    for gradient, wanted in zip(learning.gradient, ref, strict=True):
        np.testing.assert_allclose(gradient, learning.scale * wanted, rtol=2e-3, atol=2e-5)


def test_touched_positions(learning: Learning) -> None:
    reached = np.zeros(POSITIONS, np.bool_)
    for sample in learning.samples:
        reached |= [bool(naive.patch_at(sample.images, q)) for q in range(POSITIONS)]
    np.testing.assert_array_equal(learning.touched, reached)
    rows = np.flatnonzero(np.abs(learning.gradient.w1[:SIDE]).sum(1))
    assert len(rows) and reached[rows // 16].all()


def test_statistics(learning: Learning) -> None:
    entropy, divergence, clipped, error = learning.statistics
    assert entropy == pytest.approx(sum(naive.entropy(probs) for probs, _, _ in learning.results), rel=1e-4)
    ratios = np.exp(-SHIFTS)
    assert divergence == pytest.approx((ratios - 1 - np.log(ratios)).sum(), rel=1e-3)
    assert clipped == CLIPPED
    errors = [one.value_target - result[2] for one, result in zip(learning.learned, learning.results, strict=True)]
    assert error == pytest.approx(np.square(errors).sum(), rel=1e-3)


def test_minibatches_add_up(learning: Learning) -> None:
    one, touched, statistics = learning.gradient_of([0, 1, 2])
    two, also_touched, more = learning.gradient_of([7, 3, 4, 6, 5])
    for k in range(4):
        np.testing.assert_allclose(one[k] + two[k], learning.gradient[k], rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(touched | also_touched, learning.touched)
    np.testing.assert_allclose(statistics + more, learning.statistics, rtol=1e-4)
    nothing, touched, statistics = learning.gradient_of([])
    assert not any(array.any() for array in nothing) and not touched.any() and not statistics.any()


MINIBATCHES = [[0, 1, 2], [7, 3, 4, 6, 5]]


def test_weights_change_by_the_gradient_of_each_minibatch(learning: Learning) -> None:
    """At once, as with a gradient of all weights and then Adam; where there is none, `w1` and its averages stay."""
    network, minibatches = Network(*(array.copy() for array in learning.network)), MINIBATCHES
    gradient, rests, after = zeros_like(network), rests_of(network), adam_state(network, True)
    wanted, exp_avg, exp_avg_sq = (
        [array.astype(np.float64) for array in arrays] for arrays in (network, after.exp_avg, after.exp_avg_sq)
    )
    progress, epoch = np.zeros((1, 8), np.int64), learning.epoch(minibatches)
    assert learn_minibatches(0, progress, 0, 2, epoch, network, gradient, rests, after)
    assert not any(array.any() for array in (*gradient, rests))
    for b, minibatch in enumerate(minibatches):
        now = Network(*(array.astype(np.float32) for array in wanted))
        there, touched, _ = learning.gradient_of(minibatch, now)
        for k in range(4):
            where = np.repeat(np.r_[touched, True], 16) if k == 2 else ...
            new = naive.adam_of(
                wanted[k][where], there[k][where], exp_avg[k][where], exp_avg_sq[k][where], 0.01, 0.9, 0.999,
                1e-5, 3 + b,
            )  # fmt: skip
            wanted[k][where], exp_avg[k][where], exp_avg_sq[k][where] = new
    for k in range(4):
        np.testing.assert_allclose(network[k], wanted[k], rtol=1e-3, atol=2e-4)
        np.testing.assert_allclose(after.exp_avg[k], exp_avg[k], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(after.exp_avg_sq[k], exp_avg_sq[k], rtol=1e-3, atol=1e-6)
    untouched = np.repeat(~learning.touched, 16)
    np.testing.assert_array_equal(network.w1[:-16][untouched], learning.network.w1[:-16][untouched])
    assert not np.array_equal(network.w1, learning.network.w1)


def run_threads(thread_count: int, learning: Learning, minibatches: list[list[int]], apply: bool) -> list[Any]:
    """All that an epoch changes, with so many threads."""
    flat, network = flattened(learning.network)
    epoch = learning.epoch(minibatches, thread_count)
    gradient, rests, state = zeros_like(network), rests_of(network), adam_state(network, apply)
    progress, count = np.zeros((thread_count, 8), np.int64), len(minibatches)

    def work(thread: int) -> bool:
        return learn_minibatches(thread, progress, 0, count, epoch, network, gradient, rests, state)

    with ThreadPoolExecutor(thread_count) as pool:
        assert all(pool.map(work, range(thread_count)))
    return [flat, *gradient, *state.exp_avg, *state.exp_avg_sq, state.touched]


@pytest.mark.parametrize("apply", [True, False])
@pytest.mark.parametrize("threads", [2, 3, 5, 8])
def test_any_number_of_threads_do_what_one_does(learning: Learning, threads: int, apply: bool) -> None:
    one, more = (run_threads(count, learning, MINIBATCHES, apply) for count in (1, threads))
    for array, other in zip(one, more, strict=True):
        np.testing.assert_array_equal(array, other)
    assert np.array_equal(one[0], flattened(learning.network)[0]) != apply


@pytest.mark.parametrize("thread", [0, 1])
def test_a_thread_ends_if_the_other_has_failed(learning: Learning, thread: int) -> None:
    network, epoch = learning.network, learning.epoch([[0, 1, 2]], 2)
    progress: I64 = np.zeros((2, 8), np.int64)
    progress[1 - thread, 0] = PEER_FAILED
    state: Adam = adam_state(network, False)
    gradient, rests = zeros_like(network), rests_of(network)
    assert not learn_minibatches(thread, progress, 0, 1, epoch, network, gradient, rests, state)
