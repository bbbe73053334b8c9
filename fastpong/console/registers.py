"""The registers of the TIA, the chip that makes picture and sound: their addresses, and what a write to each changes.

A write is two steps: the picture is drawn up to the clock at which the write begins to show, which is `delay` clocks
after the present one, and then the state is changed by `store`. Both cores, the plain and the fast one, draw in their
own way and share this file. The registers of sound are left out.

Addresses and bits are those of the *Stella Programmer's Guide* (Wright, 1979); how the counters of the objects start,
move and lag is explained by Andrew Towers (*Atari 2600 TIA hardware notes*, 2003). A delay or a position that they
leave open was measured: it is the one with which screens, collisions and RAM are those of ale-py.
"""

from typing import Any

import numpy as np

from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, NEVER, PLAYER_0, PLAYER_1
from fastpong.kernels.compile.jit import once
from fastpong.pong import SCREEN

(
    VSYNC, VBLANK, WSYNC, RSYNC, NUSIZ0, NUSIZ1, COLUP0, COLUP1, COLUPF, COLUBK, CTRLPF, REFP0, REFP1, PF0, PF1, PF2,
    RESP0, RESP1, RESM0, RESM1, RESBL, AUDC0, AUDC1, AUDF0, AUDF1, AUDV0, AUDV1, GRP0, GRP1, ENAM0, ENAM1, ENABL,
    HMP0, HMP1, HMM0, HMM1, HMBL, VDELP0, VDELP1, VDELBL, RESMP0, RESMP1, HMOVE, HMCLR, CXCLR,
) = range(0x2D)  # fmt: skip
"""Addresses of the registers that are written, 0x00 … 0x2C."""

(
    CXM0P, CXM1P, CXP0FB, CXP1FB, CXM0FB, CXM1FB, CXBLPF, CXPPMM, INPT0, INPT1, INPT2, INPT3, INPT4, INPT5,
) = range(0x0E)  # fmt: skip
"""Addresses of the registers that are read: collision latches, paddles, joystick buttons."""

CLOCKS = 228
"""Clocks of a line; three of them are a cycle of the processor."""

BLANK_CLOCKS = 68
"""Clocks at the begin of a line in which the beam returns and nothing is drawn; the other 160 are the pixels."""

LINE_CYCLES = CLOCKS // 3
TOP = 34
"""The first line of a frame that is shown."""

START, END = CLOCKS * TOP, CLOCKS * (TOP + SCREEN[0])
"""Clocks, from the begin of a frame's first line on, at which the shown lines begin and end."""

MOST_LINES = 290
"""Lines after which a frame ends even if the game does not synchronise the television."""

WIDE, WIDEST = 5, 7
"""Values of the lower three bits of NUSIZ that show a player two and four times as wide."""

NO_COPY = -1
COPIES = np.array([
    [0, NO_COPY, NO_COPY],
    [0, 16, NO_COPY],
    [0, 32, NO_COPY],
    [0, 16, 32],
    [0, 64, NO_COPY],
    [0, NO_COPY, NO_COPY],
    [0, 32, 64],
    [0, NO_COPY, NO_COPY],
])  # fmt: skip
"""Pixels from an object's position to each of its copies, int64 (8, 3), by the lower three bits of NUSIZ."""

REFLECTED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)])
"""Each byte with its bits in the opposite order, int64 (256,)."""

NOTHING, BEFORE_COPY, ON_COPY = range(3)


@once
def met_by_reset(
    nusiz: int,  # 0 … 255
    old: int,  # position before, 0 … 159
    new: int,  # position after, 0 … 159
) -> int:
    """Return what the beam meets when RESP moves a player: a copy, the four pixels before one, or nothing.

    RESP restarts the player's counter, which shows its first copy only when it comes round again: that copy is left
    out in this line. But what has begun goes on: a copy on the screen is drawn to its end at its old place, and one
    that was about to begin, begins.
    """
    mode = nusiz & 7
    width = 16 if mode == WIDE else 32 if mode == WIDEST else 8
    distance = (new - old) % 160
    for k in range(3):
        copy = COPIES[mode, k]
        if copy != NO_COPY and copy <= distance < copy + 4:
            return BEFORE_COPY
        if copy != NO_COPY and copy + 4 <= distance < copy + 4 + width:
            return ON_COPY
    return NOTHING


@once
def clock_in_line(
    s: Any,  # STATE
) -> int:
    """Return the clock of its line, 0 … 227, at which the present cycle begins."""
    return int((s.cycle * 3 - s.frame_start) % CLOCKS)


@once
def rest_of_line(
    s: Any,  # STATE
) -> int:
    """Return the cycles for which WSYNC halts the processor: until the line ends, or none if it just begins."""
    return (CLOCKS - clock_in_line(s)) // 3 % LINE_CYCLES


@once
def delayed(
    s: Any,  # STATE
) -> tuple[int, int, int]:
    """Return GRP0, GRP1 and ENABL as they are shown. A vertical delay shows what one was before its last hand-over."""
    return (
        int(s.old_GRP0 if s.VDELP0 else s.GRP0),
        int(s.old_GRP1 if s.VDELP1 else s.GRP1),
        int(s.old_ENABL if s.VDELBL else s.ENABL),
    )


@once
def position_after_reset(
    s: Any,  # STATE
    lag: int,  # pixels from the write to the object; a player has one more than a missile and the ball
) -> int:
    """Return where RESP, RESM or RESBL at the present cycle put an object."""
    x = clock_in_line(s) - BLANK_CLOCKS
    return lag - 2 if x < 0 else (x + lag) % 160


@once
def delay(
    s: Any,  # STATE
    register: int,  # address, 0 … 63
) -> int:
    """Return the clocks after the present one from which on a write to a register shows."""
    if register == VBLANK or register == REFP0 or register == REFP1 or register == GRP0 or register == GRP1:
        return 1
    if register == NUSIZ0 or register == NUSIZ1 or register == RESM0 or register == RESM1:
        return 8
    if PF0 <= register <= PF2:  # the playfield takes over new bits every fourth pixel
        quarter = clock_in_line(s) // 3 & 3
        return 4 if quarter == 0 else 5 if quarter == 1 else 2 if quarter == 2 else 3
    if register == RESP0 or register == RESP1:
        player, nusiz = (PLAYER_0, s.NUSIZ0) if register == RESP0 else (PLAYER_1, s.NUSIZ1)
        met = met_by_reset(nusiz, s.position[player], position_after_reset(s, 5))
        return 11 if met == ON_COPY else 0
    return 0


@once
def store(
    s: Any,  # STATE
    register: int,  # address, 0 … 63
    value: int,  # 0 … 255
) -> None:
    """Write a value into a register at cycle ``s.cycle``; the picture has been drawn up to there.

    HMOVE is meant to be written at the begin of a line. At any other cycle than 0 … 3 and 75 of a line it moves
    objects by other amounts in the real chip; here it moves nothing. No cartridge that is run here does so in play.
    """
    clock = s.cycle * 3
    in_line = clock_in_line(s)
    if (clock - s.frame_start) // CLOCKS > MOST_LINES:
        s.frame_over = 1
    if register == VSYNC:
        s.VSYNC = value
        if value & 2:
            s.vsync_end = clock + CLOCKS
        elif clock >= s.vsync_end:  # off again after at least a line: the television begins a new picture
            s.vsync_end, s.frame_over = NEVER, 1
    elif register == VBLANK:
        if value & 0x80:
            s.dumped = 1
        elif s.VBLANK & 0x80:
            s.dumped, s.dump_cycle = 0, s.cycle
        s.VBLANK = value
    elif register == WSYNC:  # the processor halts until the line ends
        s.cycle += rest_of_line(s)
    elif register == NUSIZ0:
        s.NUSIZ0, s.skip_copy[PLAYER_0] = value, 0
    elif register == NUSIZ1:
        s.NUSIZ1, s.skip_copy[PLAYER_1] = value, 0
    elif register == COLUP0:
        s.COLUP0 = value & 0xFE
    elif register == COLUP1:
        s.COLUP1 = value & 0xFE
    elif register == COLUPF:
        s.COLUPF = value & 0xFE
    elif register == COLUBK:
        s.COLUBK = value & 0xFE
    elif register == CTRLPF:
        s.CTRLPF = value
        if in_line < BLANK_CLOCKS + 79:
            s.mirrored = value & 1
    elif register == REFP0:
        s.REFP0 = value & 8
    elif register == REFP1:
        s.REFP1 = value & 8
    elif register == PF0:
        s.PF = s.PF & 0xFFFF0 | value >> 4
    elif register == PF1:
        s.PF = s.PF & 0xFF00F | value << 4
    elif register == PF2:
        s.PF = s.PF & 0x00FFF | value << 12
    elif register == RESP0:
        new = position_after_reset(s, 5)
        met = met_by_reset(s.NUSIZ0, s.position[PLAYER_0], new)
        s.position[PLAYER_0], s.skip_copy[PLAYER_0] = new, 0 if met == BEFORE_COPY else 1
    elif register == RESP1:
        new = position_after_reset(s, 5)
        met = met_by_reset(s.NUSIZ1, s.position[PLAYER_1], new)
        s.position[PLAYER_1], s.skip_copy[PLAYER_1] = new, 0 if met == BEFORE_COPY else 1
    elif register == RESM0 or register == RESM1 or register == RESBL:
        s.position[MISSILE_0 + register - RESM0] = position_after_reset(s, 4)
    elif register == GRP0:
        s.GRP0, s.old_GRP1 = value, s.GRP1
    elif register == GRP1:
        s.GRP1, s.old_GRP0, s.old_ENABL = value, s.GRP0, s.ENABL
    elif register == ENAM0:
        s.ENAM0 = value & 2
    elif register == ENAM1:
        s.ENAM1 = value & 2
    elif register == ENABL:
        s.ENABL = value & 2
    elif HMP0 <= register <= HMBL:
        s.HM[register - HMP0] = value >> 4
    elif register == VDELP0:
        s.VDELP0 = value & 1
    elif register == VDELP1:
        s.VDELP1 = value & 1
    elif register == VDELBL:
        s.VDELBL = value & 1
    elif register == RESMP0:
        if s.RESMP0 and not value & 2:
            s.position[MISSILE_0] = (s.position[PLAYER_0] + _middle(s.NUSIZ0)) % 160
        s.RESMP0 = value & 2
    elif register == RESMP1:
        if s.RESMP1 and not value & 2:
            s.position[MISSILE_1] = (s.position[PLAYER_1] + _middle(s.NUSIZ1)) % 160
        s.RESMP1 = value & 2
    elif register == HMOVE:
        _move(s, in_line // 3)
    elif register == HMCLR:
        for k in range(BALL + 1):
            s.HM[k] = 0
    elif register == CXCLR:
        s.collisions = 0


@once
def _middle(nusiz: int) -> int:
    """Return the pixels from a player's position to its middle, where RESMP puts the missile."""
    mode = nusiz & 7
    return 8 if mode == WIDE else 16 if mode == WIDEST else 4


@once
def _move(
    s: Any,  # STATE
    cycle: int,  # of the line, 0 … 75
) -> None:
    """Move all objects by their motions, 0 … 7 pixels to the left or 1 … 8 to the right.

    HMOVE makes the blank begin of the line eight clocks longer, hence the comb of black pixels.
    """
    if cycle <= 20 or cycle == LINE_CYCLES - 1:
        s.comb = 1
    if cycle <= 3 or cycle == LINE_CYCLES - 1:
        for k in range(BALL + 1):
            motion = s.HM[k]
            s.position[k] = (s.position[k] + (-motion if motion < 8 else 16 - motion)) % 160
    s.skip_copy[PLAYER_0] = s.skip_copy[PLAYER_1] = 0


@once
def begin_frame(
    s: Any,  # STATE
) -> None:
    """Count cycles and clocks from here on; the beam stays where it is in its line.

    Times that lie back further than `NEVER` stay there, so that a row stays in the ranges of `state.FIELDS`.
    """
    cycles = s.cycle
    s.dump_cycle = max(s.dump_cycle - cycles, -NEVER)
    s.timer_set = max(s.timer_set - cycles, -NEVER)
    s.timer_read = max(s.timer_read - cycles, -NEVER)
    if s.vsync_end != NEVER:
        s.vsync_end = max(s.vsync_end - cycles * 3, -NEVER)
    s.frame_start = -((cycles * 3 - s.frame_start) % CLOCKS)
    s.beam = s.frame_start + START
    s.cycle = 0
    s.frame_over = 0
