"""The TIA of the fast core: whole regions of the picture at once. Twin: `fastpong.console.tia`, pixel by pixel.

Between two writes the registers hold still. So what the beam passes in that time, the rest of a line, some whole lines
and the begin of another, shows one line over and over: it is checked once for collisions, and drawn once, if the frame
is drawn at all.
"""

from typing import Any

import numpy as np

from fastpong.console import registers as r
from fastpong.console.drawing import blacken, draw
from fastpong.console.masks import ALL_STALE, MASKS_STALE, OBJECTS, ROW_STALE, refresh, shown_objects
from fastpong.console.registers import BLANK_CLOCKS, CLOCKS, END, MOST_LINES, START, TOP, delay, store
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.console.tia import COMB, register_value
from fastpong.kernels.compile.jit import once

_U = np.uint64
_ALL_BITS, _LAST_WORD = _U(0xFFFFFFFFFFFFFFFF), _U(0xFFFFFFFF)
_WIDTH = 160
_LONGEST_DELAY = 11

_PAIRS = np.array([
    [MISSILE_0, PLAYER_1], [MISSILE_0, PLAYER_0], [MISSILE_1, PLAYER_0], [MISSILE_1, PLAYER_1], [PLAYER_0, PLAYFIELD],
    [PLAYER_0, BALL], [PLAYER_1, PLAYFIELD], [PLAYER_1, BALL], [MISSILE_0, PLAYFIELD], [MISSILE_0, BALL],
    [MISSILE_1, PLAYFIELD], [MISSILE_1, BALL], [BALL, PLAYFIELD], [-1, -1], [PLAYER_0, PLAYER_1],
    [MISSILE_0, MISSILE_1],
])  # fmt: skip
"""The two objects of each bit of ``collisions``; bit 13 has none."""


def _stale() -> Any:
    """Return what is to be made anew after a write to each register: int64 (64,), as ``stale`` of `PICTURE`."""
    objects = {
        r.NUSIZ0: (PLAYER_0, MISSILE_0), r.NUSIZ1: (PLAYER_1, MISSILE_1), r.CTRLPF: (BALL, PLAYFIELD),
        r.REFP0: (PLAYER_0,), r.REFP1: (PLAYER_1,), r.PF0: (PLAYFIELD,), r.PF1: (PLAYFIELD,), r.PF2: (PLAYFIELD,),
        r.RESP0: (PLAYER_0,), r.RESP1: (PLAYER_1,), r.RESM0: (MISSILE_0,), r.RESM1: (MISSILE_1,), r.RESBL: (BALL,),
        r.GRP0: (PLAYER_0, PLAYER_1), r.GRP1: (PLAYER_0, PLAYER_1, BALL), r.ENAM0: (MISSILE_0,),
        r.ENAM1: (MISSILE_1,), r.ENABL: (BALL,), r.VDELP0: (PLAYER_0,), r.VDELP1: (PLAYER_1,), r.VDELBL: (BALL,),
        r.RESMP0: (MISSILE_0,), r.RESMP1: (MISSILE_1,), r.HMOVE: (PLAYER_0, PLAYER_1, MISSILE_0, MISSILE_1, BALL),
    }  # fmt: skip
    stale = np.zeros(64, np.int64)
    for register, some in objects.items():
        stale[register] = sum(1 << k for k in some)
    stale[r.COLUP0 : r.COLUBK + 1] = ROW_STALE
    return stale


STALE = _stale()


@once
def _bits_below(x: int, word: int) -> int:
    """Return one word of the mask of pixels 0 … x − 1, uint64."""
    x = min(max(x - 64 * word, 0), 64)
    return _ALL_BITS if x == 64 else (_U(1) << _U(x)) - _U(1)


@once
def _latch(s: Any, p: Any, inside_0: int, inside_1: int, inside_2: int) -> None:
    """Set the collision latches of objects that overlap inside a mask of pixels (uint64 each)."""
    any_0 = any_1 = any_2 = two_0 = two_1 = two_2 = _U(0)
    for k in range(OBJECTS):
        mask_0, mask_1, mask_2 = p.mask[k, 0], p.mask[k, 1], p.mask[k, 2]
        two_0 |= any_0 & mask_0
        two_1 |= any_1 & mask_1
        two_2 |= any_2 & mask_2
        any_0 |= mask_0
        any_1 |= mask_1
        any_2 |= mask_2
    if two_0 & inside_0 | two_1 & inside_1 | two_2 & inside_2 == _U(0):
        return
    for bit in range(len(_PAIRS)):
        a, b = _PAIRS[bit, 0], _PAIRS[bit, 1]
        if a < 0:
            continue
        both = p.mask[a, 0] & p.mask[b, 0] & inside_0
        both |= p.mask[a, 1] & p.mask[b, 1] & inside_1
        both |= p.mask[a, 2] & p.mask[b, 2] & inside_2
        if both != _U(0):
            s.collisions |= 1 << bit


@once
def _region(s: Any, p: Any, screen: Any, first: int, x: int, last: int, end: int) -> None:
    """Go from (line first, x) up to (line last, end), lines of the screen, with the present registers."""
    if first == last and x >= end:
        return
    if not s.VBLANK & 2:
        objects = shown_objects(s)
        if objects < 2 and not p.drawn:
            return  # nothing can overlap
        if p.stale & MASKS_STALE:
            refresh(s, p)
        if objects >= 2:
            if first == last:
                _latch(
                    s, p, _bits_below(end, 0) & ~_bits_below(x, 0), _bits_below(end, 1) & ~_bits_below(x, 1),
                    _bits_below(end, 2) & ~_bits_below(x, 2),
                )  # fmt: skip
            elif last == first + 1 and end < x:  # the end of a line, and the begin of the next one
                _latch(
                    s, p, _bits_below(end, 0) | ~_bits_below(x, 0), _bits_below(end, 1) | ~_bits_below(x, 1),
                    _bits_below(end, 2) | ~_bits_below(x, 2) & _LAST_WORD,
                )  # fmt: skip
            else:
                _latch(s, p, _ALL_BITS, _ALL_BITS, _LAST_WORD)
    if p.drawn:
        draw(s, p, screen, first, x, last, end)


@once
def catch_up(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    clock: int,  # as cycles count: 3 s.cycle is the present one
) -> None:
    """Bring the picture up to a clock of this frame."""
    start = s.frame_start
    if clock < start + START or s.beam >= start + END or s.beam >= clock:
        return
    if not _line_is_special(s) and not p.drawn and shown_objects(s) < 2:
        s.beam = min(clock, start + END)
        return
    begin, end = s.beam - start, min(clock - start, END)
    s.beam = start + end
    first, x = begin // CLOCKS - TOP, max(begin % CLOCKS - BLANK_CLOCKS, 0)
    last, x_end = end // CLOCKS - TOP, max(end % CLOCKS - BLANK_CLOCKS, 0)
    while _line_is_special(s):
        x_here = x_end if first == last else _WIDTH
        _region(s, p, screen, first, x, first, x_here)
        if s.comb and x < COMB and x_here > x:
            if p.drawn:
                blacken(p, screen, first, x, min(x_here, COMB))
            if x_here >= COMB:
                s.comb = 0
        if first == last:
            return
        s.mirrored, s.skip_copy[0], s.skip_copy[1] = s.CTRLPF & 1, 0, 0
        p.stale |= 1 << PLAYFIELD | 1 << PLAYER_0 | 1 << PLAYER_1
        first, x = first + 1, 0
    _region(s, p, screen, first, x, last, x_end)


@once
def _line_is_special(s: Any) -> bool:
    """Whether something will change by itself: when this line ends, or after its first eight pixels."""
    return s.comb or s.skip_copy[0] or s.skip_copy[1] or s.mirrored != s.CTRLPF & 1


@once
def changes_nothing(s: Any, register: int, value: int) -> bool:
    """Whether a write leaves every register as it is; most do."""
    same = False
    if register == r.PF0:
        same = s.PF & 15 == value >> 4
    elif register == r.PF1:
        same = s.PF >> 4 & 255 == value
    elif register == r.PF2:
        same = s.PF >> 12 == value
    elif register == r.GRP0:
        same = s.GRP0 == value and s.old_GRP1 == s.GRP1
    elif register == r.GRP1:
        same = s.GRP1 == value and s.old_GRP0 == s.GRP0 and s.old_ENABL == s.ENABL
    elif register == r.ENAM0:
        same = s.ENAM0 == value & 2
    elif register == r.ENAM1:
        same = s.ENAM1 == value & 2
    elif register == r.ENABL:
        same = s.ENABL == value & 2
    elif register == r.COLUP0:
        same = s.COLUP0 == value & 0xFE
    elif register == r.COLUP1:
        same = s.COLUP1 == value & 0xFE
    elif register == r.COLUPF:
        same = s.COLUPF == value & 0xFE
    elif register == r.COLUBK:
        same = s.COLUBK == value & 0xFE
    elif register == r.NUSIZ0:
        same = s.NUSIZ0 == value and not s.skip_copy[0]
    elif register == r.NUSIZ1:
        same = s.NUSIZ1 == value and not s.skip_copy[1]
    elif register == r.CTRLPF:
        same = s.CTRLPF == value and s.mirrored == value & 1
    elif register == r.RESMP0:
        same = s.RESMP0 == value & 2
    elif register == r.RESMP1:
        same = s.RESMP1 == value & 2
    return same


@once
def is_hidden(s: Any) -> bool:
    """Whether the beam is where nothing is shown, so that a write needs no picture."""
    clock = s.cycle * 3 - s.frame_start
    return clock + _LONGEST_DELAY < START or (s.beam >= s.frame_start + END and clock < CLOCKS * MOST_LINES)


@once
def write(s: Any, p: Any, screen: Any, register: int, value: int) -> None:
    """Write to a register of the TIA at cycle ``s.cycle``; arguments as for `catch_up` and `store`."""
    clock = s.cycle * 3
    if clock - s.frame_start < CLOCKS * MOST_LINES and changes_nothing(s, register, value):
        return
    catch_up(s, p, screen, clock + delay(s, register))
    store(s, register, value)
    p.stale |= STALE[register]


@once
def read(s: Any, p: Any, screen: Any, register: int, bus: int) -> int:
    """Read a register of the TIA, 0 … 15, with this byte on the bus."""
    catch_up(s, p, screen, s.cycle * 3)
    return register_value(s, register, bus)


@once
def begin_picture(s: Any, p: Any, drawn: int) -> None:
    """Begin the picture of a frame, after `begin_frame`."""
    p.stale, p.drawn = ALL_STALE, drawn
