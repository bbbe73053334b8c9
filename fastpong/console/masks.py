"""A line of the picture as masks of 160 bits, three words: where each object of the TIA is, bit 0 at the left.

A word is a uint64, and so is every constant that meets one: of a uint64 and an int64 Numba makes a float64. Twin:
`fastpong.console.tia`, which asks pixel by pixel.
"""

from typing import Any

import numpy as np
from numpy import uint64

from fastpong.arrays import U64
from fastpong.console.registers import COPIES, NO_COPY, REFLECTED, WIDE, WIDEST, delayed
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.courts import WORDS
from fastpong.kernels.compile.jit import once
from fastpong.pong import COURT

OBJECTS = 6

ROW_WORDS = 20
"""Words of a row of colours, eight pixels each."""

PICTURE = np.dtype((np.record, [
    ("mask", np.uint64, (OBJECTS, WORDS)),
    ("row", np.uint64, ROW_WORDS),  # colours of a line with the present registers
    ("stale", np.int64),  # bit k: the mask of object k is not that of the registers; bit 6: nor is the row
    ("drawn", np.int64),  # what is drawn of the present frame, see `drawing`; collisions are found in any case
    ("uniform", np.uint8, 256),  # see `fastpong.console.drawing.fill`
    ("line", np.uint64, WORDS),  # which pixels of a line are set, with the present registers
    ("court", np.uint64, (COURT[0], WORDS)),  # which pixels of the court are, after the last frame that was drawn
    ("court_key", np.uint64),  # this, and what follows, see `fastpong.console.court`
    ("court_changes", np.uint64, 2),
    ("court_visits", np.uint64, 2),
]))  # fmt: skip
"""What the fast core derives from a state while it draws, a record. It is no part of the state: zeros do as well."""

MASKS_STALE, ROW_STALE = (1 << OBJECTS) - 1, 1 << OBJECTS

LAST_WORD = uint64(0xFFFFFFFF)  # of a mask: 160 = 64 + 64 + 32


def _stretched(width: int) -> U64:
    """Return each byte with its bits `width` as wide, uint64 (256,)."""
    one = (1 << width) - 1
    return np.array([sum(one << width * k for k in range(8) if byte >> k & 1) for byte in range(256)], np.uint64)


_STRETCHED = np.stack([_stretched(1), _stretched(2), _stretched(4)])
"""Each byte with its bits 1, 2 or 4 pixels wide, uint64 (3, 256)."""


@once
def bits_below(x: int, word: int) -> uint64:
    """Return one word of the mask of pixels 0 … x − 1."""
    bits = min(max(x - 64 * word, 0), 64)
    return ~uint64(0) if bits == 64 else (uint64(1) << uint64(bits)) - uint64(1)


@once
def _put(
    p: Any,  # PICTURE
    k: int,  # object
    bits: uint64,  # up to 32 pixels
    x: int,  # 0 … 159
) -> None:
    """Add pixels to the mask of an object, from x on, around the end of the line."""
    word, shift = x >> 6, uint64(x & 63)
    p.mask[k, word] |= bits << shift
    if shift > uint64(32) and word < WORDS - 1:
        p.mask[k, word + 1] |= bits >> (uint64(64) - shift)
    if x > 128:
        p.mask[k, WORDS - 1] &= LAST_WORD
        p.mask[k, 0] |= bits >> uint64(160 - x)


@once
def _clear(
    p: Any,  # PICTURE
    k: int,  # object
) -> None:
    for word in range(WORDS):
        p.mask[k, word] = uint64(0)


@once
def _player(
    p: Any,  # PICTURE
    k: int,  # PLAYER_0 or PLAYER_1
    x: int,  # position
    nusiz: int,
    graphics: int,  # 0 … 255, bit 7 leftmost
    reflected: int,  # not 0: bit 0 leftmost
    skip_copy: int,  # 1: leave out the first copy
) -> None:
    """Make the mask of a player. A wide one begins a pixel later."""
    _clear(p, k)
    if graphics == 0:
        return
    if not reflected:
        graphics = REFLECTED[graphics]
    mode = nusiz & 7
    if mode == WIDE or mode == WIDEST:
        if not skip_copy:
            _put(p, k, _STRETCHED[1 if mode == WIDE else 2, graphics], (x + 1) % 160)
        return
    for copy in range(skip_copy, 3):
        offset = COPIES[mode, copy]
        if offset != NO_COPY:
            _put(p, k, _STRETCHED[0, graphics], (x + offset) % 160)


@once
def _missile(
    p: Any,  # PICTURE
    k: int,  # MISSILE_0, MISSILE_1 or BALL
    x: int,  # position
    nusiz: int,
    shown: bool,
) -> None:
    """Make the mask of a missile. It has as many copies as its player."""
    _clear(p, k)
    if not shown:
        return
    bits = uint64((1 << (1 << (nusiz >> 4 & 3))) - 1)
    for copy in range(3):
        offset = COPIES[nusiz & 7, copy]
        if offset != NO_COPY:
            _put(p, k, bits, (x + offset) % 160)


@once
def _blocks(
    p: Any,  # PICTURE
    half: int,  # 20 bits, bit 0 leftmost
    x: int,  # 0 or 80
) -> None:
    """Add a half of the playfield, four pixels for each bit, to its mask."""
    for part in range(3):
        _put(p, PLAYFIELD, _STRETCHED[2, half >> 8 * part & 255], x + 32 * part)


@once
def _playfield(
    p: Any,  # PICTURE
    pf: int,  # ``PF``: 20 bits
    mirrored: int,  # not 0: the right half is reflected
) -> None:
    """Make the mask of the playfield. PF0 and PF2 show their lowest bit first, PF1 its highest."""
    _clear(p, PLAYFIELD)
    if pf == 0:
        return
    left = pf & 0xFF00F | REFLECTED[pf >> 4 & 255] << 4
    right = left
    if mirrored:
        right = REFLECTED[left & 255] << 12 | REFLECTED[left >> 8 & 255] << 4 | REFLECTED[left >> 16] >> 4
    _blocks(p, left, 0)
    _blocks(p, right, 80)


@once
def refresh(
    s: Any,  # STATE
    p: Any,  # PICTURE
) -> None:
    """Make those masks anew whose registers have changed."""
    stale, (graphics_0, graphics_1, ball) = p.stale, delayed(s)
    if stale & 1 << PLAYER_0:
        _player(p, PLAYER_0, s.position[PLAYER_0], s.NUSIZ0, graphics_0, s.REFP0, s.skip_copy[PLAYER_0])
    if stale & 1 << PLAYER_1:
        _player(p, PLAYER_1, s.position[PLAYER_1], s.NUSIZ1, graphics_1, s.REFP1, s.skip_copy[PLAYER_1])
    if stale & 1 << MISSILE_0:
        _missile(p, MISSILE_0, s.position[MISSILE_0], s.NUSIZ0, s.ENAM0 and not s.RESMP0)
    if stale & 1 << MISSILE_1:
        _missile(p, MISSILE_1, s.position[MISSILE_1], s.NUSIZ1, s.ENAM1 and not s.RESMP1)
    if stale & 1 << BALL:  # its width stands where NUSIZ has that of a missile; it has no copies
        _missile(p, BALL, s.position[BALL], s.CTRLPF & 0x30, ball != 0)
    if stale & 1 << PLAYFIELD:
        _playfield(p, s.PF, s.mirrored)
    if stale & MASKS_STALE:
        p.stale = ROW_STALE


@once
def may_overlap(
    s: Any,  # STATE
) -> bool:
    """Return whether more than one object has a pixel anywhere."""
    graphics_0, graphics_1, ball = delayed(s)
    missile_0, missile_1 = s.ENAM0 and not s.RESMP0, s.ENAM1 and not s.RESMP1
    shown = (s.PF != 0) + (graphics_0 != 0) + (graphics_1 != 0) + (missile_0 != 0) + (missile_1 != 0) + (ball != 0)
    return bool(shown > 1)
