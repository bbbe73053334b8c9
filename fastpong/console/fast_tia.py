"""The TIA of the fast core: whole regions of the picture at once. Twin: `fastpong.console.tia`, pixel by pixel.

Between two writes the registers hold still. So what the beam passes in that time, the rest of a line, some whole lines
and the begin of another, shows one line over and over: it is checked once for collisions, and drawn once, if the frame
is drawn at all.
"""

from typing import Any

import numpy as np
from numpy import uint64

from fastpong.arrays import I64
from fastpong.console import registers as r
from fastpong.console.drawing import blacken, draw, is_drawn
from fastpong.console.masks import MASKS_STALE, OBJECTS, ROW_STALE, bits_below, may_overlap, refresh
from fastpong.console.registers import BLANK_CLOCKS, CLOCKS, END, MOST_LINES, START, TOP, delay, store
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.console.tia import COMB, PAIRS, register_value
from fastpong.kernels.compile.jit import once

_LONGEST_DELAY = 11  # of `delay`, in clocks

_COLLISIONS = np.array([(bit, *pair) for bit, pair in enumerate(PAIRS) if pair])
"""Each bit of ``collisions`` with its two objects, int64 (15, 3)."""


def _stale() -> I64:
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
"""What is to be made anew after a write to each register, int64 (64,): bits as in ``stale`` of `PICTURE`."""


@once
def begin_picture(
    p: Any,  # PICTURE
    drawn: int,  # NOTHING, COLOURS or BITS, see `drawing`
) -> None:
    """Begin the picture of a frame, after `begin_frame`."""
    p.stale, p.drawn = MASKS_STALE | ROW_STALE, drawn


@once
def _passed(x: int, lines: int, end: int, word: int) -> uint64:
    """Return one word of the mask of what the beam passes from x up to `end`, so many lines further down."""
    if lines == 0:
        return bits_below(end, word) & ~bits_below(x, word)
    if lines == 1:
        return bits_below(end, word) | ~bits_below(x, word)
    return ~uint64(0)


@once
def _latch(
    s: Any,  # STATE
    p: Any,  # PICTURE
    inside_0: uint64,  # the three words of a mask
    inside_1: uint64,
    inside_2: uint64,
) -> None:
    """Set the collision latches of objects that overlap inside a mask."""
    one_0 = one_1 = one_2 = two_0 = two_1 = two_2 = uint64(0)  # where one object is at least, and two
    for k in range(OBJECTS):
        mask_0, mask_1, mask_2 = p.mask[k, 0], p.mask[k, 1], p.mask[k, 2]
        two_0, two_1, two_2 = two_0 | one_0 & mask_0, two_1 | one_1 & mask_1, two_2 | one_2 & mask_2
        one_0, one_1, one_2 = one_0 | mask_0, one_1 | mask_1, one_2 | mask_2
    if two_0 & inside_0 | two_1 & inside_1 | two_2 & inside_2 == uint64(0):
        return
    for k in range(len(_COLLISIONS)):
        bit, a, b = _COLLISIONS[k, 0], _COLLISIONS[k, 1], _COLLISIONS[k, 2]
        both_0, both_1, both_2 = p.mask[a, 0] & p.mask[b, 0], p.mask[a, 1] & p.mask[b, 1], p.mask[a, 2] & p.mask[b, 2]
        if both_0 & inside_0 | both_1 & inside_1 | both_2 & inside_2 != uint64(0):
            s.collisions |= 1 << bit


@once
def _region(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    first: int,
    x: int,
    last: int,
    end: int,
) -> None:
    """Go from (line first, x) up to (line last, end), lines of the screen, with the present registers."""
    if first == last and x >= end:
        return
    drawn = is_drawn(p, first, last)
    if not s.VBLANK & 2:
        collides = may_overlap(s)
        if not collides and not drawn:
            return
        if p.stale & MASKS_STALE:
            refresh(s, p)
        if collides:
            lines = last - first
            _latch(s, p, _passed(x, lines, end, 0), _passed(x, lines, end, 1), _passed(x, lines, end, 2))
    if drawn:
        draw(s, p, screen, first, x, last, end)


@once
def _line_is_special(
    s: Any,  # STATE
) -> bool:
    """Return whether something will change by itself: when this line ends, or after its first eight pixels."""
    return bool(s.comb or s.skip_copy[PLAYER_0] or s.skip_copy[PLAYER_1] or s.mirrored != s.CTRLPF & 1)


@once
def catch_up(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    clock: int,  # of this frame
) -> None:
    """Bring picture and collisions up to a clock. Nothing is drawn, and nothing collides, outside the shown lines."""
    start = s.frame_start
    if clock < start + START or s.beam >= start + END or s.beam >= clock:
        return
    if not _line_is_special(s) and not p.drawn and not may_overlap(s):
        s.beam = min(clock, start + END)
        return
    begin, end = s.beam - start, min(clock - start, END)
    s.beam = start + end
    y, x = begin // CLOCKS - TOP, max(begin % CLOCKS - BLANK_CLOCKS, 0)
    last, x_end = end // CLOCKS - TOP, max(end % CLOCKS - BLANK_CLOCKS, 0)
    while _line_is_special(s):
        x_here = x_end if y == last else 160
        _region(s, p, screen, y, x, y, x_here)
        if s.comb and x < COMB and x_here > x:
            if p.drawn:
                blacken(p, screen, y, x, min(x_here, COMB))
            if x_here >= COMB:
                s.comb = 0
        if y == last:
            return
        s.mirrored, s.skip_copy[PLAYER_0], s.skip_copy[PLAYER_1] = s.CTRLPF & 1, 0, 0
        p.stale |= 1 << PLAYFIELD | 1 << PLAYER_0 | 1 << PLAYER_1
        y, x = y + 1, 0
    _region(s, p, screen, y, x, last, x_end)


@once
def changes_nothing(
    s: Any,  # STATE
    register: int,  # address, 0 … 63
    value: int,  # 0 … 255
) -> bool:
    """Return whether a write leaves every register as it is; most do."""
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
        same = s.NUSIZ0 == value and not s.skip_copy[PLAYER_0]
    elif register == r.NUSIZ1:
        same = s.NUSIZ1 == value and not s.skip_copy[PLAYER_1]
    elif register == r.CTRLPF:
        same = s.CTRLPF == value and s.mirrored == value & 1
    elif register == r.RESMP0:
        same = s.RESMP0 == value & 2
    elif register == r.RESMP1:
        same = s.RESMP1 == value & 2
    return bool(same)


@once
def is_hidden(
    s: Any,  # STATE
) -> bool:
    """Return whether the beam is where nothing is shown, so that a write needs no picture."""
    clock = s.cycle * 3 - s.frame_start
    return bool(clock + _LONGEST_DELAY < START or (s.beam >= s.frame_start + END and clock < CLOCKS * MOST_LINES))


@once
def write(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    register: int,  # address, 0 … 63
    value: int,  # 0 … 255
) -> None:
    """Bring the picture up to the clock at which the write begins to show, and write."""
    clock = s.cycle * 3
    if clock - s.frame_start < CLOCKS * MOST_LINES and changes_nothing(s, register, value):
        return  # after so many lines a write ends the frame, whatever it is
    catch_up(s, p, screen, clock + delay(s, register))
    store(s, register, value)
    p.stale |= STALE[register]


@once
def read(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    register: int,  # address, 0 … 15
    last: int,  # the byte that was last on the data bus
) -> int:
    """Bring the picture up to the present clock, and return what the processor reads from a register."""
    catch_up(s, p, screen, s.cycle * 3)
    return register_value(s, register, last)
