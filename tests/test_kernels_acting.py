"""How the convolutional network acts, against plain loops on real screens."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.kernels import acting, sites
from fastpong.kernels.noise import uniform
from fastpong.kernels.records import Network, Rows
from tests import naive
from tests.test_kernels_ppo import Steps, arguments_of

act: Any = acting.act
see_samples: Any = acting.see_samples


def test_some_points_begin_with_the_paddle_held() -> None:
    key: Any = np.uint64(5)

    def held(before: int, begins: bool, practising: bool = False, game: int = 100, step: int = 0, **how: Any) -> int:
        return int(acting.hold_start(before, begins, practising, key, game, step, how["share"], how["longest"]))

    cases = [(before, game, step) for before, game in ((0, 100), (3, 101)) for step in range(400)]
    starts = [held(before, True, game=game, step=step, share=0.6, longest=4) for before, game, step in cases]
    assert starts == [naive.held_start(uniform(key, game, step), 0.6, 4) for _, game, step in cases]
    drawn, counts = np.unique(starts, return_counts=True)
    assert drawn.tolist() == [-4, -3, -2, -1, 0, 1, 2, 3, 4]
    assert abs(counts[4] / 800 - 0.4) < 0.06 and counts.min() > 30
    assert [held(before, False, share=1.0, longest=9) for before in (3, -3, 1, -1, 0)] == [2, -2, 0, 0, 0]
    assert [held(0, True, game=game, share=0.0, longest=4) for game in range(99)] == [0] * 99
    assert held(0, True, game=103, share=1.0, longest=900) == naive.held_start(uniform(key, 103, 0), 1.0, 900) != 0
    assert [held(before, True, practising=True, share=1.0, longest=9) for before in (3, -3, 0)] == [0, 0, 0]


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("actions", [2, 3])
def test_act(real_screens: npt.NDArray[np.uint8], actions: int, greedy: bool) -> None:
    steps = Steps(real_screens, actions)
    key: Any = np.uint64(77)
    start_key: Any = np.uint64(78)
    rng = np.random.default_rng(1)
    rewards = rng.choice([0, 0, 1, -1], (7, 2)).astype(np.int8)
    practising, planned = (rng.choice([0, 0, 0, 1], (7, 2)).astype(np.int8) for _ in range(2))
    held = np.full((7, 2), 9, np.int16)
    log_probs, values = np.full((7, 2), 9, np.float32), np.full((7, 2), 9, np.float32)
    arrays: Any = (
        steps.starts, steps.lengths, steps.ages, practising, planned, held, steps.actions, log_probs, values, rewards
    )  # fmt: skip
    rows = Rows(*(array.reshape(-1) for array in arrays))
    network = Network(*steps.weights)
    left = [0, 0]
    for row in range(7):
        for game in (1, 0):
            chosen = act(
                steps.runs, rows, 2 * row, np.array([game]), 2, network, 2, start_key, 0.7, 3, key, 40, row, greedy
            )
            outputs = steps.outputs(2 * row + game, *steps.weights)
            probs = naive.softmax(outputs[:-1])
            number = uniform(key, 40 + game, row)
            free = int(np.argmax(probs)) if greedy else naive.draw(probs, number)
            wanted = planned[row, game] - 1 if planned[row, game] else free
            if steps.ages[row, game] == 0 or rewards[row - 1, game]:
                left[game] = naive.held_start(uniform(start_key, 40 + game, row), 0.7, 3)
            else:
                left[game] -= int(np.sign(left[game]))
            left[game] *= not practising[row, game]
            assert held[row, game] == left[game]
            if left[game]:
                wanted = 0 if left[game] > 0 else 1
            assert chosen.tolist() == [steps.actions[row, game]] == [wanted]
            log_prob = 0.0 if left[game] else np.log(probs[wanted])
            assert log_probs[row, game] == pytest.approx(log_prob, rel=1e-3, abs=1e-4)
            assert values[row, game] == pytest.approx(outputs[-1], rel=1e-3, abs=1e-4)
    assert (held > 0).any() and (held < 0).any() and (held == 0).any() and (practising & (held == 0)).any()


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
