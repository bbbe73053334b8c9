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
from numpy import uint64

from fastpong.console import cartridge
from fastpong.console import registers as r
from fastpong.console.fast_tia import STALE, catch_up, write
from fastpong.console.registers import CLOCKS, LINE_CYCLES, clock_in_line
from fastpong.console.state import BALL, MISSILE_0, MISSILE_1, PLAYER_0, PLAYER_1, byte, word
from fastpong.console.tia import charged_after
from fastpong.kernels.compile.jit import once
from fastpong.kernels.compile.simd import lowest_bit

ROM = cartridge.read()
"""Pong, uint8 (2048,). It is compiled into the functions that read it."""

AT, EXIT = 0xF5E0, 0xF63E

_PASSES, _LINES = 91, 2  # and the lines of a pass
_FIRST_X, _END_X = 0x26, 0xDC
_STACK = 0x1D  # ENAM0's address: enable bits are pushed into the TIA, as the flag Z
_BEGIN = 114  # clock of its line at which the loop begins
_READ = 69  # clock, in the line after its two, at which a pass reads the paddle
_PLAYER = 0xF0  # graphics of a player that is on
_BALL_MASK = 0xFC
_PAGE_END = 0xFF - 0x1B  # where a row of the playfield's graphics may begin, so that no read of it crosses a page

# Where the program keeps what it draws, as indices of ``ram``.
_PADDLE = 0x80 & 0x7F  # which paddle is read: INPT0 or INPT1
_PADDLE_X = 0x84 & 0x7F  # out: the last X at which it was not charged
_PLAYFIELD = 0x9B & 0x7F  # pointers to the rows of PF0, PF1, PF2
_MASKS = 0xA5 & 0x7F  # of PLAYER_0 … MISSILE_1
_TOPS = 0xB2 & 0x7F  # y of PLAYER_0 … BALL

_ONE = uint64(1)
_WORD = 64  # passes are bits of two words


@once
def rom_byte(
    address: int,  # 0x1000 … 0xFFFF
) -> int:
    """Return a byte of the cartridge as an int64."""
    return int(np.int64(ROM[address & len(ROM) - 1]))


@once
def draw_court(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
) -> bool:
    """Stand in for the loop; returns False, with nothing changed, if it would do anything that is not foreseen here."""
    if not _is_foreseen(s):
        return False
    top = s.cycle * 3 - _BEGIN  # clock at which the line of the first pass begins
    paddle = byte(s, _PADDLE)
    charged = charged_after(s, paddle)
    _choose_passes(s, p)
    for half in range(2):
        while p.court_visits[half] != uint64(0):
            passes = p.court_visits[half]
            p.court_visits[half] = passes & (passes - _ONE)
            _draw_pass(s, p, screen, top, _WORD * half + lowest_bit(passes), charged)

    # What the instructions leave behind.
    first_read = (top + CLOCKS * _LINES + _READ) // 3
    charging = min(max((charged - first_read) // (LINE_CYCLES * _LINES) + 1, 0), _PASSES)  # in so many passes
    if charging:
        s.ram[_PADDLE_X] = _FIRST_X + 2 * charging
    s.cycle = _begin_of_pass(top, _PASSES, charged) // 3 - 2  # the last BNE is not taken, which is to another page
    s.A, s.X, s.Y, s.S, s.PC = 0x80, _END_X, paddle, _STACK, EXIT
    s.N, s.Z, s.C = 0, 1, 1  # CPX #DC
    y = byte(s, _TOPS + MISSILE_1)
    s.V = ((_END_X ^ y) & (_END_X ^ _END_X - y)) >> 7 & 1  # SBC B5
    return True


@once
def _is_foreseen(
    s: Any,  # STATE
) -> bool:
    """Return whether the loop begins as it does in play, and finds the playfield in the cartridge."""
    if s.X != _FIRST_X or s.S != _STACK or s.D or s.VDELP0 or s.VDELP1:
        return False
    for k in range(3):
        pointer = word(s, _PLAYFIELD + 2 * k)
        if not pointer & cartridge.CARTRIDGE or pointer & 0xFF > _PAGE_END:
            return False
    return bool(clock_in_line(s) == _BEGIN and byte(s, _PADDLE) <= 1)


# ---- which passes to visit -----------------------------------------------------------------------------------------


@once
def _choose_passes(
    s: Any,  # STATE
    p: Any,  # PICTURE
) -> None:
    """Set ``court_visits``, a bit for each pass: the first two, the last, and those in which anything changes."""
    _find_playfield_changes(s, p)
    p.court_visits[0], p.court_visits[1] = p.court_changes[0] | uint64(3), p.court_changes[1]
    _visit(p, _PASSES - 1)
    _visit_changes(s, p, PLAYER_1)
    _visit_changes(s, p, PLAYER_0)
    if not s.RESMP0:
        _visit_changes(s, p, MISSILE_0)
    if not s.RESMP1:
        _visit_changes(s, p, MISSILE_1)
    _visit_changes(s, p, BALL)


@once
def _visit(
    p: Any,  # PICTURE
    number: int,  # of a pass, or of none
) -> None:
    """Add a pass to those to visit."""
    if 0 < number < _PASSES:
        p.court_visits[number // _WORD] |= _ONE << uint64(number % _WORD)


@once
def _mask(
    s: Any,  # STATE
    k: int,  # object
) -> int:
    """Return the mask that tells where an object is on."""
    return _BALL_MASK if k == BALL else byte(s, _MASKS + k)


@once
def _is_on(
    s: Any,  # STATE
    k: int,  # object
    x: int,
) -> bool:
    """Return whether an object is on where the program's X is `x`."""
    return (x - byte(s, _TOPS + k)) & _mask(s, k) == 0


@once
def _visit_changes(
    s: Any,  # STATE
    p: Any,  # PICTURE
    k: int,  # object
) -> None:
    """Visit the passes in which an object goes on or off. What becomes of ENABL, GRP1 hands on in the pass after."""
    first_x = _FIRST_X if k == PLAYER_1 or k == MISSILE_0 else _FIRST_X + 2  # in the second line of a pass
    since, height = (first_x - byte(s, _TOPS + k)) & 0xFF, 256 - _mask(s, k)
    if 2 <= height < 256 and height & (height - 1) == 0:
        # On while (since + 2 number) mod 256 < height, a power of 2: off at height, on at 256, off at 256 + height.
        for edge in (height, 256, 256 + height):
            number = (edge - since + 1) >> 1
            _visit(p, number)
            if k == BALL:
                _visit(p, number + 1)
    else:
        for number in range(1, _PASSES):
            x = first_x + 2 * number
            if _is_on(s, k, x) != _is_on(s, k, x - 2):
                _visit(p, number)


@once
def _playfield_row(
    s: Any,  # STATE
    row: int,
) -> int:
    """Return the 20 bits of a row, as ``PF`` has them."""
    pf0, pf1, pf2 = word(s, _PLAYFIELD), word(s, _PLAYFIELD + 2), word(s, _PLAYFIELD + 4)
    return rom_byte(pf0 + row) >> 4 | rom_byte(pf1 + row) << 4 | rom_byte(pf2 + row) << 12


@once
def _find_playfield_changes(
    s: Any,  # STATE
    p: Any,  # PICTURE
) -> None:
    """Set ``court_changes``, the passes in which the playfield changes: the same for as long as its pointers are."""
    pointers = word(s, _PLAYFIELD) | word(s, _PLAYFIELD + 2) << 16 | word(s, _PLAYFIELD + 4) << 32
    key = uint64(1 << 48 | pointers)  # which is not 0
    if p.court_key == key:
        return
    p.court_key, p.court_changes[0], p.court_changes[1] = key, uint64(0), uint64(0)
    for row in range((_FIRST_X + 1 >> 3) + 1, (_END_X - 1 >> 3) + 1):
        if _playfield_row(s, row) != _playfield_row(s, row - 1):
            number = 4 * row - 19  # the first pass with (X + 1) >> 3 == row
            p.court_changes[number // _WORD] |= _ONE << uint64(number % _WORD)


# ---- what a pass does ----------------------------------------------------------------------------------------------


@once
def _begin_of_pass(
    top: int,  # clock at which the line of the first pass begins
    number: int,  # of a pass after the first
    charged: int,  # cycle after which the paddle is charged
) -> int:
    """Return the clock at which a pass begins: two cycles later in its line if the one before met a charging paddle."""
    line = top + CLOCKS * _LINES * number
    return line + _BEGIN + (3 if (line + _READ) // 3 > charged else 9)  # BMI was taken, or STX 84 ran


@once
def _draw_pass(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    top: int,  # clock at which the line of the first pass begins
    number: int,  # of the pass
    charged: int,  # cycle after which the paddle is charged
) -> None:
    """Write what a pass writes into the TIA, at the clocks at which it does.

    Without vertical delay ``old_GRP0`` and ``old_GRP1`` are not shown, so that nothing is drawn before they change.
    """
    clock = _begin_of_pass(top, number, charged) if number else top + _BEGIN
    x = _FIRST_X + 2 * number
    player, missile = _PLAYER if _is_on(s, PLAYER_1, x) else 0, 2 if _is_on(s, MISSILE_0, x) else 0
    clock += 3 * (30 if player else 31)  # F5F3 PHP: ENAM0
    if missile != s.ENAM0:
        if not s.RESMP0:
            catch_up(s, p, screen, clock)
        s.ENAM0 = missile
        p.stale |= STALE[r.ENAM0]
    clock += 9  # F5F4 STY GRP1
    if player != s.GRP1 or s.VDELBL and s.old_ENABL != s.ENABL:
        catch_up(s, p, screen, clock + 1)
        s.GRP1 = player
        p.stale |= STALE[r.GRP1]
    s.old_GRP0, s.old_ENABL = s.GRP0, s.ENABL
    clock += 54  # F5FD STA PF0; PF1 and PF2 follow after eight cycles each
    field = _playfield_row(s, x + 1 >> 3)
    if field != s.PF:
        s.cycle = clock // 3
        write(s, p, screen, r.PF0, (field & 15) << 4)
        s.cycle += 8
        write(s, p, screen, r.PF1, field >> 4 & 255)
        s.cycle += 8
        write(s, p, screen, r.PF2, field >> 12)

    x += 2  # the second line
    player, ball = _PLAYER if _is_on(s, PLAYER_0, x) else 0, 2 if _is_on(s, BALL, x) else 0
    clock += 48 + 3 * (35 if player else 36)  # F61E PHP: ENABL
    if ball != s.ENABL:
        if not s.VDELBL:
            catch_up(s, p, screen, clock)
        s.ENABL = ball
        p.stale |= STALE[r.ENABL]
    line = top + CLOCKS * _LINES * (number + 1)  # F61F STX WSYNC
    if player != s.GRP0:  # F621 STY GRP0
        catch_up(s, p, screen, line + 10)
        s.GRP0 = player
        p.stale |= STALE[r.GRP0]
    s.old_GRP1 = s.GRP1
    missile = 2 if _is_on(s, MISSILE_1, x) else 0
    if missile != s.ENAM1:  # F629 PHP
        if not s.RESMP1:
            catch_up(s, p, screen, line + 48)
        s.ENAM1 = missile
        p.stale |= STALE[r.ENAM1]
