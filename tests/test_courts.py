"""The bits of courts, from screens and back."""

import numpy as np
import pytest

from fastpong import courts
from fastpong.arrays import U8
from fastpong.courts import courts_of
from tests import naive


@pytest.mark.parametrize("kind", ["real", "random", "full", "empty"])
def test_bits_are_the_set_pixels(kind: str, real_screens: U8) -> None:
    rng, shape = np.random.default_rng(1), (4, 210, 160)
    screens = {
        "real": real_screens[40:80:10], "random": rng.integers(0, 256, shape, np.uint8),
        "full": np.full(shape, 92, np.uint8), "empty": np.full(shape, 144, np.uint8),
    }[kind]  # fmt: skip
    found = courts_of(screens)
    for screen, court, pixels in zip(screens, found, courts.pixels_of(found), strict=True):
        np.testing.assert_array_equal(pixels, naive.set_pixels(screen))
        assert (court[:, 2] >> np.uint64(32) == 0).all()  # which stand for no pixel
        again = courts.screen_of(court)
        np.testing.assert_array_equal(courts_of(again[None])[0], court)
        assert not again[:34].any() and not again[194:].any()
