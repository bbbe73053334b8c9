"""Lines of a picture: colours, eight pixels a word, for a screen; or bits, one for each pixel that is set, for a court.

A line is made once for as long as no register changes, in three layers of one colour each, and then copied. Words are
uint64, as in `masks`. A policy sees bits alone, and these take a seventh of the words.
"""

from typing import Any

import numpy as np
from numpy import uint64

from fastpong.arrays import U8
from fastpong.console.masks import LAST_WORD, ROW_STALE, ROW_WORDS, bits_below
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.courts import IS_SET, WORDS
from fastpong.kernels.compile.jit import once
from fastpong.pong import COURT, COURT_TOP
from fastpong.pong import SCREEN as SHAPE

SCREEN = np.dtype((np.record, [("words", np.uint64, (SHAPE[0], ROW_WORDS))]))
"""A screen, uint8 (210, 160) palette indices, as a record."""

NOTHING, COLOURS, BITS = range(3)
"""What is drawn of a frame: only its last picture counts, and that as a screen or as a court."""

LEFT = np.array([0xFFFFFFFFFFFFFFFF, 0xFFFF, 0], np.uint64)
"""The mask of the left half of a line, uint64 (3,)."""

_EIGHT = uint64(0x0101010101010101)  # times a colour: eight pixels of it
_BYTE = uint64(0xFF)
_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # the first n of eight pixels
_EXPANDED = np.array([sum(0xFF << 8 * k for k in range(8) if bits >> k & 1) for bits in range(256)], np.uint64)
"""Eight bits as eight bytes of 0 or 255, uint64 (256,)."""
_ALL_SET = np.where(IS_SET, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0))
"""64 pixels of each colour: as bits, uint64 (256,)."""
_COURT_END = COURT_TOP + COURT[0]


def as_screens(screens: U8) -> Any:
    """Return contiguous screens, uint8 (n, 210, 160), as records of dtype `SCREEN`, (n,)."""
    return screens.reshape(len(screens), SHAPE[0] * SHAPE[1]).view(SCREEN)[:, 0]


@once
def is_drawn(
    p: Any,  # PICTURE
    first: int,
    last: int,
) -> bool:
    """Return whether anything of the lines first … last is drawn in this frame."""
    return bool(p.drawn == COLOURS or (p.drawn == BITS and first < _COURT_END and last >= COURT_TOP))


@once
def _layers(
    s: Any,  # STATE
    p: Any,  # PICTURE
    word: int,
) -> tuple[uint64, uint64, uint64]:
    """Return a word of what is at the back, in the middle and in front. The objects of a layer never differ in colour.

    A layer has the colours of `_in_layers`.
    """
    of_0 = p.mask[PLAYER_0, word] | p.mask[MISSILE_0, word]
    of_1 = p.mask[PLAYER_1, word] | p.mask[MISSILE_1, word]
    ball, field = p.mask[BALL, word], p.mask[PLAYFIELD, word]
    if s.CTRLPF & 4:  # playfield and ball in front
        return of_1, of_0, ball | field
    if s.CTRLPF & 2:  # score: the halves of the playfield have the players' colours
        return ball, of_1 | field & ~LEFT[word], of_0 | field & LEFT[word]
    return ball | field, of_1, of_0


@once
def _in_layers(
    s: Any,  # STATE
    player_0: uint64,
    player_1: uint64,
    playfield: uint64,
) -> tuple[uint64, uint64, uint64]:
    """Return the colours of the layers."""
    if s.CTRLPF & 4:
        return player_1, player_0, playfield
    return playfield, player_1, player_0


@once
def make_row(
    s: Any,  # STATE
    p: Any,  # PICTURE
) -> None:
    """Colour the line that the masks describe, or tell which of its pixels are set."""
    p.stale &= ~ROW_STALE
    if p.drawn == BITS:
        set_0, set_1, set_2 = _in_layers(s, _ALL_SET[s.COLUP0], _ALL_SET[s.COLUP1], _ALL_SET[s.COLUPF])
        for word in range(WORDS):
            low, middle, top = _layers(s, p, word)
            bits = _ALL_SET[s.COLUBK] & ~low | set_0 & low
            bits = bits & ~middle | set_1 & middle
            p.line[word] = bits & ~top | set_2 & top
        p.line[WORDS - 1] &= LAST_WORD
        return
    colours = _in_layers(s, uint64(s.COLUP0) * _EIGHT, uint64(s.COLUP1) * _EIGHT, uint64(s.COLUPF) * _EIGHT)
    background = uint64(s.COLUBK) * _EIGHT
    for part in range(ROW_WORDS):
        p.row[part] = background
    for word in range(WORDS):
        low, middle, top = _layers(s, p, word)
        if low | middle | top == uint64(0):
            continue
        for part in range(8 * word, min(8 * word + 8, ROW_WORDS)):
            if (low | middle | top) & _BYTE:
                in_low, in_middle, in_top = _EXPANDED[low & _BYTE], _EXPANDED[middle & _BYTE], _EXPANDED[top & _BYTE]
                pixels = background & ~in_low | colours[0] & in_low
                pixels = pixels & ~in_middle | colours[1] & in_middle
                p.row[part] = pixels & ~in_top | colours[2] & in_top
            low, middle, top = low >> uint64(8), middle >> uint64(8), top >> uint64(8)


@once
def _make_black_row(
    p: Any,  # PICTURE
) -> None:
    """Make a line of which nothing is shown."""
    if p.drawn == BITS:
        for word in range(WORDS):
            p.line[word] = uint64(0)
    else:
        for part in range(ROW_WORDS):
            p.row[part] = uint64(0)
    p.stale |= ROW_STALE


@once
def fill(
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    first: int,
    end: int,
) -> None:
    """Copy the row to lines first … end − 1 of a screen or court, unless they have it from the frame before.

    ``uniform[y]`` says that lines y … uniform[y] − 1 of the screen are equal; 0: nothing is known. So one comparison
    tells. Every line is drawn from the top down, so what is said of lines above ends where this begins.
    """
    if p.drawn == BITS:
        first, end = max(first, COURT_TOP), min(end, _COURT_END)
        if first >= end:
            return
    known = p.uniform[first] >= end
    if p.drawn == BITS:
        for word in range(WORDS):
            known &= p.line[word] == p.court[first - COURT_TOP, word]
    else:
        for part in range(ROW_WORDS):
            known &= p.row[part] == screen.words[first, part]
    p.uniform[first] = end
    for y in range(first + 1, end):
        p.uniform[y] = 0
    if known:
        return
    for y in range(first, end):
        if p.drawn == BITS:
            for word in range(WORDS):
                p.court[y - COURT_TOP, word] = p.line[word]
        else:
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
    if p.drawn != BITS:
        for part in range(x >> 3, (end + 7) >> 3):
            inside = _FIRST[min(end - 8 * part, 8)] & ~_FIRST[max(x - 8 * part, 0)]
            screen.words[y, part] = screen.words[y, part] & ~inside | p.row[part] & inside
    elif COURT_TOP <= y < _COURT_END:
        for word in range(WORDS):
            passed = bits_below(end, word) & ~bits_below(x, word)
            row = y - COURT_TOP
            p.court[row, word] = p.court[row, word] & ~passed | p.line[word] & passed


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
    if p.drawn != BITS:
        screen.words[y, 0] &= ~(_FIRST[end] & ~_FIRST[x])
    elif COURT_TOP <= y < _COURT_END:
        p.court[y - COURT_TOP, 0] &= ~(bits_below(end, 0) & ~bits_below(x, 0))


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
        _make_black_row(p)
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
