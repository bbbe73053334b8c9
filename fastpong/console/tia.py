"""The TIA, pixel by pixel: two players, two missiles, a ball and a playfield; their colours and collisions.

The chip has no memory of a picture. It draws the present pixel from the present registers, and the program changes
registers while the beam moves. So `catch_up` draws up to a clock before anything changes, or is read.
"""

from typing import Any

import numpy as np

from fastpong.arrays import U8
from fastpong.console import registers as r
from fastpong.console.registers import BLANK_CLOCKS, CLOCKS, COPIES, END, NO_COPY, REFLECTED, TOP, WIDE, WIDEST
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, NEVER, PLAYER_0, PLAYER_1, PLAYFIELD
from fastpong.kernels.compile.jit import once

COMB = 8
"""Pixels that HMOVE blackens at the begin of a line."""

FARADS = 0.01e-6
"""The capacitor of a paddle."""

FREQUENCY = 1.19e6
"""Cycles of the processor a second, as ALE has it."""

_P0, _P1, _M0, _M1, _BL, _PF = (1 << k for k in (PLAYER_0, PLAYER_1, MISSILE_0, MISSILE_1, BALL, PLAYFIELD))

PAIRS = (
    (MISSILE_0, PLAYER_1), (MISSILE_0, PLAYER_0), (MISSILE_1, PLAYER_0), (MISSILE_1, PLAYER_1),
    (PLAYER_0, PLAYFIELD), (PLAYER_0, BALL), (PLAYER_1, PLAYFIELD), (PLAYER_1, BALL),
    (MISSILE_0, PLAYFIELD), (MISSILE_0, BALL), (MISSILE_1, PLAYFIELD), (MISSILE_1, BALL),
    (BALL, PLAYFIELD), (), (PLAYER_0, PLAYER_1), (MISSILE_0, MISSILE_1),
)  # fmt: skip
"""The two objects that set each bit of ``collisions``: bits 7 and 6 of CXM0P, then of CXM1P, …; one bit has none."""

COLLISIONS = np.array([
    sum(1 << bit for bit, pair in enumerate(PAIRS) if pair and all(objects >> k & 1 for k in pair))
    for objects in range(64)
])  # fmt: skip
"""The bits of ``collisions`` that each set of objects at one pixel sets, int64 (64,)."""

BLOCKS = np.array([1 << k for k in (0, 1, 2, 3, 11, 10, 9, 8, 7, 6, 5, 4, *range(12, 20))])
"""Bit of ``PF`` for each block of four pixels in a half of the screen, int64 (20,): PF1 shows bit 7 first."""


@once
def playfield_at(
    s: Any,  # STATE
    x: int,  # 0 … 159
) -> bool:
    """Return whether the playfield covers x. Its right half repeats the left one, or reflects it."""
    block = x // 4
    if block >= 20:
        block = 39 - block if s.mirrored else block - 20
    return bool(s.PF & BLOCKS[block])


@once
def player_at(
    x: int,  # 0 … 159
    position: int,
    nusiz: int,
    graphics: int,  # 0 … 255, bit 7 leftmost
    skip_copy: int,  # not 0: leave out the first copy
) -> bool:
    """Return whether a player covers x. A wide one begins a pixel later."""
    mode, distance = nusiz & 7, (x - position) % 160
    if mode == WIDE or mode == WIDEST:
        shift = 1 if mode == WIDE else 2
        inside = 1 <= distance <= 8 << shift and not skip_copy
        return inside and graphics & 0x80 >> (distance - 1 >> shift) != 0
    for k in range(skip_copy, 3):
        copy = COPIES[mode, k]
        if copy != NO_COPY and copy <= distance < copy + 8:
            return bool(graphics & 0x80 >> distance - copy)
    return False


@once
def missile_at(
    x: int,  # 0 … 159
    position: int,
    nusiz: int,
) -> bool:
    """Return whether a missile covers x. It has as many copies as its player."""
    distance, width = (x - position) % 160, 1 << (nusiz >> 4 & 3)
    for k in range(3):
        copy = COPIES[nusiz & 7, k]
        if copy != NO_COPY and copy <= distance < copy + width:
            return True
    return False


@once
def objects_at(
    s: Any,  # STATE
    x: int,  # 0 … 159
) -> int:
    """Return the set of objects that cover x: bit `PLAYER_0` … bit `PLAYFIELD`."""
    graphics_0, graphics_1, ball = r.delayed(s)
    if s.REFP0:
        graphics_0 = REFLECTED[graphics_0]
    if s.REFP1:
        graphics_1 = REFLECTED[graphics_1]
    objects = 0
    if graphics_0 and player_at(x, s.position[PLAYER_0], s.NUSIZ0, graphics_0, s.skip_copy[PLAYER_0]):
        objects |= _P0
    if graphics_1 and player_at(x, s.position[PLAYER_1], s.NUSIZ1, graphics_1, s.skip_copy[PLAYER_1]):
        objects |= _P1
    if s.ENAM0 and not s.RESMP0 and missile_at(x, s.position[MISSILE_0], s.NUSIZ0):
        objects |= _M0
    if s.ENAM1 and not s.RESMP1 and missile_at(x, s.position[MISSILE_1], s.NUSIZ1):
        objects |= _M1
    if ball and (x - s.position[BALL]) % 160 < 1 << (s.CTRLPF >> 4 & 3):
        objects |= _BL
    if playfield_at(s, x):
        objects |= _PF
    return objects


@once
def colour_of(
    s: Any,  # STATE
    objects: int,  # that cover the pixel, as of `objects_at`
    x: int,  # 0 … 159
) -> int:
    """Return the colour of the object in front. "Score" gives each half of the playfield the colour of a player."""
    score, in_front = s.CTRLPF & 2, s.CTRLPF & 4
    if in_front and objects & (_PF | _BL):
        return int(s.COLUPF)
    if objects & (_P0 | _M0):
        return int(s.COLUP0)
    if objects & _PF and score and x < 80:
        return int(s.COLUP0)  # before player 1, as is player 0
    if objects & (_P1 | _M1):
        return int(s.COLUP1)
    if objects & _PF and score:
        return int(s.COLUP1)
    if objects & (_PF | _BL):
        return int(s.COLUPF)
    return int(s.COLUBK)


@once
def pixel(
    s: Any,  # STATE
    x: int,  # 0 … 159
) -> int:
    """Return the colour at x with the present registers, and set collision latches."""
    if s.VBLANK & 2:
        return 0
    objects = objects_at(s, x)
    s.collisions |= COLLISIONS[objects]
    return colour_of(s, objects, x)


@once
def catch_up(
    s: Any,  # STATE
    screen: U8,  # (210, 160) out: indices of ALE's NTSC palette
    clock: int,  # of this frame
) -> None:
    """Draw up to a clock. Nothing is drawn, and nothing collides, outside the lines that are shown."""
    end = min(clock, s.frame_start + END)
    while s.beam < end:
        y, in_line = divmod(s.beam - s.frame_start, CLOCKS)
        if in_line >= BLANK_CLOCKS:
            x = in_line - BLANK_CLOCKS
            colour = pixel(s, x)
            if s.comb and x < COMB:
                colour = 0
            if x == COMB - 1:
                s.comb = 0
            screen[y - TOP, x] = colour
        if in_line == CLOCKS - 1:
            s.mirrored, s.skip_copy[PLAYER_0], s.skip_copy[PLAYER_1] = s.CTRLPF & 1, 0, 0
        s.beam += 1


@once
def write_tia(
    s: Any,  # STATE
    screen: U8,  # (210, 160)
    register: int,  # address, 0 … 63
    value: int,  # 0 … 255
) -> None:
    """Draw up to the clock at which the write begins to show, and write."""
    catch_up(s, screen, s.cycle * 3 + r.delay(s, register))
    r.store(s, register, value)


@once
def read_tia(
    s: Any,  # STATE
    screen: U8,  # (210, 160)
    register: int,  # address, 0 … 15
    last: int,  # the byte that was last on the data bus
) -> int:
    """Draw up to the present clock, and return what the processor reads from a register."""
    catch_up(s, screen, s.cycle * 3)
    return register_value(s, register, last)


@once
def register_value(
    s: Any,  # STATE
    register: int,  # address, 0 … 15
    last: int,  # the byte that was last on the data bus
) -> int:
    """Return what the processor reads from a register, once the picture is drawn up to the present clock.

    The chip drives two pins of the data bus at most. The others keep what was on them: ALE keeps the lower six.
    """
    undriven = last & 0x3F
    if register <= r.CXPPMM:
        two_bits = s.collisions >> 2 * register & 3
        return int((two_bits & 1) << 7 | (two_bits & 2) << 5 | undriven)
    if register <= r.INPT5:
        charged = s.cycle > charged_after(s, register - r.INPT0) if register <= r.INPT1 else True
        return 0x80 | undriven if charged else undriven
    return undriven


@once
def charging_cycles(
    ohms: int,  # of a paddle
) -> int:
    """Return after how many cycles a paddle's capacitor is full. Through a larger resistance it takes longer."""
    return int((1.6 * ohms * FARADS) * FREQUENCY)  # float64, rounded in this order


@once
def charged_after(
    s: Any,  # STATE
    paddle: int,  # 0 or 1: at INPT0 or INPT1
) -> int:
    """Return the cycle after which a paddle's capacitor is full: `NEVER`, or −`NEVER` if no paddle is plugged in.

    One that was full before the frame began counts as empty: ALE compares unsigned numbers, it seems.
    """
    ohms = s.resistance[paddle]
    if ohms == 0:
        return -NEVER
    full = s.dump_cycle + charging_cycles(ohms)
    return int(full) if full >= 0 and not s.dumped else NEVER
