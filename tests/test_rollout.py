from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.config import make_config
from fastpong.kernels.images import as_words, dense
from fastpong.rollout import Rollout
from tests import naive


def fill(rollout: Rollout, screens: npt.NDArray[np.uint8], rewards: Any, ended: Any) -> None:
    """Rows of two games; game 1 shows the screens backwards."""
    words = as_words(screens)
    for t in range(len(rewards)):
        row = rollout.new_row()
        first = np.zeros(len(screens), np.int8)
        first[:] = t == 0 or ended[t - 1, 0]
        for game, slot in ((1, len(screens) - 1 - t), (0, t)):  # the order of groups is not the order of games
            rollout.observe(row, words, np.array([slot]), np.array([game]), first)
        rollout.rewards[row], rollout.ended[row] = rewards[t], ended[t]
        rollout.actions[row] = t % 2


def images_of(rollout: Rollout, row: int) -> list[npt.NDArray[Any]]:
    starts, lengths = rollout.starts[row], rollout.lengths[row]
    return [dense(rollout.items[s : s + n]) for s, n in zip(starts, lengths, strict=True)]


@pytest.fixture
def course() -> tuple[Any, Any]:
    rewards, ended = np.zeros((290, 2), np.int8), np.zeros((290, 2), np.int8)
    rewards[[20, 60, 150, 288], 0] = [1, -1, -1, 1]
    rewards[[90, 270], 1] = -1
    ended[150, 0] = ended[90, 1] = 1
    return rewards, ended


@pytest.mark.parametrize("carry", ["point", "game"])
def test_batches_cover_what_is_finished_once(carry: str, course: Any, real_screens: npt.NDArray[np.uint8]) -> None:
    rewards, ended = course
    rollout = Rollout(make_config("karpathy", {"envs": 2, "carry": carry, "standardise": "batch"}))
    fill(rollout, real_screens, rewards, ended)
    ref = naive.finished_samples(rewards, ended, [0, 0], 200, 0.99, carry)
    batch = rollout.cut_batch(200)
    assert batch.samples.tolist() == [t * 2 + n for t, n, _, _ in ref]
    expected = naive.standardise([item[2] for item in ref], [0] * len(ref))
    np.testing.assert_allclose(batch.advantages, expected, rtol=1e-3, atol=1e-4)
    again = naive.finished_samples(rewards, ended, rollout.begins.tolist(), 290, 0.99, carry)
    assert [t * 2 + n for t, n, _, _ in again] == rollout.cut_batch(290).samples.tolist()
    assert {(t, n) for t, n, _, _ in ref}.isdisjoint({(t, n) for t, n, _, _ in again})


def test_what_carries_over_keeps_its_images(course: Any, real_screens: npt.NDArray[np.uint8]) -> None:
    rewards, ended = course
    rollout = Rollout(make_config("karpathy", {"envs": 2}))
    fill(rollout, real_screens, rewards, ended)
    before = {row: images_of(rollout, row) for row in (100, 200, 289)}
    actions = rollout.actions[:290].copy()
    rollout.cut_batch(200)
    rollout.drop_used()
    used = 91  # game 1 has finished a point at row 90, and no later one within 200 rows
    assert rollout.rows == 290 - used
    assert rollout.begins.tolist() == [151 - used, 0]
    np.testing.assert_array_equal(rollout.actions[: rollout.rows], actions[used:])
    for row, images in before.items():
        np.testing.assert_array_equal(images_of(rollout, row - used), images)


def test_state_is_complete(course: Any, real_screens: npt.NDArray[np.uint8]) -> None:
    rewards, ended = course
    one, two = Rollout(make_config("karpathy", {"envs": 2})), Rollout(make_config("karpathy", {"envs": 2}))
    fill(one, real_screens, rewards, ended)
    one.cut_batch(200)
    one.drop_used()
    begins = one.begins.copy()
    two.load_state({name: array.copy() for name, array in one.state().items()})
    for rollout in (one, two):
        fill(rollout, real_screens, rewards, ended)
    a, b = one.cut_batch(one.rows), two.cut_batch(two.rows)
    np.testing.assert_array_equal(a.samples, b.samples)
    np.testing.assert_array_equal(a.advantages, b.advantages)
    for row in range(one.rows):
        due = begins <= row  # nothing is kept of what a game is done with
        np.testing.assert_array_equal(np.array(images_of(one, row))[due], np.array(images_of(two, row))[due])


def test_runs_keep_the_history_that_later_steps_look_at(real_screens: npt.NDArray[np.uint8]) -> None:
    rollout = Rollout(make_config("fast", {"envs": 2, "frames": 4, "past_actions": 2}))
    nothing = np.zeros((20, 2), np.int8)
    ended = nothing.copy()
    ended[7] = 1
    fill(rollout, real_screens, nothing, ended)
    assert rollout.ages[:20, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, *range(12)]
    runs = [rollout.items[s : s + n].tolist() for s, n in zip(rollout.starts[16], rollout.lengths[16], strict=True)]
    rollout.begins[:] = 19
    rollout.drop_used()
    assert rollout.rows == 4 and rollout.begins.tolist() == [3, 3]  # rows 16 … 19
    kept = [rollout.items[s : s + n].tolist() for s, n in zip(rollout.starts[0], rollout.lengths[0], strict=True)]
    assert kept == runs
    assert rollout.ages[:4, 1].tolist() == [8, 9, 10, 11]
