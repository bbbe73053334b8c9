"""The kernels of the preset ``fast`` against plain loops, on real screens, and against finite differences."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastpong.kernels import convolution, images, ppo, sites
from fastpong.kernels import passes as kernels
from fastpong.kernels import records as their_records
from fastpong.kernels.meeting import ALONE
from tests import naive
from tests.test_kernels_network import slope

passes: Any = kernels  # arguments are unpacked from lists
records: Any = their_records
list_views: Any = sites.list_views
F32 = npt.NDArray[np.float32]
CLIP, CLIP_HIGH, ENTROPY, VALUE = 0.2, 0.4, 0.03, 0.5


@given(st.data(), st.floats(0.5, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_advantages(data: st.DataObject, gamma: float, lam: float, value_lam: float) -> None:
    size = (data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3)))
    rewards = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1, -1])))
    ended = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1])))
    values = data.draw(arrays(np.float32, (size[0] + 1, size[1]), elements=st.floats(-1, 1, width=32)))
    traces = data.draw(arrays(np.float32, size, elements=st.sampled_from([1, 1, 1, 0, 0.25])))
    advantages, targets = np.zeros(size, np.float32), np.zeros(size, np.float32)
    ppo.advantages_of(rewards, ended, values, gamma, lam, value_lam, traces, advantages, targets)
    ref_advantages = naive.advantages_of(rewards, ended, values, gamma, lam, traces)[0]
    ref_targets = naive.advantages_of(rewards, ended, values, gamma, value_lam, traces)[1]
    np.testing.assert_allclose(advantages, ref_advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(targets, ref_targets, rtol=1e-4, atol=1e-5)


class Steps:
    """Seven steps of two games on real screens (game 1 shows them backwards), and a small network.

    Game 0 starts anew at step 4, so its samples have 1, 2 or 3 frames.
    """

    def __init__(self, screens: npt.NDArray[np.uint8], actions: int = 3, past: int = 2, hidden: int = 80):
        rng = np.random.default_rng(3)
        self.games, self.past, rows = 2, past, 7
        shape = (rows, self.games)
        self.frames = 3
        self.runs = np.zeros(rows * 2 * 200, np.int32)
        self.starts, self.lengths, self.ages = (np.zeros(shape, np.int64) for _ in range(3))
        self.actions = rng.integers(0, actions, shape).astype(np.uint8)
        chosen = screens[100:107] if len(screens) > 107 else screens[:7]
        words = images.as_words(np.ascontiguousarray(chosen))
        self.images: dict[tuple[int, int], npt.NDArray[np.float64]] = {}
        at = 0
        for t in range(rows):
            for game, slot in ((0, t), (1, rows - 1 - t)):
                first = np.full(rows, t == 0 or (game == 0 and t == 4), np.int8)
                before = self.ages[t - 1] if t else np.full(2, -1)
                at = images.observe_runs(
                    words, np.array([slot]), np.array([game]), first, self.runs, at,
                    self.starts[t], self.lengths[t], before, self.ages[t],
                )  # fmt: skip
                image = np.zeros((160, 80))
                empty = np.isin(chosen[slot][34:194, ::2], images.BACKGROUND)
                image[~empty] = 1
                self.images[t, game] = image
        self.kernel = (rng.standard_normal((3, 8, 4, 64)) / 5).astype(np.float32)
        self.bias = (rng.standard_normal(16) / 5).astype(np.float32)
        self.w1 = (rng.standard_normal((convolution.INPUTS, hidden)) / 10).astype(np.float32)
        self.w2 = rng.standard_normal((actions + 1, hidden + 1)).astype(np.float32)

    def seen(self, sample: int) -> tuple[list[npt.NDArray[np.float64]], list[int]]:
        """Frames and past actions of a sample, the latest first."""
        t, game = divmod(sample, self.games)
        age = int(self.ages[t, game])
        frames = [self.images[t - f, game] for f in range(min(age + 1, self.frames))]
        return frames, [int(self.actions[t - lag, game]) for lag in range(1, min(age, self.past) + 1)]

    @property
    def weights(self) -> tuple[F32, F32, F32, F32]:
        return self.kernel, self.bias, self.w1, self.w2

    def outputs(self, sample: int, *weights: npt.ArrayLike) -> naive.F64:
        frames, past = self.seen(sample)
        return naive.convolutional_outputs(frames, past, *weights)


@pytest.fixture(scope="module")
def steps(real_screens: npt.NDArray[np.uint8]) -> Steps:
    return Steps(real_screens)


def test_runs_are_the_pixels_of_the_court(real_screens: npt.NDArray[np.uint8]) -> None:
    out, starts = np.zeros(2000, np.int32), 0
    for screen in real_screens[::10]:
        end = images.find_runs(images.as_words(np.ascontiguousarray(screen)[None])[0], out, starts)
        ref = ~np.isin(screen[34:194, ::2], images.BACKGROUND)
        runs = [(int(r) // 8 // 80, int(r) // 8 % 80, int(r) % 8 + 1) for r in out[starts:end]]
        assert sorted(runs, key=lambda run: (run[1], run[0])) == naive.runs_of(ref)


@given(st.lists(st.tuples(st.integers(0, 159), st.integers(0, 79), st.integers(1, 30)), max_size=12))
def test_runs_of_any_picture(bars: list[tuple[int, int, int]]) -> None:
    screen = np.full((210, 160), 34, np.uint8)
    for row, column, length in bars:
        screen[34 + row : min(194, 34 + row + length), 2 * column] = 92
    out = np.zeros(13_000, np.int32)
    end = images.find_runs(images.as_words(screen[None])[0], out, 0)
    runs = [(int(r) // 8 // 80, int(r) // 8 % 80, int(r) % 8 + 1) for r in out[:end]]
    assert sorted(runs, key=lambda run: (run[1], run[0])) == naive.runs_of(screen[34:194, ::2] == 92)


def test_a_full_picture_fits() -> None:
    out = np.zeros(12_800, np.int32)
    screen = np.full((210, 160), 92, np.uint8)
    assert images.find_runs(images.as_words(screen[None])[0], out, 0) == 20 * 80


def test_ages_count_from_the_first_screen(steps: Steps) -> None:
    assert steps.ages[:, 0].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert steps.ages[:, 1].tolist() == [0, 1, 2, 3, 4, 5, 6]


def arguments_of(steps: Steps, samples: npt.NDArray[np.int64]) -> tuple[Any, ...]:
    """What `list_views` takes, but for the sites."""
    where = (steps.starts.reshape(-1), steps.lengths.reshape(-1), steps.ages.reshape(-1))
    return steps.runs, *where, 2, samples, 3


def listed(steps: Steps, samples: npt.NDArray[np.int64]) -> tuple[sites.Views, sites.Views]:
    """The views of either half of the sites."""
    arguments = arguments_of(steps, samples)
    return list_views(*arguments, 0, 200), list_views(*arguments, 200, sites.SITES)


def one_pass(
    views: tuple[sites.Views, sites.Views],
    samples: npt.NDArray[np.int64],
    parts: list[list[int]],
    scale: float,
    hidden: int,
) -> Any:
    """A pass whose minibatches are these parts of the listed samples."""
    picks, ends = np.array(sum(parts, []), np.int64), np.cumsum([0] + [len(part) for part in parts])
    places = np.full(len(samples), -1, np.int64)
    for b, part in enumerate(parts):
        places[part] = b << 32 | np.arange(len(part))
    bounds = np.zeros((len(parts) + 1, sites.SITES), np.int32)
    rows, kinds = (tuple(np.full(len(half.kinds), -1, np.int32) for half in views) for _ in range(2))
    room = [np.full((max(len(part) for part in parts), hidden), 9.0, np.float32) for _ in range(3)]
    scales = np.full(len(parts), scale)
    return records.Pass(picks, ends, scales, samples[picks], places, bounds, rows, kinds, *room)


def adam(weights: Sequence[npt.NDArray[Any]], apply: bool) -> Any:
    """Adam before its third step."""
    rng = np.random.default_rng(9)
    mean = [(0.01 * rng.standard_normal(array.shape)).astype(np.float32) for array in weights]
    square = [(0.01 * rng.random(array.shape)).astype(np.float32) for array in weights]
    return records.Optimiser(records.Network(*mean), records.Network(*square), apply, 0.01, 0.9, 0.999, 1e-5, 2)


def test_hidden_units(steps: Steps) -> None:
    samples = np.array([12, 1, 8, 9, 13, 0])
    over, hidden = listed(steps, samples), np.zeros((6, steps.w1.shape[1]), np.float32)
    for views in over:
        acts = np.zeros((len(views.bounds) - 1, 16), np.float32)
        convolution.add_sites(
            views, views.site_bounds[:-1], views.site_bounds[1:], views.samples, views.kinds,
            convolution.prefix_sums(steps.kernel), steps.bias, steps.w1, np.zeros(len(acts), np.int64), 1, acts, hidden,
        )  # fmt: skip
    convolution.add_facts(
        steps.ages.reshape(-1), steps.actions.reshape(-1), 2, samples, steps.past, 3, steps.w1, hidden
    )
    for m, sample in enumerate(samples.tolist()):
        frames, past = steps.seen(sample)
        ref = naive.hidden_units(frames, past, 3, steps.kernel, steps.bias, steps.w1)
        np.testing.assert_allclose(hidden[m], ref, rtol=1e-4, atol=1e-4)


class Minibatch:
    """Eight samples, half of them beyond the clip on either side, and what the kernel makes of them."""

    def __init__(self, steps: Steps):
        rng = np.random.default_rng(4)
        self.steps = steps
        self.samples = np.array([12, 5, 1, 8, 9, 0, 13, 10])
        self.log_probs, self.advantages = np.zeros(14, np.float32), np.zeros(14, np.float32)
        self.targets = rng.standard_normal(14).astype(np.float32)
        self.importance = rng.uniform(0.5, 2.0, 14).astype(np.float32)
        self.shifts = [0, 0.05, -0.05, 0.5, -0.5, 0.5, -0.5, 0.1]
        self.planned = np.zeros(14, np.int8)
        self.planned[self.samples[3]] = 1
        taken = steps.actions.reshape(-1)
        for sample, shift, advantage in zip(
            self.samples.tolist(), self.shifts, (1, -1, 1, 1, 1, -1, -1, 0), strict=True
        ):
            outputs = steps.outputs(sample, *steps.weights)
            probs = naive.softmax(outputs[:-1])
            self.log_probs[sample] = np.log(probs[taken[sample]]) + shift
            self.advantages[sample] = advantage
        self.gradients, self.touched, self.statistics = self.gradient(list(range(8)))

    def learn(
        self, parts: list[list[int]], apply: bool, weights: tuple[F32, ...]
    ) -> tuple[Any, npt.NDArray[np.bool_], naive.F64, Any]:
        """Go over minibatches of the samples."""
        steps, views = self.steps, listed(self.steps, self.samples)
        gradients = tuple(records.Network(*(np.zeros_like(array) for array in weights)) for _ in range(2))
        touched, statistics = np.zeros(sites.SITES, np.bool_), np.zeros((2, 4))
        optimiser = adam(weights, apply)
        known = (self.log_probs, self.advantages, self.targets, self.importance, self.planned)
        assert passes.half_of_pass(
            ALONE, np.zeros((2, 8), np.int64), 0, len(parts), views,
            one_pass(views, self.samples, parts, 1 / 8, steps.w1.shape[1]),
            ppo.Steps(steps.ages.reshape(-1), steps.actions.reshape(-1), *known), 2, steps.past,
            ppo.Objective(CLIP, CLIP_HIGH, ENTROPY, VALUE), records.Network(*weights), gradients, touched, statistics,
            optimiser,
        )  # fmt: skip
        return gradients, touched, statistics.sum(0), optimiser

    def gradient(self, part: list[int]) -> tuple[list[F32], npt.NDArray[np.bool_], naive.F64]:
        (first, second), touched, statistics, _ = self.learn([part], False, self.steps.weights)
        assert not second.w1[: convolution.FACTS].any()  # the rows of sites are all in the first
        return [one + two for one, two in zip(first, second, strict=True)], touched, statistics


@pytest.fixture(scope="module")
def batch(steps: Steps) -> Minibatch:
    return Minibatch(steps)


def test_clipped_gradient_against_finite_differences(batch: Minibatch) -> None:
    steps = batch.steps
    weights = [array.astype(np.float64) for array in steps.weights]
    taken = steps.actions.reshape(-1)

    def objective() -> float:
        return sum(
            float(batch.importance[s])
            * naive.clipped_objective(
                steps.outputs(s, *weights), int(taken[s]), float(batch.log_probs[s]),
                float(batch.advantages[s]), float(batch.targets[s]), CLIP, CLIP_HIGH, ENTROPY, VALUE,
            )
            for s in batch.samples.tolist()
        ) / 8  # fmt: skip

    rng = np.random.default_rng(5)
    for array, gradient, number in zip(weights, batch.gradients, (6, 4, 6, 6), strict=True):
        seen = np.argwhere(np.abs(gradient) > 1e-3)
        assert len(seen) >= number
        for at in rng.permutation(seen)[:number]:
            index = tuple(at.tolist())
            assert gradient[index] == pytest.approx(slope(objective, array, index), rel=5e-3, abs=2e-4)
    facts = batch.gradients[2][sites.SITES * 16 :]
    assert facts[0].any() and facts[1:7].any() and not facts[7:].any()


def test_touched_sites_and_statistics(batch: Minibatch) -> None:
    steps = batch.steps
    reached = np.zeros(sites.SITES, np.bool_)
    for sample in batch.samples.tolist():
        every = np.ones((3, 8, 4, 64))
        reached |= naive.convolution(steps.seen(sample)[0], every, 0.0).sum(-1).reshape(-1) > 0
    np.testing.assert_array_equal(batch.touched, reached)
    rows = np.flatnonzero(np.abs(batch.gradients[2][: convolution.FACTS]).sum(1))
    assert reached[rows // 16].all()
    outputs = [steps.outputs(s, *steps.weights) for s in batch.samples.tolist()]
    probs = [naive.softmax(output[:-1]) for output in outputs]
    weights = batch.importance[batch.samples].astype(np.float64)
    entropies = np.array([-float((p * np.log(p)).sum()) for p in probs])
    assert batch.statistics[0] == pytest.approx(weights @ entropies, rel=1e-4)
    ratios = np.exp(-np.array(batch.shifts))
    free = batch.planned[batch.samples] == 0
    assert batch.statistics[1] == pytest.approx((weights * free) @ (ratios - 1 - np.log(ratios)), rel=1e-3)
    # Up with a ratio of 1.6, and down with one of 0.6.
    assert batch.statistics[2] == pytest.approx(weights[[4, 5]].sum(), rel=1e-6)
    errors = [float(batch.targets[s]) - output[-1] for s, output in zip(batch.samples, outputs, strict=True)]
    assert batch.statistics[3] == pytest.approx(weights @ np.square(errors), rel=1e-3)


def test_minibatches_add_up(batch: Minibatch) -> None:
    one, touched, statistics = batch.gradient([0, 1, 2])
    two, also_touched, more = batch.gradient([7, 3, 4, 6, 5])
    for k in range(4):
        np.testing.assert_allclose(one[k] + two[k], batch.gradients[k], rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(touched | also_touched, batch.touched)
    np.testing.assert_allclose(statistics + more, batch.statistics, rtol=1e-4)
    nothing, touched, statistics = batch.gradient([])
    assert not any(array.any() for array in nothing) and not touched.any() and not statistics.any()


def test_weights_change_by_the_gradient_of_each_minibatch(batch: Minibatch) -> None:
    """At once, as with a gradient of all weights and then Adam; where there is none, `w1` and its means stay."""
    parts = [[0, 1, 2], [7, 3, 4, 6, 5]]
    weights = tuple(array.copy() for array in batch.steps.weights)
    gradients, _, _, after = batch.learn(parts, True, weights)
    assert not any(array.any() for half in gradients for array in half)
    wanted = [array.astype(np.float64) for array in batch.steps.weights]
    means = adam(wanted, True)
    mean, square = ([array.astype(np.float64) for array in kind] for kind in (means.mean, means.square))
    for b, part in enumerate(parts):
        now = tuple(array.astype(np.float32) for array in wanted)
        (first, second), touched, _, _ = batch.learn([part], False, now)
        for k in range(4):
            where = np.repeat(np.r_[touched, True], 16) if k == 2 else ...
            new = naive.adam_of(
                wanted[k][where], (first[k] + second[k])[where], mean[k][where], square[k][where], 0.01, 0.9, 0.999,
                1e-5, 3 + b,
            )  # fmt: skip
            wanted[k][where], mean[k][where], square[k][where] = new
    for k in range(4):
        np.testing.assert_allclose(weights[k], wanted[k], rtol=1e-3, atol=2e-4)
        np.testing.assert_allclose(after.mean[k], mean[k], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(after.square[k], square[k], rtol=1e-3, atol=1e-6)
    untouched = np.repeat(~batch.touched, 16)
    np.testing.assert_array_equal(weights[2][:-16][untouched], batch.steps.w1[:-16][untouched])
