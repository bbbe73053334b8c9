"""How the convolutional network acts, against plain loops on real screens."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.kernels import acting
from fastpong.kernels.patches import POSITIONS
from fastpong.kernels.structs import ExploringStarts, Noise
from tests import naive
from tests.support.kernels import SmallRollout


def test_some_points_begin_with_the_paddle_held() -> None:
    key: Any = np.uint64(5)

    def forced(before: int, begins: bool, probability: float, most: int, env: int = 100, step: int = 0) -> int:
        return int(acting.forced_steps(before, begins, ExploringStarts(key, probability, most), env, step))

    cases = [(before, env, step) for before, env in ((0, 100), (3, 101)) for step in range(400)]
    starts = [forced(before, True, 0.6, 4, env, step) for before, env, step in cases]
    assert starts == [naive.forced_steps(0, True, naive.uniform(5, env, step), 0.6, 4) for _, env, step in cases]
    drawn, counts = np.unique(starts, return_counts=True)
    assert drawn.tolist() == [-4, -3, -2, -1, 0, 1, 2, 3, 4]
    assert abs(counts[4] / 800 - 0.4) < 0.06 and counts.min() > 30
    assert [forced(before, False, 1.0, 9) for before in (3, -3, 1, -1, 0)] == [2, -2, 0, 0, 0]
    assert [naive.forced_steps(before, False, 0.1, 1.0, 9) for before in (3, -3, 1, -1, 0)] == [2, -2, 0, 0, 0]
    assert [forced(0, True, 0.0, 4, env) for env in range(99)] == [0] * 99
    assert forced(0, True, 1.0, 900, 103) == naive.forced_steps(0, True, naive.uniform(5, 103, 0), 1.0, 900) != 0


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("actions", [2, 3])
def test_act(real_screens: npt.NDArray[np.uint8], actions: int, greedy: bool) -> None:
    rollout = SmallRollout(real_screens, actions)
    key: Any = np.uint64(77)
    start_key: Any = np.uint64(78)
    inputs, arrays = rollout.inputs, rollout.inputs.arrays
    arrays.rewards[:] = np.random.default_rng(1).choice([0, 0, 1, -1], 14)
    arrays.forced[:], arrays.log_probs[:], arrays.values[:] = 9, 9, 9
    starts, left = ExploringStarts(start_key, 0.7, 3), [0, 0]
    for row in range(7):
        for env in (1, 0):
            sample = 2 * row + env
            probs, _, value = rollout.outputs(sample)
            chosen = acting.act(
                inputs, 2 * row, np.array([env]), rollout.network, starts, Noise(key, 40, row, greedy)
            )  # fmt: skip
            wanted = int(np.argmax(probs)) if greedy else naive.choose(probs, naive.uniform(77, 40 + env, row))
            begins = bool(arrays.steps_since_reset[sample] == 0 or arrays.rewards[sample - 2])
            left[env] = naive.forced_steps(left[env], begins, naive.uniform(78, 40 + env, row), 0.7, 3)
            assert arrays.forced[sample] == left[env]
            if left[env]:
                wanted = 0 if left[env] > 0 else 1
            assert chosen.tolist() == [arrays.actions[sample]] == [wanted]
            log_prob = 0.0 if left[env] else np.log(probs[wanted])
            assert arrays.log_probs[sample] == pytest.approx(log_prob, rel=1e-3, abs=1e-4)
            assert arrays.values[sample] == pytest.approx(value, rel=1e-3, abs=1e-4)
    assert (arrays.forced > 0).any() and (arrays.forced < 0).any() and (arrays.forced == 0).any()


def test_act_for_several_envs_is_act_for_each(real_screens: npt.NDArray[np.uint8]) -> None:
    key: Any = np.uint64(77)
    columns: list[list[Any]] = []
    for groups in [[1, 0]], [[0], [1]], [[0, 1]]:
        rollout = SmallRollout(real_screens)
        arrays = rollout.inputs.arrays
        for row in range(7):
            for members in groups:
                acting.act(
                    rollout.inputs, 2 * row, np.array(members), rollout.network, ExploringStarts(key, 0.5, 3),
                    Noise(key, 0, row, False),
                )  # fmt: skip
        columns.append([arrays.actions, arrays.forced, arrays.log_probs, arrays.values])
    for others in columns[1:]:
        for array, other in zip(columns[0], others, strict=True):
            np.testing.assert_allclose(array, other, rtol=1e-4, atol=1e-5)


def test_patches_of_few_samples(real_screens: npt.NDArray[np.uint8]) -> None:
    rollout, samples = SmallRollout(real_screens), np.array([13, 0, 9, 6, 2])
    patches, found = acting.patches_of_few(rollout.inputs, samples, rollout.network)
    for m, sample in enumerate(samples.tolist()):
        images = rollout.sample(sample).images
        channels = naive.convolution(images, rollout.network.kernel, rollout.network.bias).reshape(POSITIONS, -1)
        silent = np.ones(POSITIONS, np.bool_)
        for position in range(POSITIONS):
            pairs = slice(patches.offsets[position], patches.offsets[position + 1])
            for p in patches.patch_ids[pairs][patches.sample_ids[pairs] == m]:
                np.testing.assert_allclose(found[p], channels[position], rtol=1e-4, atol=1e-5)
                assert silent[position], "a position of a sample has one pair"
                silent[position] = False
        assert not channels[silent].any()
