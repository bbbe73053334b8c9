"""How the convolutional network acts, against plain loops on real screens."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.kernels import acting, sites
from fastpong.kernels.noise import uniform
from tests import naive
from tests.test_kernels_ppo import HELD, PLANNED, Steps, arguments_of

see_samples: Any = acting.see_samples


def test_some_points_begin_with_the_paddle_held() -> None:
    key: Any = np.uint64(5)
    before = np.array([0, 0, 3, -3, 1, -1, 9], np.int16)
    rewards, ages = np.array([1, -1, 0, 0, 0, 0, 0], np.int8), np.array([8, 8, 8, 8, 8, 8, 8])
    practising = np.zeros(7, np.int8)
    starts = []
    for step in range(400):
        held = np.full(7, 7, np.int16)
        acting.hold_starts(before, rewards, ages, practising, np.arange(6), key, 100, step, 0.6, 4, held)
        assert held[2:].tolist() == [2, -2, 0, 0, 7]
        for game in (0, 1):
            assert held[game] == naive.held_start(uniform(key, 100 + game, step), 0.6, 4)
        starts.append(held[:2])
    drawn, counts = np.unique(starts, return_counts=True)
    assert drawn.tolist() == [-4, -3, -2, -1, 0, 1, 2, 3, 4]
    assert abs(counts[4] / 800 - 0.4) < 0.06 and counts.min() > 30
    ages[3] = 0
    acting.hold_starts(before, rewards, ages, practising, np.arange(4), key, 100, 0, 0.0, 4, held)
    assert held[:4].tolist() == [0, 0, 2, 0]
    acting.hold_starts(before, rewards, ages, practising, np.arange(4), key, 100, 0, 1.0, 900, held)
    assert held[3] == naive.held_start(uniform(key, 103, 0), 1.0, 900) != 0
    practising[:] = 1
    acting.hold_starts(before, rewards, ages, practising, np.arange(4), key, 100, 0, 1.0, 900, held)
    assert held[:4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("actions", [2, 3])
def test_act(real_screens: npt.NDArray[np.uint8], actions: int, greedy: bool) -> None:
    steps = Steps(real_screens, actions)
    key: Any = np.uint64(77)
    log_probs, values = np.full((7, 2), 9, np.float32), np.full((7, 2), 9, np.float32)
    for row in range(7):
        for game in (1, 0):
            acting.act(
                steps.runs, steps.starts.reshape(-1), steps.lengths.reshape(-1), steps.ages.reshape(-1), 2 * row,
                np.array([game]), 2, *steps.weights, 2, key, 40, row, greedy,
                HELD, PLANNED, steps.actions.reshape(-1), log_probs.reshape(-1), values.reshape(-1),
            )  # fmt: skip
            outputs = steps.outputs(2 * row + game, *steps.weights)
            probs = naive.softmax(outputs[:-1])
            number = uniform(key, 40 + game, row)
            planned = int(PLANNED[2 * row + game]) - 1
            wanted = planned if planned >= 0 else int(np.argmax(probs)) if greedy else naive.draw(probs, number)
            held = int(HELD[2 * row + game])
            assert steps.actions[row, game] == (wanted if held == 0 else 0 if held > 0 else 1)
            log_prob = 0.0 if held else np.log(probs[wanted])
            assert log_probs[row, game] == pytest.approx(log_prob, rel=1e-3, abs=1e-4)
            assert values[row, game] == pytest.approx(outputs[-1], rel=1e-3, abs=1e-4)


def test_what_sites_see(real_screens: npt.NDArray[np.uint8]) -> None:
    steps, samples = Steps(real_screens), np.array([13, 0, 9, 6, 2])
    runs, starts, lengths, ages, games, *_ = arguments_of(steps, samples)
    views, acts = see_samples(runs, starts, lengths, ages, games, samples, steps.kernel, steps.bias)
    for m, sample in enumerate(samples):
        channels = naive.convolution(steps.seen(sample)[0], steps.kernel, steps.bias).reshape(sites.SITES, -1)
        silent = np.ones(sites.SITES, np.bool_)
        for site in range(sites.SITES):
            entries = slice(views.site_bounds[site], views.site_bounds[site + 1])
            for kind in views.kinds[entries][views.samples[entries] == m]:
                np.testing.assert_allclose(acts[kind], channels[site], rtol=1e-4, atol=1e-5)
                assert silent[site], "a site of a sample has one entry"
                silent[site] = False
        assert not channels[silent].any()
