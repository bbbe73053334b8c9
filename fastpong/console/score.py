"""Two more loops of Pong, without their instructions: the score, F58B … F5B5, and blank lines, F5B8 … F5CE."""

from typing import Any

from fastpong.console import registers as r
from fastpong.console.court import rom_byte
from fastpong.console.drawing import LEFT, fill, is_drawn, make_row
from fastpong.console.fast_tia import STALE, catch_up, changes_nothing, write
from fastpong.console.masks import refresh
from fastpong.console.registers import CLOCKS, LINE_CYCLES, TOP, rest_of_line
from fastpong.console.state import PLAYFIELD, byte, word
from fastpong.kernels.compile.jit import once

SCORE_AT, SCORE_EXIT = 0xF58B, 0xF5B6
BLANK_AT, BLANK_EXIT = 0xF5B8, 0xF5CF

_ROWS, _LINES = 5, 4  # rows of a digit, and lines of each
_SCORE_CONTROL = 2  # CTRLPF: the halves of the playfield have the players' colours

# Where the program keeps what it draws, as indices of ``ram``.
_DIGITS = 0xC5 & 0x7F  # pointers to the rows of four digits, in the order 2nd, 4th, 1st, 3rd
_DIGIT = 0x87 & 0x7F  # out: the lower half of a row
_RIGHT_MASK = 0x90 & 0x7F  # 0 hides the right player's score
_DIGITS_PAGE = 0xF7

_CLEARED = (r.PF0, r.PF1, r.PF2, r.GRP0, r.GRP1, r.ENAM0, r.ENAM1, r.ENABL)
"""The registers that a blank line sets to 0, three cycles each."""


@once
def draw_score(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
) -> bool:
    """Stand in for the score: twenty lines with two values of PF1, one for each half.

    Returns False, with no register changed, if anything else is shown there or the digits are elsewhere.
    """
    if s.X != 1 or s.Y != 0 or s.D:
        return False
    for k in range(4):
        digit = word(s, _DIGITS + 2 * k)
        if digit >> 8 != _DIGITS_PAGE or (digit & 0xFF) + _ROWS > 0x100:
            return False
    start = s.frame_start
    begin = start + ((s.cycle + 3) * 3 - start + CLOCKS - 1) // CLOCKS * CLOCKS  # F58B STA WSYNC
    catch_up(s, p, screen, begin)
    top = (begin - start) // CLOCKS - TOP
    if _is_anything_on(s) or s.VBLANK or s.CTRLPF != _SCORE_CONTROL or s.mirrored or s.comb or top < 0:
        return False  # other writes, or what they cut in mid-line
    right = 0
    for row in range(_ROWS):
        left, right = _digits(s, 0, row), _digits(s, 1, row)
        s.ram[_DIGIT] = right & 0x0F
        right &= byte(s, _RIGHT_MASK)
        y = top + _LINES * row
        if is_drawn(p, y, y + _LINES - 1):
            _draw_digits(s, p, screen, y, left << 4, right << 4)
    s.beam = begin + CLOCKS * _ROWS * _LINES
    s.PF = right << 4
    p.stale |= STALE[r.PF1]
    s.cycle = (begin + CLOCKS * (_ROWS * _LINES - 1)) // 3 + 63
    s.A, s.X, s.Y, s.N, s.Z, s.C = 0, _ROWS * _LINES + 1, _ROWS, 0, 1, 1
    s.PC = SCORE_EXIT
    return True


@once
def _digits(
    s: Any,  # STATE
    player: int,  # 0 or 1: left or right
    row: int,
) -> int:
    """Return a row of a player's two digits, as PF1 gets it."""
    ones, tens = word(s, _DIGITS + 2 * player), word(s, _DIGITS + 2 * player + 4)
    return rom_byte(tens + row) & 0xF0 | rom_byte(ones + row) & 0x0F


@once
def _draw_digits(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    y: int,  # first line
    left: int,  # ``PF`` in the left half
    right: int,  # and in the right one
) -> None:
    """Draw a row of the digits: lines of a playfield of which the halves differ, and of nothing else."""
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
    fill(p, screen, y, y + _LINES)
    p.stale |= 1 << PLAYFIELD


@once
def draw_blank_lines(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
) -> bool:
    """Stand in for Y lines of nothing; returns False, with nothing changed, if there are none."""
    lines = int(s.Y)
    if lines == 0:
        return False
    s.cycle += 2  # F5B8 LDA #00
    while lines > 0 and _is_anything_on(s):
        for register in _CLEARED:
            s.cycle += 3
            if not changes_nothing(s, register, 0):
                write(s, p, screen, register, 0)
        _end_line(s)
        lines -= 1
    if lines > 0:  # nothing changes any more
        s.cycle += 3 * len(_CLEARED)
        _end_line(s)
        s.cycle += LINE_CYCLES * (lines - 1)
    s.cycle -= 3  # the last BNE is not taken
    s.A, s.Y, s.N, s.Z, s.PC = 0, 0, 0, 1, BLANK_EXIT
    return True


@once
def _end_line(
    s: Any,  # STATE
) -> None:
    """Let the cycles of F5CA STY WSYNC pass, and of DEY, BNE, LDA in the next line."""
    s.cycle += 3
    s.cycle += rest_of_line(s) + 7


@once
def _is_anything_on(
    s: Any,  # STATE
) -> bool:
    """Return whether an object is shown, or would be after a hand-over."""
    shown = s.PF | s.GRP0 | s.GRP1 | s.ENAM0 | s.ENAM1 | s.ENABL
    return bool(shown | s.old_GRP0 | s.old_GRP1 | s.old_ENABL)
