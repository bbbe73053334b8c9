"""The court as bits: one for each pixel of rows 34 … 193 of a screen, set where something is that is not background.

It is all that the policy of the preset ``fast`` sees, of every second column, and takes 4 KB where a screen takes 34. A
row is three words of 64 bits, bit 0 at the left; the last 32 bits stand for no pixel and are 0. The console draws these
bits; here they are made of screens.
"""

import numpy as np

from fastpong.arrays import U8, U64
from fastpong.pong import BACKGROUND, COURT, COURT_TOP, SCREEN

WORDS = 3
"""Words of a row of 160 bits."""

IS_SET = np.ones(256, np.bool_)
IS_SET[list(BACKGROUND)] = False
"""Of each palette index whether a pixel of it is set, bool (256,)."""

_TABLE = np.uint64(0x2222222222222222)  # eight pixels of index 34
_BYTES = np.arange(COURT[0] * 8 * WORDS).reshape(COURT[0], 8 * WORDS)[:, : SCREEN[1] // 8].reshape(-1)
"""Where in the bytes of a court the bits of each eight pixels stand, int64 (3200,)."""
_SOMETHING = 14  # a colour that is set


def draw_court(screen: U8, court: U64) -> None:
    """Write the court, uint64 (160, 3), of a screen, uint8 (210, 160)."""
    eights = screen[COURT_TOP : COURT_TOP + COURT[0]].reshape(-1).view(np.uint64)
    where = np.flatnonzero(eights != _TABLE)  # of thirty words one
    court[:] = 0
    bits = np.packbits(IS_SET[eights[where].view(np.uint8)], bitorder="little")
    court.reshape(-1).view(np.uint8)[_BYTES[where]] = bits


def courts_of(screens: U8) -> U64:
    """Return the courts, uint64 (n, 160, 3), of screens, uint8 (n, 210, 160)."""
    courts = np.zeros((len(screens), COURT[0], WORDS), np.uint64)
    for screen, court in zip(np.ascontiguousarray(screens), courts, strict=True):
        draw_court(screen, court)
    return courts


def pixels_of(courts: U64) -> U8:
    """Return which pixels of courts, uint64 (…, 160, 3), are set: uint8 (…, 160, 160) of 0 and 1."""
    return np.unpackbits(np.ascontiguousarray(courts).view(np.uint8), axis=-1, bitorder="little")[..., : SCREEN[1]]


def screen_of(court: U64) -> U8:
    """Return a screen, uint8 (210, 160), of which this is the court: what is set is grey, and all else black."""
    screen = np.zeros(SCREEN, np.uint8)
    screen[COURT_TOP : COURT_TOP + COURT[0]] = _SOMETHING * pixels_of(court)
    return screen
