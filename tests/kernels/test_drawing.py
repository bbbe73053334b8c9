from typing import Any

import ale_py
import numpy as np
import numpy.typing as npt
import pytest
from ale_py import Action, ALEInterface, roms

from fastpong.arrays import U8, U64
from fastpong.kernels import drawing
from fastpong.kernels.preprocess import as_words
from fastpong.pong import COLOURS
from tests import naive

Golden = dict[str, npt.NDArray[Any]]


@pytest.fixture(scope="module")
def film() -> dict[str, U8]:
    """Every 40th screen of a game, as ALE draws it: palette indices, colours and greys."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale, rng = ALEInterface(), np.random.default_rng(0)
    rom = roms.get_rom_path("pong")
    assert rom is not None
    ale.loadROM(rom)
    shots = []
    for frame in range(3200):
        ale.act([Action.RIGHT, Action.LEFT, Action.FIRE][rng.integers(3)])
        if frame % 40 == 0:
            shots.append((ale.getScreen(), ale.getScreenRGB(), ale.getScreenGrayscale()))
    return dict(zip(("screens", "colours", "greys"), map(np.array, zip(*shots, strict=True)), strict=True))


def test_colours_and_greys_are_ales(film: dict[str, U8]) -> None:
    table = np.zeros((256, 3), np.uint8)
    table[list(COLOURS)] = list(COLOURS.values())
    np.testing.assert_array_equal(table[film["screens"]], film["colours"])
    images, some = np.zeros((len(film["screens"]), 210, 160, 3), np.uint8), np.arange(0, 80, 9)
    flat = images.reshape(-1, 210, 480)
    drawing.draw_colours(as_words(film["screens"]), some, some, flat, flat.view(np.uint64))
    np.testing.assert_array_equal(images[some], film["colours"][some])
    assert not images[1].any()
    np.testing.assert_array_equal(drawing._GREYS[film["screens"]], film["greys"])


def test_courts(film: dict[str, U8]) -> None:
    screens = film["screens"][:8]
    images = np.full((9, 160, 80), 7, np.uint8)
    drawing.draw_courts(as_words(screens), np.arange(8), np.arange(1, 9), images)
    for screen, image in zip(screens, images[1:], strict=True):
        np.testing.assert_array_equal(image, naive.court(screen))
    assert (images[0] == 7).all()


def test_differences_are_the_golden_ones(golden: Golden) -> None:
    last, image, env = np.zeros((1, 6400), np.uint8), np.zeros((1, 80, 80), np.int8), np.zeros(1, np.int64)
    words = as_words(golden["screens"])
    for t, x in enumerate(golden["x"]):
        drawing.draw_differences(words, np.array([t]), env, np.array([t == 0]), last, image)
        np.testing.assert_array_equal(image.reshape(-1), x)


def first_image(words: U64, now: int, earlier: int) -> U8:
    """What `shrink` draws; as a part of the kernel that calls it, which is compiled anyway."""
    stacks, env = np.zeros((1, 4, 84, 84), np.uint8), np.zeros(1, np.int64)
    drawing.draw_stacks(words[now:], words[earlier:], env, env, np.array([True]), stacks, stacks)
    image: U8 = stacks[0, 3]
    return image


def test_shrinking_takes_means_of_the_brighter_screen(film: dict[str, U8]) -> None:
    words = as_words(film["screens"])
    for t in range(2, 12):
        image = first_image(words, t, t - 1)
        ref = naive.shrink(np.maximum(film["greys"][t], film["greys"][t - 1]))
        assert np.abs(image - ref).max() <= 0.5 + 1e-4  # rounded


def test_a_stack_moves_up_and_begins_with_one_image_four_times(film: dict[str, U8]) -> None:
    words = as_words(film["screens"])
    before = np.random.default_rng(1).integers(0, 255, (3, 4, 84, 84), np.uint8)
    expected, images = np.zeros_like(before), np.zeros_like(before)
    expected[2] = [*before[2, 1:], first_image(words, 4, 5)]
    expected[0] = first_image(words, 5, 6)
    for stacks in (images, before):  # the last: in place
        drawing.draw_stacks(
            words, words[1:], np.array([4, 5]), np.array([2, 0]), np.array([False, True]), before, stacks
        )
        np.testing.assert_array_equal(stacks[[0, 2]], expected[[0, 2]])
    assert not images[1].any()
