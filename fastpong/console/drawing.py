"""Colours of a line, eight pixels a word, and the lines of a screen that get them.

A line is made once for as long as no register changes, in three layers of one colour each, and then copied. Words are
uint64, as in `masks`.
"""

from typing import Any

import numpy as np
from numpy import uint64

from fastpong.arrays import U8
from fastpong.console.masks import ROW_STALE, ROW_WORDS, WORDS
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.kernels.compile.jit import once
from fastpong.pong import SCREEN as SHAPE

SCREEN = np.dtype((np.record, [("words", np.uint64, (SHAPE[0], ROW_WORDS))]))
"""A screen, uint8 (210, 160) palette indices, as a record."""

LEFT = np.array([0xFFFFFFFFFFFFFFFF, 0xFFFF, 0], np.uint64)
"""The mask of the left half of a line, uint64 (3,)."""

_EIGHT = uint64(0x0101010101010101)  # times a colour: eight pixels of it
_BYTE = uint64(0xFF)
_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # the first n of eight pixels
_EXPANDED = np.array([sum(0xFF << 8 * k for k in range(8) if bits >> k & 1) for bits in range(256)], np.uint64)
"""Eight bits as eight bytes of 0 or 255, uint64 (256,)."""


def as_screens(screens: U8) -> Any:
    """Return contiguous screens, uint8 (n, 210, 160), as records of dtype `SCREEN`, (n,)."""
    return screens.reshape(len(screens), SHAPE[0] * SHAPE[1]).view(SCREEN)[:, 0]


@once
def make_row(
    s: Any,  # STATE
    p: Any,  # PICTURE
) -> None:
    """Colour the line that the masks describe. The objects of a layer never differ in colour."""
    player_0, player_1 = uint64(s.COLUP0) * _EIGHT, uint64(s.COLUP1) * _EIGHT
    playfield, background = uint64(s.COLUPF) * _EIGHT, uint64(s.COLUBK) * _EIGHT
    for part in range(ROW_WORDS):
        p.row[part] = background
    for word in range(WORDS):
        of_0 = p.mask[PLAYER_0, word] | p.mask[MISSILE_0, word]
        of_1 = p.mask[PLAYER_1, word] | p.mask[MISSILE_1, word]
        ball, field = p.mask[BALL, word], p.mask[PLAYFIELD, word]
        if of_0 | of_1 | ball | field == uint64(0):
            continue
        if s.CTRLPF & 4:  # playfield and ball in front
            low, middle, top = of_1, of_0, ball | field
            colours = player_1, player_0, playfield
        elif s.CTRLPF & 2:  # score: the halves of the playfield have the players' colours
            low, middle, top = ball, of_1 | field & ~LEFT[word], of_0 | field & LEFT[word]
            colours = playfield, player_1, player_0
        else:
            low, middle, top = ball | field, of_1, of_0
            colours = playfield, player_1, player_0
        for part in range(8 * word, min(8 * word + 8, ROW_WORDS)):
            if (low | middle | top) & _BYTE:
                in_low, in_middle, in_top = _EXPANDED[low & _BYTE], _EXPANDED[middle & _BYTE], _EXPANDED[top & _BYTE]
                pixels = background & ~in_low | colours[0] & in_low
                pixels = pixels & ~in_middle | colours[1] & in_middle
                p.row[part] = pixels & ~in_top | colours[2] & in_top
            low, middle, top = low >> uint64(8), middle >> uint64(8), top >> uint64(8)
    p.stale &= ~ROW_STALE


@once
def fill(
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    first: int,
    end: int,
) -> None:
    """Copy the row to lines first … end − 1 of a screen, unless they have it from the frame before.

    ``uniform[y]`` says that lines y … uniform[y] − 1 of the screen are equal; 0: nothing is known. So one comparison
    tells. Every line is drawn from the top down, so what is said of lines above ends where this begins.
    """
    known = p.uniform[first] >= end
    for part in range(ROW_WORDS):
        known &= p.row[part] == screen.words[first, part]
    p.uniform[first] = end
    for y in range(first + 1, end):
        p.uniform[y] = 0
    if known:
        return
    for y in range(first, end):
        for part in range(ROW_WORDS):
            screen.words[y, part] = p.row[part]


@once
def _draw_part(
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    y: int,
    x: int,
    end: int,
) -> None:
    """Copy pixels x … end − 1 of the row to line y."""
    p.uniform[y] = 0
    for part in range(x >> 3, (end + 7) >> 3):
        inside = _FIRST[min(end - 8 * part, 8)] & ~_FIRST[max(x - 8 * part, 0)]
        screen.words[y, part] = screen.words[y, part] & ~inside | p.row[part] & inside


@once
def blacken(
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    y: int,
    x: int,
    end: int,
) -> None:
    """Make pixels x … end − 1 of line y black; they are among the first eight."""
    p.uniform[y] = 0
    screen.words[y, 0] &= ~(_FIRST[end] & ~_FIRST[x])


@once
def draw(
    s: Any,  # STATE
    p: Any,  # PICTURE, of which the masks are those of the registers
    screen: Any,  # SCREEN
    first: int,
    x: int,
    last: int,
    end: int,
) -> None:
    """Draw from (line first, x) up to (line last, end), all with the present registers."""
    if s.VBLANK & 2:
        for part in range(ROW_WORDS):
            p.row[part] = uint64(0)
        p.stale |= ROW_STALE
    elif p.stale & ROW_STALE:
        make_row(s, p)
    if first == last:
        _draw_part(p, screen, first, x, end)
        return
    if x > 0:
        _draw_part(p, screen, first, x, 160)
        first += 1
    if first < last:
        fill(p, screen, first, last)
    if end > 0:
        _draw_part(p, screen, last, 0, end)
