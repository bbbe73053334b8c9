"""A line of the picture as masks of 160 bits, three words: where each object of the TIA is, bit 0 at the left.

Twin: `fastpong.console.tia`, which asks pixel by pixel.
"""

from typing import Any

import numpy as np

from fastpong.arrays import U64
from fastpong.console.registers import COPIES, REFLECTED
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.kernels.compile.jit import once

OBJECTS = 6
WORDS = 3
"""Words of a mask."""

ROW_WORDS = 20
"""Words of a row of the picture, eight pixels each."""

PICTURE = np.dtype(
    (
        np.record,
        [
            ("mask", np.uint64, (OBJECTS, WORDS)),
            ("row", np.uint64, ROW_WORDS),  # colours of a line with the present registers
            ("stale", np.int64),  # bit k: the mask of object k is not that of the registers; bit 6: nor is the row
            ("drawn", np.int64),  # whether the present frame is drawn; collisions are found in any case
            ("uniform", np.uint8, 256),  # see `fastpong.console.drawing.fill`
            ("court", np.uint64, WORDS),  # see `fastpong.console.court`
        ],
    )
)
"""What the fast core derives from a state while it draws, a record. It is no part of the state: zeros do as well."""

MASKS_STALE, ROW_STALE = (1 << OBJECTS) - 1, 1 << OBJECTS
ALL_STALE = MASKS_STALE | ROW_STALE

_U = np.uint64
_LAST_WORD = _U(0xFFFFFFFF)  # of a mask: 160 = 64 + 64 + 32


def _spread(times: int) -> U64:
    """Return for each byte, of which bit 7 is leftmost, its pixels `times` as wide, bit 0 leftmost: uint64 (256,)."""
    one = (1 << times) - 1
    return np.array([sum(one << times * k for k in range(8) if byte >> (7 - k) & 1) for byte in range(256)], np.uint64)


_WIDE = np.stack([_spread(1), _spread(2), _spread(4)])
_WIDTH_2, _WIDTH_4 = 5, 7
"""Values of NUSIZ at which a player is two and four times as wide. It then is one clock late as well."""

_LEFT_TO_RIGHT = REFLECTED.astype(np.int64)


@once
def _put(p: Any, k: int, bits: int, x: int) -> None:
    """Add up to 32 pixels (uint64) of object `k` to its mask, from `x` on, around the end of the line."""
    word, shift = x >> 6, _U(x & 63)
    p.mask[k, word] |= bits << shift
    if shift > _U(32) and word < 2:
        p.mask[k, word + 1] |= bits >> (_U(64) - shift)
    if x > 128:
        p.mask[k, 2] &= _LAST_WORD
        p.mask[k, 0] |= bits >> _U(160 - x)


@once
def _clear(p: Any, k: int) -> None:
    for word in range(WORDS):
        p.mask[k, word] = _U(0)


@once
def _player(p: Any, k: int, graphics: int, reflected: int, size: int, x: int, skip: int) -> None:
    """Make the mask of a player; `size` is NUSIZ, `skip`: without its first copy."""
    _clear(p, k)
    if graphics == 0:
        return
    if reflected:
        graphics = np.int64(REFLECTED[graphics])
    size &= 7
    if size == _WIDTH_2 or size == _WIDTH_4:
        if not skip:
            _put(p, k, _WIDE[1 if size == _WIDTH_2 else 2, graphics], (x + 1) % 160)
        return
    for copy in range(3):
        offset = COPIES[size, copy]
        if offset >= 0 and not (skip and copy == 0):
            _put(p, k, _WIDE[0, graphics], (x + offset) % 160)


@once
def _missile(p: Any, k: int, on: int, hidden: int, size: int, x: int) -> None:
    """Make the mask of a missile; `size` is NUSIZ."""
    _clear(p, k)
    if not on or hidden:
        return
    bits = _U((1 << (1 << (size >> 4 & 3))) - 1)
    for copy in range(3):
        offset = COPIES[size & 7, copy]
        if offset >= 0:
            _put(p, k, bits, (x + offset) % 160)


@once
def _playfield(p: Any, bits: int, mirrored: int) -> None:
    """Make the mask of the playfield: 20 bits four pixels wide each, and once more, or reflected."""
    _clear(p, PLAYFIELD)
    if bits == 0:
        return
    # PF0 and PF2 are shown from their lowest bit on, PF1 from its highest; `_WIDE` shows a byte from its highest on.
    pf0, pf1, pf2 = (bits & 15) << 4, _LEFT_TO_RIGHT[bits >> 4 & 255], bits >> 12
    line = pf0 >> 4 | pf1 << 4 | pf2 << 12  # bit 0 leftmost
    _put(p, PLAYFIELD, _WIDE[2, _LEFT_TO_RIGHT[line & 255]], 0)
    _put(p, PLAYFIELD, _WIDE[2, _LEFT_TO_RIGHT[line >> 8 & 255]], 32)
    _put(p, PLAYFIELD, _WIDE[2, _LEFT_TO_RIGHT[line >> 16]], 64)
    if mirrored:
        line = _LEFT_TO_RIGHT[line & 255] << 12 | _LEFT_TO_RIGHT[line >> 8 & 255] << 4 | _LEFT_TO_RIGHT[line >> 16] >> 4
    _put(p, PLAYFIELD, _WIDE[2, _LEFT_TO_RIGHT[line & 255]], 80)
    _put(p, PLAYFIELD, _WIDE[2, _LEFT_TO_RIGHT[line >> 8 & 255]], 112)
    _put(p, PLAYFIELD, _WIDE[2, _LEFT_TO_RIGHT[line >> 16]], 144)


@once
def refresh(s: Any, p: Any) -> None:
    """Make those masks anew whose registers have changed."""
    stale = p.stale
    if stale & 1 << PLAYER_0:
        graphics = s.old_GRP0 if s.VDELP0 else s.GRP0
        _player(p, PLAYER_0, graphics, s.REFP0, s.NUSIZ0, s.position[PLAYER_0], s.skip_copy[0])
    if stale & 1 << PLAYER_1:
        graphics = s.old_GRP1 if s.VDELP1 else s.GRP1
        _player(p, PLAYER_1, graphics, s.REFP1, s.NUSIZ1, s.position[PLAYER_1], s.skip_copy[1])
    if stale & 1 << MISSILE_0:
        _missile(p, MISSILE_0, s.ENAM0, s.RESMP0, s.NUSIZ0, s.position[MISSILE_0])
    if stale & 1 << MISSILE_1:
        _missile(p, MISSILE_1, s.ENAM1, s.RESMP1, s.NUSIZ1, s.position[MISSILE_1])
    if stale & 1 << BALL:  # its width stands where NUSIZ has that of a missile; it has no copies
        _missile(p, BALL, s.old_ENABL if s.VDELBL else s.ENABL, 0, s.CTRLPF & 0x30, s.position[BALL])
    if stale & 1 << PLAYFIELD:
        _playfield(p, s.PF, s.mirrored)
    if stale & MASKS_STALE:
        p.stale = ROW_STALE


@once
def shown_objects(s: Any) -> int:
    """Count the objects that have a pixel anywhere."""
    return (
        int(s.PF != 0)
        + int((s.old_GRP0 if s.VDELP0 else s.GRP0) != 0)
        + int((s.old_GRP1 if s.VDELP1 else s.GRP1) != 0)
        + int(s.ENAM0 != 0 and not s.RESMP0)
        + int(s.ENAM1 != 0 and not s.RESMP1)
        + int((s.old_ENABL if s.VDELBL else s.ENABL) != 0)
    )
