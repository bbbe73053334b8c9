from typing import Any

import ale_py
import numpy as np
import numpy.typing as npt
import pytest
from ale_py import Action, ALEInterface, roms

from fastpong.arrays import U8
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


def test_shrinking_takes_means_of_the_brighter_screen(film: dict[str, U8]) -> None:
    words, image = as_words(film["screens"]), np.zeros((84, 84), np.uint8)
    for t in range(2, 12):
        drawing.shrink(words[t], words[t - 1], image)
        ref = naive.shrink(np.maximum(film["greys"][t], film["greys"][t - 1]))
        assert np.abs(image - ref).max() <= 0.5 + 1e-4  # rounded


def test_stacks_shift_and_begin_with_their_first_image(film: dict[str, U8]) -> None:
    words, stacks, env = as_words(film["screens"]), np.zeros((2, 4, 84, 84), np.uint8), np.ones(1, np.int64)
    for t, begins in ((0, True), (1, False), (2, False)):
        drawing.stack_greys(words, words, np.array([t]), env, np.array([begins]), stacks)
    images = np.zeros((3, 84, 84), np.uint8)
    for t in range(3):
        drawing.shrink(words[t], words[t], images[t])
    np.testing.assert_array_equal(stacks[1], images[[0, 0, 1, 2]])
    assert not stacks[0].any()
