from typing import Any

import numpy as np
import pytest

from fastpong.arrays import F64, U8
from fastpong.config import make_config
from fastpong.parallel.comm import env_range
from fastpong.parallel.sharding import cut
from fastpong.policy import make_policy
from fastpong.pong import BACKGROUND
from fastpong.rollout.buffer import LAYOUT, Rollout, join_states
from fastpong.rollout.finished import finished_batch
from tests import naive
from tests.support.rollouts import course_of_points, fill, images_of

CONFIGS = {
    "karpathy": make_config("karpathy", {"num_envs": 2}),
    "fast": make_config("fast", {"num_envs": 2, "frame_stack": 4, "action_history": 2}),
}


def new(preset: str) -> Rollout:
    return make_policy(CONFIGS[preset]).make_rollout(2)


def picture(screen: U8) -> F64:
    """The reference programs' image of a screen of palette indices."""
    return naive.preprocess(np.where(np.isin(screen, BACKGROUND), 144, 255).astype(np.uint8))


def release_finished(rollout: Rollout, rows: int) -> Any:
    batch = finished_batch(rollout, rows, "point", 0.99)
    rollout.release(batch.ends)
    return batch


def test_rows_hold_what_the_envs_showed(real_screens: U8) -> None:
    """Outcomes stand in the row of the step that brought them; the first image of a game has no difference."""
    rollout, course = new("karpathy"), course_of_points()
    fill(rollout, real_screens, course)
    np.testing.assert_array_equal(rollout.arrays.rewards[:290], course[0])
    np.testing.assert_array_equal(rollout.arrays.ended[:290], course[1])
    pixels = [naive.find_pixels(picture(screen)) for screen in real_screens]
    for row in range(0, 290, 29):
        forward, backward = [], []
        if row:
            forward = naive.difference(pixels[row - 1], pixels[row])
            backward = naive.difference(pixels[300 - row], pixels[299 - row])
        assert images_of(rollout, row) == [forward, backward]
    ages = [rollout.arrays.steps_since_reset[:290, env].tolist() for env in range(2)]
    assert ages == [[*range(151), *range(139)], [*range(91), *range(199)]]


@pytest.mark.parametrize("preset", CONFIGS)
def test_what_carries_over_keeps_its_images(preset: str, real_screens: U8) -> None:
    rollout = new(preset)
    fill(rollout, real_screens, course_of_points())
    before = {row: images_of(rollout, row) for row in (100, 200, 289)}
    actions = rollout.arrays.actions[:290].copy()
    release_finished(rollout, 200)
    used = 91 - rollout.history  # env 1 has finished a point at row 90, and no later one within 200 rows
    assert rollout.rows == 290 - used
    assert rollout.first_unused.tolist() == [151 - used, 91 - used]
    np.testing.assert_array_equal(rollout.arrays.actions[: rollout.rows], actions[used:])
    for row, images in before.items():
        assert images_of(rollout, row - used) == images


@pytest.mark.parametrize("preset", CONFIGS)
def test_state_is_complete(preset: str, real_screens: U8) -> None:
    one, two = new(preset), new(preset)
    fill(one, real_screens, course_of_points())
    release_finished(one, 200)
    two.load_state({name: array.copy() for name, array in one.state().items()})
    due = np.arange(one.rows)[:, None] >= one.first_unused - one.history  # nothing is kept of what an env is done with
    for rollout in (one, two):
        fill(rollout, real_screens, course_of_points())
    assert one.rows == two.rows
    for row in range(one.rows):
        for env in range(2):
            if row >= len(due) or due[row, env]:
                assert images_of(one, row)[env] == images_of(two, row)[env]
    a, b = release_finished(one, one.rows), release_finished(two, two.rows)
    np.testing.assert_array_equal(a.samples, b.samples)
    np.testing.assert_array_equal(a.advantages, b.advantages)
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, two.state()[name], err_msg=name)


def test_strips_keep_the_history_that_later_steps_look_at(real_screens: U8) -> None:
    rollout, ended = new("fast"), np.zeros((20, 2), np.int8)
    ended[7] = 1
    fill(rollout, real_screens, (np.zeros_like(ended), ended))
    assert rollout.history == 3
    assert rollout.arrays.steps_since_reset[:20, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, *range(12)]
    strips = images_of(rollout, 16)
    rollout.release(19)
    assert rollout.rows == 4 and rollout.first_unused.tolist() == [3, 3]  # rows 16 … 19
    assert images_of(rollout, 0) == strips and strips[0]
    assert rollout.arrays.steps_since_reset[:4, 1].tolist() == [8, 9, 10, 11]


def test_a_buffer_grows_and_keeps_what_it_holds(real_screens: U8) -> None:
    """Beyond its first rows, and with full screens beyond its first room for images."""
    rollout, nothing = new("fast"), np.zeros((450, 2), np.int8)
    rows, room = len(rollout.arrays.lengths), len(rollout.inputs.images)
    full = np.full((350, 210, 160), 92, np.uint8)
    fill(rollout, np.concatenate([real_screens[:50], full, real_screens[:50]]), (nothing, nothing))
    assert len(rollout.arrays.lengths) > rows and len(rollout.inputs.images) > room
    few = new("fast")
    fill(few, real_screens[:50], (nothing[:50], nothing[:50]))
    for row in range(50):
        forward, backward = images_of(few, row)
        assert images_of(rollout, row) == [forward, backward]
        assert images_of(rollout, 400 + row) == [forward, backward]
    assert {len(image) for row in range(50, 400) for image in images_of(rollout, row)} == {20 * 80}


@pytest.mark.parametrize("preset", CONFIGS)
def test_shares_of_a_state_join_to_the_whole(preset: str, real_screens: U8) -> None:
    """Also those of ranks that go on by themselves, of which each begins at a row of its own."""
    rollout = new(preset)
    fill(rollout, real_screens, course_of_points())
    release_finished(rollout, 200)
    whole = rollout.state()
    shares = []
    for rank in range(2):
        share = make_policy(CONFIGS[preset]).make_rollout(1)
        share.load_state(cut(whole, LAYOUT, env_range(2, rank, 2)))
        share.release(share.first_unused.copy())  # of what only the other env needs
        shares.append(share.state())
    assert len(shares[0]["lengths"]) == len(shares[1]["lengths"]) - 60
    joined = join_states(shares)
    for name, array in whole.items():
        np.testing.assert_array_equal(joined[name], array, err_msg=name)
