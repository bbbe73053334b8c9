"""The loop of Pong that draws the court, F5E0 … F63D, without its instructions.

It has 91 passes of two lines each, and takes four fifths of a frame. A pass sets which objects are on, and the
playfield; an object is on where ``(X − y) & mask`` is 0, with X = 26, 28, … DC (hexadecimal) counting the lines. In all
but a dozen passes nothing changes. `draw_court` finds these with formulas, visits them alone, and lets the TIA pass
over the rest at once.

A write shows at a clock that depends on the instructions before it: a player that is on saves the pass a cycle, since a
branch is not taken, and a paddle whose capacitor was still charging costs the next pass two.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from fastpong.console import cartridge
from fastpong.console import registers as r
from fastpong.console.fast_tia import STALE, catch_up, write
from fastpong.console.registers import CLOCKS
from fastpong.console.tia import charging_cycles
from fastpong.kernels.compile.jit import once
from fastpong.kernels.compile.simd import vector_code

ROM = cartridge.read()
"""Pong, uint8 (2048,). It is compiled into the functions that read it."""

AT, EXIT = 0xF5E0, 0xF63E

PASSES = 91
_X_FIRST, _X_END = 0x26, 0xDC
_STACK = 0x1D  # ENAM0's address: enable bits are pushed into the TIA, as the flag Z
_BEGIN = 114  # clock of its line at which the loop begins
_BALL_MASK = 0xFC
_PAGE_END = 0xFF - 0x1B  # where a row of the playfield's graphics may begin, so that no read of it crosses a page

# Where the program keeps what it draws, as indices of ``ram``.
_PADDLE = 0x80 & 0x7F  # which paddle is read: INPT0 or INPT1
_PADDLE_X = 0x84 & 0x7F  # out: the last X at which it was not charged
_PLAYFIELD = 0x9B & 0x7F  # pointers to the rows of PF0, PF1, PF2
_MASKS = 0xA5 & 0x7F  # of player 0, player 1, missile 0, missile 1
_TOPS = 0xB2 & 0x7F  # y of player 0, player 1, missile 0, missile 1, ball

_U = np.uint64
_ONE = _U(1)
_WORD = 64  # passes are bits of two words


def _plain_lowest_bit(bits: Any) -> int:
    """Return the place of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


@vector_code(_plain_lowest_bit, types.int64)
def _lowest_bit(builder: Any, bits: Any) -> Any:
    return builder.cttz(bits, ir.IntType(1)(1))


@once
def _changes(x: int, y: int, mask: int) -> Any:
    """Return the passes after the first in which ``(x + 2 pass − y) & mask == 0`` changes: a bit each, two uint64."""
    low = high = _U(0)
    since, height = (x - y) & 0xFF, 256 - mask
    if mask & height == height and height >= 2 and height & (height - 1) == 0:
        # On while (since + 2 pass) mod 256 < height, a power of 2: off at height, on at 256, off at 256 + height.
        for edge in (height, 256, 256 + height):
            j = (edge - since + 1) >> 1
            if 0 < j < _WORD:
                low |= _ONE << _U(j)
            elif _WORD <= j < PASSES:
                high |= _ONE << _U(j - _WORD)
        return low, high
    for j in range(1, PASSES):
        if ((since + 2 * j) & mask == 0) != ((since + 2 * j - 2) & mask == 0):
            if j < _WORD:
                low |= _ONE << _U(j)
            else:
                high |= _ONE << _U(j - _WORD)
    return low, high


@once
def _playfield_row(pointers: Any, row: int) -> int:
    """Return the 20 bits of a row, as ``PF`` has them."""
    mask = len(ROM) - 1
    pf0, pf1, pf2 = ROM[pointers[0] + row & mask], ROM[pointers[1] + row & mask], ROM[pointers[2] + row & mask]
    return np.int64(pf0) >> 4 | np.int64(pf1) << 4 | np.int64(pf2) << 12


@once
def _playfield_changes(p: Any, pointers: Any) -> None:
    """Write into ``p.court`` the passes in which the playfield changes. They are the same in every frame of a mode."""
    key = _U(1 << 48 | pointers[0] | pointers[1] << 16 | pointers[2] << 32)
    if p.court[0] == key:
        return
    p.court[0], p.court[1], p.court[2] = key, _U(0), _U(0)
    for row in range(((_X_FIRST + 1) >> 3) + 1, ((_X_FIRST + 2 * PASSES - 1) >> 3) + 1):
        j = 4 * row - 19  # the first pass with (X + 1) >> 3 == row
        if _playfield_row(pointers, row) != _playfield_row(pointers, row - 1):
            p.court[1 + j // _WORD] |= _ONE << _U(j % _WORD)


@once
def draw_court(s: Any, p: Any, screen: Any) -> bool:
    """Stand in for the loop; returns False, with nothing changed, if it would do anything that is not foreseen here."""
    start = s.frame_start
    begin = s.cycle * 3 - start
    if s.X != _X_FIRST or s.S != _STACK or s.D or begin % CLOCKS != _BEGIN or s.VDELP0 | s.VDELP1:
        return False
    paddle = np.int64(s.ram[_PADDLE])
    pointers = (
        np.int64(s.ram[_PLAYFIELD]) | np.int64(s.ram[_PLAYFIELD + 1]) << 8,
        np.int64(s.ram[_PLAYFIELD + 2]) | np.int64(s.ram[_PLAYFIELD + 3]) << 8,
        np.int64(s.ram[_PLAYFIELD + 4]) | np.int64(s.ram[_PLAYFIELD + 5]) << 8,
    )
    for pointer in pointers:
        if not pointer & 0x1000 or pointer & 0xFF > _PAGE_END:
            return False
    if paddle > 1:
        return False
    mask_p0, mask_p1, mask_m0, mask_m1 = (
        np.int64(s.ram[_MASKS]), np.int64(s.ram[_MASKS + 1]), np.int64(s.ram[_MASKS + 2]), np.int64(s.ram[_MASKS + 3])
    )  # fmt: skip
    y_p0, y_p1, y_m0, y_m1, y_ball = (
        np.int64(s.ram[_TOPS]), np.int64(s.ram[_TOPS + 1]), np.int64(s.ram[_TOPS + 2]), np.int64(s.ram[_TOPS + 3]), np.int64(s.ram[_TOPS + 4])
    )  # fmt: skip

    # The passes to visit: the first two and the last, and those in which an object goes on or off.
    _playfield_changes(p, pointers)
    low, high = _U(3) | p.court[1], _ONE << _U(PASSES - 1 - _WORD) | p.court[2]
    one, two = _changes(_X_FIRST, y_p1, mask_p1)
    low, high = low | one, high | two
    one, two = _changes(_X_FIRST + 2, y_p0, mask_p0)
    low, high = low | one, high | two
    if not s.RESMP0:
        one, two = _changes(_X_FIRST, y_m0, mask_m0)
        low, high = low | one, high | two
    if not s.RESMP1:
        one, two = _changes(_X_FIRST + 2, y_m1, mask_m1)
        low, high = low | one, high | two
    one, two = _changes(_X_FIRST + 2, y_ball, _BALL_MASK)
    low |= one | one << _ONE  # GRP1 hands the ball on in the pass after
    high |= two | two << _ONE | one >> _U(_WORD - 1)
    high &= (_ONE << _U(PASSES - _WORD)) - _ONE

    top = start + begin // CLOCKS * CLOCKS  # clock at which the line of the first pass begins
    ohms = s.resistance[paddle]
    full_at = s.dump_cycle + charging_cycles(ohms)
    never_full = s.dumped != 0 or full_at < 0  # see `paddle_charged`
    enabl, old_enabl, grp0, old_grp0, old_grp1 = s.ENABL, s.old_ENABL, s.GRP0, s.old_GRP0, s.old_GRP1
    while low | high != _U(0):
        if low != _U(0):
            j = _lowest_bit(low)
            low &= low - _ONE
        else:
            j = _WORD + _lowest_bit(high)
            high &= high - _ONE
        x, line = _X_FIRST + 2 * j, top + 2 * CLOCKS * j
        clock = line + _BEGIN
        if j > 0:
            clock += (
                3 if ohms == 0 or not never_full and (line + 69) // 3 > full_at else 9
            )  # BMI was taken, or STX 84 ran
        player = 0xF0 if (x - y_p1) & mask_p1 == 0 else 0
        missile = 2 if (x - y_m0) & mask_m0 == 0 else 0
        clock += 3 * (30 if player else 31)  # F5F3 PHP: ENAM0
        if missile != s.ENAM0:
            if not s.RESMP0:
                catch_up(s, p, screen, clock)
            s.ENAM0 = missile
            p.stale |= STALE[r.ENAM0]
        clock += 9  # F5F4 STY GRP1, which also hands on GRP0 and ENABL
        if player != s.GRP1 or old_enabl != enabl and s.VDELBL:
            catch_up(s, p, screen, clock + 1)
            s.GRP1, s.old_GRP0, s.old_ENABL = player, grp0, enabl
            p.stale |= STALE[r.GRP1]
        old_grp0, old_enabl = grp0, enabl
        clock += 54  # F5FD STA PF0; PF1 and PF2 follow after eight cycles each
        field = _playfield_row(pointers, (x + 1) >> 3)
        if field != s.PF:
            s.cycle = clock // 3
            write(s, p, screen, r.PF0, (field & 15) << 4)
            s.cycle += 8
            write(s, p, screen, r.PF1, field >> 4 & 255)
            s.cycle += 8
            write(s, p, screen, r.PF2, field >> 12)
        x += 2
        player = 0xF0 if (x - y_p0) & mask_p0 == 0 else 0
        ball = 2 if (x - y_ball) & _BALL_MASK == 0 else 0
        clock += 48 + 3 * (35 if player else 36)  # F61E PHP: ENABL
        if ball != enabl:
            if not s.VDELBL:
                catch_up(s, p, screen, clock)
            s.ENABL = enabl = ball
            p.stale |= STALE[r.ENABL]
        line += 2 * CLOCKS  # F61F STX WSYNC
        if player != grp0:  # F621 STY GRP0
            catch_up(s, p, screen, line + 10)
            s.GRP0 = grp0 = player
            p.stale |= STALE[r.GRP0]
        old_grp1 = s.GRP1
        missile = 2 if (x - y_m1) & mask_m1 == 0 else 0
        if missile != s.ENAM1:  # F629 PHP
            if not s.RESMP1:
                catch_up(s, p, screen, line + 48)
            s.ENAM1 = missile
            p.stale |= STALE[r.ENAM1]

    s.old_GRP0, s.old_GRP1, s.old_ENABL = old_grp0, old_grp1, old_enabl
    end = top + 2 * CLOCKS * PASSES
    first_read = (top + 2 * CLOCKS + 69) // 3  # F62C LDA INPT0,Y: cycle of the one in the first pass
    charging = 0
    if ohms != 0:
        late = PASSES if never_full else (full_at - first_read) // (2 * CLOCKS // 3) + 1
        charging = min(max(late, 0), PASSES)
    if charging:
        s.ram[_PADDLE_X] = _X_FIRST + 2 * charging
    charged = ohms == 0 or not never_full and (end + 69) // 3 > full_at
    s.cycle = (end + _BEGIN + (3 if charged else 9)) // 3 - 2  # the last BNE is not taken, which is to another page
    s.A, s.X, s.Y, s.S = 0x80, _X_END, paddle, _STACK
    s.N, s.Z, s.C = 0, 1, 1  # CPX #DC
    s.V = int((_X_END ^ y_m1) & (_X_END ^ (_X_END - y_m1)) & 0x80 != 0)  # SBC B5
    s.PC = EXIT
    return True
