from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong.arrays import I32
from fastpong.courts import courts_of
from fastpong.kernels import preprocess
from fastpong.pong import BACKGROUND
from tests import naive
from tests.support.kernels import court, last_images, observation, rollout_arrays, screen_with_bars

Golden = dict[str, npt.NDArray[Any]]

# Which of the 256 indices of ALE's palette come out empty was read off its RGB screens of 54 games.
RED_OF_TABLE, RED_OF_FRAME = 144, 109


def pixels_of(screen: npt.NDArray[np.uint8]) -> list[int]:
    out = np.zeros(6400, np.int16)
    count = preprocess.find_pixels(preprocess.as_words(np.ascontiguousarray(screen)[None])[0], out)
    return [int(i) for i in out[:count]]


def test_screens_become_the_reference_programs_images_bit_for_bit(golden: Golden) -> None:
    for screen, rgb, image in zip(golden["screens"], golden["rgb"], golden["images"], strict=True):
        ref = naive.preprocess(rgb[..., 0])
        comp = np.zeros(6400)
        comp[pixels_of(screen)] = 1
        np.testing.assert_array_equal(ref, image)
        np.testing.assert_array_equal(comp, image)


def test_changes_are_the_golden_differences(golden: Golden) -> None:
    count = len(golden["x"])
    seen = observation(golden["screens"], ended=[1] + [0] * (count - 1))
    last, arrays, env = last_images(1, 6400), rollout_arrays(count), np.zeros(1, np.int64)
    changes, at = np.zeros(50_000, np.int16), 0
    for t, x in enumerate(golden["x"]):
        begin = at
        at = preprocess.record_changes(seen, np.array([t]), env, arrays, t, changes, at, last)
        assert (arrays.offsets[t], arrays.lengths[t]) == (begin, at - begin)
        np.testing.assert_array_equal(preprocess.dense(changes[begin:at]), x)


def test_real_screens_match_rgb_preprocessing() -> None:
    """Against ALE's own colours on a real game, through a second emulator that renders RGB."""
    import ale_py
    from ale_py import ALEInterface, roms

    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("frame_skip", 4)
    rom = roms.get_rom_path("pong")
    assert rom is not None
    ale.loadROM(rom)
    rng = np.random.default_rng(0)
    for _ in range(200):
        ale.act(int(rng.integers(3, 5)))
        ref = naive.find_pixels(naive.preprocess(ale.getScreenRGB()[..., 0]))
        assert pixels_of(ale.getScreen()) == ref


@given(st.lists(st.tuples(st.integers(0, 209), st.integers(0, 159), st.integers(0, 255)), max_size=60))
def test_any_screen(dots: list[tuple[int, int, int]]) -> None:
    screen = np.full((210, 160), 34, np.uint8)
    for row, column, index in dots:
        screen[row, column] = index
    empty = np.isin(screen, BACKGROUND)
    ref = naive.find_pixels(naive.preprocess(np.where(empty, RED_OF_TABLE, 255).astype(np.uint8)))
    assert pixels_of(screen) == ref


def test_a_full_screen_fits() -> None:
    assert pixels_of(np.full((210, 160), 14, np.uint8)) == list(range(6400))


positions = st.lists(st.integers(0, 6399), max_size=40, unique=True).map(sorted)


@given(positions, positions)
def test_difference(before: list[int], now: list[int]) -> None:
    changes = np.full(100, 99, np.int16)
    end = preprocess.difference(
        np.array([*before, 0], np.int16), len(before), np.array([*now, 0], np.int16), len(now), changes, 3
    )
    ref = naive.difference(before, now)
    assert changes[3:end].tolist() == ref
    assert (changes[:3] == 99).all() and (changes[end:] == 99).all()
    np.testing.assert_array_equal(preprocess.dense(changes[3:end]), naive.dense(ref))


def test_envs_keep_their_own_last_image(real_screens: npt.NDArray[np.uint8]) -> None:
    """Two envs in swapped rows, recorded together, list what each would list alone; so does the twin."""
    times = [50, 51, 52, 53]
    begins = [True, False, True, False]  # a game, of either env

    def run(members: list[int]) -> dict[int, list[list[int]]]:
        last, arrays, changes = last_images(2, 6400), rollout_arrays(8), np.zeros(90_000, np.int16)
        found: dict[int, list[list[int]]] = {env: [] for env in members}
        at = 0
        for step, (t, begin) in enumerate(zip(times, begins, strict=True)):
            seen = observation(real_screens, ended=[int(begin)] * len(real_screens))
            rows = np.array([t + 100 * env for env in members])
            at = preprocess.record_changes(seen, rows, np.array(members), arrays, 2 * step, changes, at, last)
            for env in members:
                start = arrays.offsets[2 * step + env]
                found[env].append(changes[start : start + arrays.lengths[2 * step + env]].tolist())
        return found

    together = run([1, 0])
    for env in (0, 1):
        assert together[env] == run([env])[env]
        assert together[env] == naive.changes([pixels_of(real_screens[t + 100 * env]) for t in times], begins)
        assert together[env][1] and together[env][3]


def listed(strips: I32) -> list[tuple[int, int, int]]:
    """Strips as (row, column, length), in order of the columns."""
    numbers = [int(strip) for strip in strips]
    return sorted(((n // 8 // 80, n // 8 % 80, n % 8 + 1) for n in numbers), key=lambda strip: (strip[1], strip[0]))


def test_strips_are_the_pixels_of_the_court(real_screens: npt.NDArray[np.uint8]) -> None:
    out, start = np.zeros(2000, np.int32), 0
    for screen in real_screens[::10]:
        end = preprocess.find_strips(courts_of(screen[None])[0], out, start)
        assert listed(out[start:end]) == naive.strips(court(screen))


@given(st.lists(st.tuples(st.integers(0, 159), st.integers(0, 79), st.integers(1, 30)), max_size=12))
def test_strips_of_any_picture(bars: list[tuple[int, int, int]]) -> None:
    screen, out = screen_with_bars(bars), np.zeros(13_000, np.int32)
    end = preprocess.find_strips(courts_of(screen[None])[0], out, 0)
    assert listed(out[:end]) == naive.strips(screen[34:194, ::2] == 92)


def test_a_full_court_fits() -> None:
    out = np.zeros(12_800, np.int32)
    screen = np.full((210, 160), 92, np.uint8)
    assert preprocess.find_strips(courts_of(screen[None])[0], out, 0) == 20 * 80


def test_bits_that_stand_for_no_pixel_are_not_seen() -> None:
    """A checkpoint may have been damaged, and a strip beyond the court would be a number beyond an array."""
    out = np.zeros(100, np.int32)
    court_bits = np.zeros((160, 3), np.uint64)
    court_bits[:, 2] = 0xFFFFFFFF << 32
    assert preprocess.find_strips(court_bits, out, 0) == 0


def test_strips_of_envs_are_recorded_one_after_the_other(real_screens: npt.NDArray[np.uint8]) -> None:
    arrays, strips, rows, members = rollout_arrays(10), np.zeros(4000, np.int32), [70, 20, 45], [4, 0, 3]
    arrays.lengths[:] = 77
    end = preprocess.record_strips(
        observation(real_screens), np.array(rows), np.array(members), arrays, 5, strips, 11, last_images(5, 0)
    )  # fmt: skip
    at = 11
    for row, env in zip(rows, members, strict=True):
        start, length = arrays.offsets[5 + env], arrays.lengths[5 + env]
        assert start == at and length > 5
        assert listed(strips[start : start + length]) == naive.strips(court(real_screens[row]))
        at += int(length)
    assert end == at and arrays.lengths[[0, 1, 2, 3, 4, 6, 7]].tolist() == [77] * 7


@pytest.mark.parametrize("kind", ["changes", "strips"])
@given(seed=st.integers(0, 99))
def test_outcomes_are_recorded_with_the_step_before(kind: str, seed: int) -> None:
    """Of some envs, at any row of the rollout; those of its first row come to where its last row ends."""
    rng, envs, steps = np.random.default_rng(seed), 7, 4
    rows, members, step = rng.permutation(9)[:4], rng.permutation(envs)[:4], int(rng.integers(steps))
    rewards, ended = rng.integers(-1, 2, 9), rng.integers(0, 2, 9)
    seen = observation(np.full((9, 210, 160), 34, np.uint8), rewards.tolist(), ended.tolist())
    arrays = rollout_arrays(envs * steps)
    arrays.rewards[:], arrays.ended[:], arrays.steps_since_reset[:] = 9, 9, rng.integers(0, 50, envs * steps)
    columns: list[Any] = [arrays.rewards, arrays.ended, arrays.steps_since_reset]
    wanted = [array.reshape(steps, envs).copy() for array in columns]
    if kind == "changes":
        changes, last = np.zeros(100, np.int16), last_images(envs, 6400)
        assert preprocess.record_changes(seen, rows, members, arrays, envs * step, changes, 0, last) == 0
    else:
        strips = np.zeros(100, np.int32)
        assert preprocess.record_strips(seen, rows, members, arrays, envs * step, strips, 0, last_images(envs, 0)) == 0
    for row, env in zip(rows, members, strict=True):
        wanted[0][step - 1, env], wanted[1][step - 1, env] = rewards[row], ended[row]
        begins = ended[row] or step == 0
        wanted[2][step, env] = 0 if begins else wanted[2][step - 1, env] + 1
    for array, ref in zip(columns, wanted, strict=True):
        np.testing.assert_array_equal(array.reshape(steps, envs), ref)


def test_steps_are_counted_from_the_first_screen_of_a_game() -> None:
    arrays, strips, screens = rollout_arrays(14), np.zeros(100, np.int32), np.full((2, 210, 160), 34, np.uint8)
    for t in range(7):
        seen = observation(screens, ended=[int(t in (0, 4)), int(t == 0)])
        preprocess.record_strips(seen, np.arange(2), np.arange(2), arrays, 2 * t, strips, 0, last_images(2, 0))
    assert arrays.steps_since_reset[::2].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert arrays.steps_since_reset[1::2].tolist() == [0, 1, 2, 3, 4, 5, 6]
