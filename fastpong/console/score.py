"""Two more loops of Pong, without their instructions: the score, F58B … F5B5, and blank lines, F5B8 … F5CE."""

from typing import Any

import numpy as np

from fastpong.console import registers as r
from fastpong.console.court import ROM
from fastpong.console.drawing import draw_halves
from fastpong.console.fast_tia import STALE, catch_up, changes_nothing, write
from fastpong.console.registers import CLOCKS, LINE_CYCLES, TOP
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
def draw_score(s: Any, p: Any, screen: Any) -> bool:
    """Stand in for the score: twenty lines with two values of PF1, one for each half.

    Returns False, with no register changed, if anything else is shown there or the digits are elsewhere.
    """
    if s.X != 1 or s.Y != 0 or s.D:
        return False
    for k in range(4):
        if s.ram[_DIGITS + 2 * k] > 0xFF - 4 or s.ram[_DIGITS + 2 * k + 1] != _DIGITS_PAGE:
            return False
    start = s.frame_start
    begin = start + ((s.cycle + 3) * 3 - start + CLOCKS - 1) // CLOCKS * CLOCKS  # F58B STA WSYNC
    catch_up(s, p, screen, begin)
    if s.GRP0 | s.GRP1 | s.ENAM0 | s.ENAM1 | s.ENABL | s.old_ENABL | s.old_GRP0 | s.old_GRP1 | s.PF | s.VBLANK:
        return False  # the writes in mid-line would cut it
    top = (begin - start) // CLOCKS - TOP
    if s.CTRLPF != _SCORE_CONTROL or s.mirrored or s.comb or top < 0:
        return False
    mask, right = len(ROM) - 1, 0
    for row in range(_ROWS):
        both = 0
        for k in range(4):
            at = np.int64(s.ram[_DIGITS + 2 * k]) | np.int64(s.ram[_DIGITS + 2 * k + 1]) << 8
            both |= (np.int64(ROM[at + row & mask]) & (0x0F if k < 2 else 0xF0)) << 8 * (k & 1)
        s.ram[_DIGIT] = both >> 8 & 0x0F
        left, right = both & 0xFF, both >> 8 & np.int64(s.ram[_RIGHT_MASK])
        if p.drawn:
            draw_halves(s, p, screen, top + _LINES * row, left << 4, right << 4)
    s.beam = begin + CLOCKS * _ROWS * _LINES
    s.PF = right << 4
    p.stale |= STALE[r.PF1]
    s.cycle = (begin + CLOCKS * (_ROWS * _LINES - 1)) // 3 + 63
    s.A, s.X, s.Y, s.N, s.Z, s.C = 0, _ROWS * _LINES + 1, _ROWS, 0, 1, 1
    s.PC = SCORE_EXIT
    return True


@once
def draw_blank_lines(s: Any, p: Any, screen: Any) -> bool:
    """Stand in for Y lines of nothing."""
    start, lines = s.frame_start, int(s.Y)
    if lines == 0:
        return False
    s.cycle += 2  # F5B8 LDA #00
    while lines > 0 and (s.PF | s.GRP0 | s.GRP1 | s.ENAM0 | s.ENAM1 | s.ENABL | s.old_ENABL | s.old_GRP0 | s.old_GRP1):
        for register in _CLEARED:
            s.cycle += 3
            if not changes_nothing(s, register, 0):
                write(s, p, screen, register, 0)
        s.cycle += 3  # F5CA STY WSYNC, DEY, BNE, LDA
        s.cycle += (CLOCKS - (s.cycle * 3 - start) % CLOCKS) // 3 % LINE_CYCLES + 7
        lines -= 1
    if lines > 0:  # nothing changes any more
        s.cycle += 3 * (len(_CLEARED) + 1)
        s.cycle += (CLOCKS - (s.cycle * 3 - start) % CLOCKS) // 3 % LINE_CYCLES + 7 + LINE_CYCLES * (lines - 1)
    s.cycle -= 3  # the last BNE is not taken
    s.A, s.Y, s.N, s.Z, s.PC = 0, 0, 0, 1, BLANK_EXIT
    return True
