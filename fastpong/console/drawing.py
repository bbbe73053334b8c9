"""Colours of a line, eight pixels a word, and the lines of a screen that get them.

A line is made once for as long as no register changes, in three layers of one colour each, and then copied.
"""

from typing import Any

import numpy as np

from fastpong.arrays import U8
from fastpong.console.masks import ROW_STALE, ROW_WORDS, WORDS, refresh
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.kernels.compile.jit import once
from fastpong.pong import SCREEN as SHAPE

SCREEN = np.dtype((np.record, [("words", np.uint64, (SHAPE[0], ROW_WORDS))]))
"""A screen, uint8 (210, 160) palette indices, as a record."""

_U = np.uint64
_EIGHT = _U(0x0101010101010101)
_BYTE = _U(0xFF)
_EXPAND = np.array([sum(0xFF << 8 * k for k in range(8) if bits >> k & 1) for bits in range(256)], np.uint64)
"""Eight bits as eight bytes of 0 or 255."""

FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""The first n of eight pixels."""

LEFT = np.array([0xFFFFFFFFFFFFFFFF, 0xFFFF, 0], np.uint64)
"""Mask of the left half of a line."""


def as_screens(screens: U8) -> Any:
    """Return contiguous screens, uint8 (n, 210, 160), as records of dtype `SCREEN`, (n,)."""
    return screens.reshape(len(screens), SHAPE[0] * SHAPE[1]).view(SCREEN)[:, 0]


@once
def make_row(s: Any, p: Any) -> None:
    """Colour the line that the masks describe. The objects of a layer never differ in colour."""
    player_0, player_1 = _U(s.COLUP0) * _EIGHT, _U(s.COLUP1) * _EIGHT
    playfield, background = _U(s.COLUPF) * _EIGHT, _U(s.COLUBK) * _EIGHT
    for word in range(ROW_WORDS):
        p.row[word] = background
    for word in range(WORDS):
        of_0 = p.mask[PLAYER_0, word] | p.mask[MISSILE_0, word]
        of_1 = p.mask[PLAYER_1, word] | p.mask[MISSILE_1, word]
        ball, field = p.mask[BALL, word], p.mask[PLAYFIELD, word]
        if of_0 | of_1 | ball | field == _U(0):
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
                e1, e2, e3 = _EXPAND[low & _BYTE], _EXPAND[middle & _BYTE], _EXPAND[top & _BYTE]
                pixels = background & ~e1 | colours[0] & e1
                pixels = pixels & ~e2 | colours[1] & e2
                p.row[part] = pixels & ~e3 | colours[2] & e3
            low, middle, top = low >> _U(8), middle >> _U(8), top >> _U(8)
    p.stale &= ~ROW_STALE


@once
def fill(p: Any, screen: Any, first: int, end: int) -> None:
    """Copy the row to lines first … end − 1 of a screen, unless they have it from the frame before.

    ``uniform[y]`` says that lines y … uniform[y] − 1 of the screen are equal; 0: nothing is known. So one comparison
    tells. Every line is drawn from the top down, so what is said of lines above ends where this begins.
    """
    known = p.uniform[first] >= end
    for word in range(ROW_WORDS):
        known &= p.row[word] == screen.words[first, word]
    p.uniform[first] = end
    for y in range(first + 1, end):
        p.uniform[y] = 0
    if known:
        return
    for y in range(first, end):
        for word in range(ROW_WORDS):
            screen.words[y, word] = p.row[word]


@once
def draw_part(p: Any, screen: Any, y: int, x: int, end: int) -> None:
    """Copy pixels x … end − 1 of the row to line y."""
    p.uniform[y] = 0
    for word in range(x >> 3, (end + 7) >> 3):
        inside = FIRST[min(end - 8 * word, 8)] & ~FIRST[max(x - 8 * word, 0)]
        screen.words[y, word] = screen.words[y, word] & ~inside | p.row[word] & inside


@once
def blacken(p: Any, screen: Any, y: int, x: int, end: int) -> None:
    """Make pixels x … end − 1 of line y black; they are among the first eight."""
    p.uniform[y] = 0
    screen.words[y, 0] &= ~(FIRST[end] & ~FIRST[x])


@once
def draw(s: Any, p: Any, screen: Any, first: int, x: int, last: int, end: int) -> None:
    """Draw from (line first, x) up to (line last, end), all with the present registers."""
    if s.VBLANK & 2:
        for word in range(ROW_WORDS):
            p.row[word] = _U(0)
        p.stale |= ROW_STALE
    elif p.stale & ROW_STALE:
        make_row(s, p)
    if first == last:
        draw_part(p, screen, first, x, end)
        return
    if x > 0:
        draw_part(p, screen, first, x, 160)
        first += 1
    if first < last:
        fill(p, screen, first, last)
    if end > 0:
        draw_part(p, screen, last, 0, end)


@once
def draw_halves(s: Any, p: Any, screen: Any, y: int, left: int, right: int) -> None:
    """Draw four lines of a playfield of which the halves differ (20 bits each), and of nothing else."""
    s.PF = right
    p.stale |= 1 << PLAYFIELD
    refresh(s, p)
    middle, end = p.mask[PLAYFIELD, 1], p.mask[PLAYFIELD, 2]
    s.PF = left
    p.stale |= 1 << PLAYFIELD
    refresh(s, p)
    p.mask[PLAYFIELD, 1] = p.mask[PLAYFIELD, 1] & LEFT[1] | middle & ~LEFT[1]
    p.mask[PLAYFIELD, 2] = end
    make_row(s, p)
    fill(p, screen, y, y + 4)
    p.stale |= 1 << PLAYFIELD
