import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from fastpong.arrays import I32, U8
from fastpong.kernels.compile.jit import uncompiled
from fastpong.kernels.preprocess import Observation, as_words, record_strips
from fastpong.kernels.strips import find_strips, list_strips
from tests import naive
from tests.support.kernels import court, last_images, observation, rollout_arrays, screen_with_bars

ROOM = 64


def listed(strips: I32) -> list[tuple[int, int, int]]:
    """Strips as (row, column, length), in order of the columns."""
    numbers = [int(strip) for strip in strips]
    return sorted(((n // 8 // 80, n // 8 % 80, n % 8 + 1) for n in numbers), key=lambda strip: (strip[1], strip[0]))


def test_strips_are_the_pixels_of_the_court(real_screens: npt.NDArray[np.uint8]) -> None:
    out, start = np.zeros(2000, np.int32), 0
    for screen in real_screens[::10]:
        end = find_strips(as_words(np.ascontiguousarray(screen)[None])[0], out, start)
        assert listed(out[start:end]) == naive.strips(court(screen))


@given(st.lists(st.tuples(st.integers(0, 159), st.integers(0, 79), st.integers(1, 30)), max_size=12))
def test_strips_of_any_picture(bars: list[tuple[int, int, int]]) -> None:
    screen, out = screen_with_bars(bars), np.zeros(13_000, np.int32)
    end = find_strips(as_words(screen[None])[0], out, 0)
    assert listed(out[:end]) == naive.strips(screen[34:194, ::2] == 92)


def test_a_full_court_fits() -> None:
    out = np.zeros(12_800, np.int32)
    screen = np.full((210, 160), 92, np.uint8)
    assert find_strips(as_words(screen[None])[0], out, 0) == 20 * 80


def test_strips_of_envs_are_recorded_one_after_the_other(real_screens: npt.NDArray[np.uint8]) -> None:
    arrays, strips, rows, members = rollout_arrays(10), np.zeros(4000, np.int32), [70, 20, 45], [4, 0, 3]
    arrays.lengths[:] = 77
    end = record_strips(
        observation(real_screens), np.array(rows), np.array(members), arrays, 5, strips, 11, last_images(5, 0)
    )  # fmt: skip
    at = 11
    for row, env in zip(rows, members, strict=True):
        start, length = arrays.offsets[5 + env], arrays.lengths[5 + env]
        assert start == at and length > 5
        assert listed(strips[start : start + length]) == naive.strips(court(real_screens[row]))
        at += int(length)
    assert end == at and arrays.lengths[[0, 1, 2, 3, 4, 6, 7]].tolist() == [77] * 7


def runs(screen: U8, rng: np.random.Generator) -> U8:
    """What may be known of the lines of a screen: some of their runs, whole or in part, and where nothing is known."""
    uniform, y = np.zeros(256, np.uint8), 0
    while y < 210:
        end = y + 1
        while end < 210 and (screen[end] == screen[y]).all():
            end += 1
        end = int(rng.integers(y + 1, end + 1))
        uniform[y] = rng.choice([end, 0, y]) if rng.random() < 0.3 else end
        y = end if uniform[y] > y else y + 1
    return uniform


@given(st.lists(st.tuples(st.integers(0, 159), st.integers(0, 79), st.integers(1, 99)), max_size=12), st.integers(0, 9))
def test_equal_lines_need_not_be_read(bars: list[tuple[int, int, int]], seed: int) -> None:
    screen, out, listed_strips = screen_with_bars(bars), np.zeros(13_000, np.int32), np.full(ROOM, 77, np.int32)
    words = as_words(screen[None])[0]
    count = find_strips(words, out, 0)
    uncompiled(list_strips)(words, runs(screen, np.random.default_rng(seed)), listed_strips)
    if listed_strips[0]:
        assert listed_strips[0] == count + 1
        np.testing.assert_array_equal(listed_strips[1 : count + 1], out[:count])
    else:
        assert count > ROOM - 1 - 16  # up to so many of a word might come


def test_what_the_engine_lists_is_copied(real_screens: npt.NDArray[np.uint8]) -> None:
    """And found in the screen where it does not tell."""
    told = np.zeros((2, ROOM), np.int32)
    told[1, :4] = 4, 11, 12, 13
    seen = observation(real_screens[:2])
    seen = Observation(seen.screens, seen.rewards, seen.ended, told)
    arrays, strips = rollout_arrays(2), np.zeros(4000, np.int32)
    end = record_strips(seen, np.arange(2), np.arange(2), arrays, 0, strips, 0, last_images(2, 0))
    assert arrays.lengths[1] == 3 and strips[end - 3 : end].tolist() == [11, 12, 13]
    assert listed(strips[: arrays.lengths[0]]) == naive.strips(court(real_screens[0]))
