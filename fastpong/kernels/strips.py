"""From screens to the input of the convolutional network: lists of vertical strips of set pixels.

The network of the preset ``fast`` gets every row of the court, and every second column, as the ball and the paddles
move by single rows. Of these 160×80 pixels about 66 are set; written down as vertical strips, cut where a cell of the
convolution ends, they are about 13 numbers.

`find_strips` reads a whole screen. The console knows which lines of a screen are equal, so `list_strips` finds the same
from a dozen lines, in the env subprocess that drew them.
"""

from typing import Any

import numpy as np

from fastpong.arrays import I32, I64, U8, U64
from fastpong.kernels.compile.jit import kernel, once
from fastpong.pong import BACKGROUND, COURT, COURT_TOP

WORDS = 20
"""Words of 8 bytes in a row of 160."""

EMPTY = np.zeros(256, np.bool_)
EMPTY[list(BACKGROUND)] = True
EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
TABLE = np.uint64(0x0022002200220022)  # index 34 in all of them

STRIP_ROWS = 8
"""Rows after which a strip is cut, and the most pixels in one."""

_BYTE = np.uint64(0xFF)
_SET = (~EMPTY).astype(np.int64)
_LOWEST = np.array([0, *((bits & -bits).bit_length() - 1 for bits in range(1, 512))])  # set bit of 9
_ROWS, _COLUMNS = COURT
_MOST = 4 * STRIP_ROWS // 2  # strips of a word of a block


@kernel
def _strips_of(
    bits: Any,  # the set pixels of a column of 8, the lowest bit for the uppermost
    position: Any,  # of the uppermost, row · 80 + column
    strips: I32,  # see find_strips
    at: Any,
) -> Any:
    """List the strips of a column of a block."""
    while bits != 0:
        begin = _LOWEST[bits]
        end = _LOWEST[~(bits | (1 << begin) - 1) & 511]  # the next that is not set; there is always one
        strips[at] = (position + _COLUMNS * begin) * STRIP_ROWS + end - begin - 1
        at += 1
        bits &= -1 << end
    return at


@kernel
def find_strips(
    screen: U64,  # (210, 20) palette indices, eight a word, little-endian
    strips: I32,  # (…,) out from `at` on: (row · 80 + column) · 8 + length − 1
    at: int,
) -> int:
    """List the vertical strips of set pixels of the 160×80 court; return the end of the list.

    They come in order of the blocks of 8 rows, within them of the columns, and then of the rows. No strip leaves its
    block, and nearly all words of a block equal the table in all of its rows, so most are read only once.
    Twin: naive.strips.
    """
    different, words = np.empty(WORDS, np.uint64), np.empty(WORDS, np.int64)
    for top in range(0, _ROWS, STRIP_ROWS):
        block = screen[COURT_TOP + top : COURT_TOP + top + STRIP_ROWS]
        anything = np.uint64(0)
        for i in range(WORDS):
            bits = np.uint64(0)
            for row in range(STRIP_ROWS):
                bits |= block[row, i] ^ TABLE
            different[i] = bits & EVEN_BYTES
            anything |= different[i]
        if anything == 0:
            continue
        count = 0
        for i in range(WORDS):  # without a branch, since none could be foreseen
            words[count] = i
            count += different[i] != 0
        for n in range(count):
            i = words[n]
            # One for each set pixel of a column, the lowest for the uppermost.
            bits0 = bits1 = bits2 = bits3 = np.int64(0)
            for row in range(STRIP_ROWS):
                word = block[row, i]
                bits0 |= _SET[word & _BYTE] << row
                bits1 |= _SET[word >> np.uint64(16) & _BYTE] << row
                bits2 |= _SET[word >> np.uint64(32) & _BYTE] << row
                bits3 |= _SET[word >> np.uint64(48) & _BYTE] << row
            at = _strips_of(bits0, top * _COLUMNS + 4 * i, strips, at)
            at = _strips_of(bits1, top * _COLUMNS + 4 * i + 1, strips, at)
            at = _strips_of(bits2, top * _COLUMNS + 4 * i + 2, strips, at)
            at = _strips_of(bits3, top * _COLUMNS + 4 * i + 3, strips, at)
    return at


@once
def list_strips(
    screen: U64,  # (210, 20)
    uniform: U8,  # (≥ 210,) lines y … uniform[y] − 1 are equal; less than y: nothing is known of line y
    strips: I32,  # (…,) out: how many strips there are, plus 1, and the strips as `find_strips` lists them
) -> None:
    """List the strips of a screen of which it is known what lines are equal, or write 0 if there are too many.

    Twin: naive.strips.
    """
    columns, words = np.zeros(_COLUMNS, np.int64), np.zeros(WORDS, np.int64)  # of the block; which words have any
    strips[0], at, block, y = 0, 1, 0, 0
    while y < COURT_TOP + _ROWS:
        end: int = max(int(np.int64(uniform[y])), y + 1)
        row, stop = max(y - COURT_TOP, 0), min(end - COURT_TOP, _ROWS)
        anything = np.uint64(0)
        if row < stop:
            for i in range(WORDS):
                anything |= screen[y, i] ^ TABLE
        if anything & EVEN_BYTES:
            while row < stop:
                if row // STRIP_ROWS != block:
                    at = _list_block(columns, words, block, strips, at)
                    if at == 0:
                        return
                    block = row // STRIP_ROWS
                part = min(stop, (block + 1) * STRIP_ROWS)  # where these lines leave the block
                rows = (1 << part - row) - 1 << row - block * STRIP_ROWS
                for i in range(WORDS):
                    word = screen[y, i]
                    if (word ^ TABLE) & EVEN_BYTES:
                        words[i] = 1
                        for k in range(4):
                            columns[4 * i + k] |= _SET[word & _BYTE] * rows
                            word >>= np.uint64(16)
                row = part
        y = end
    at = _list_block(columns, words, block, strips, at)
    strips[0] = at


@once
def _list_block(
    columns: I64,  # (80,) in: the set pixels of each column of a block; out: 0
    words: I64,  # (20,) in: whether four columns have any; out: 0
    block: int,
    strips: I32,  # see list_strips
    at: int,
) -> int:
    """List the strips of a block; return the end of the list, or 0 if there may be too many."""
    for i in range(WORDS):
        if words[i] != 0:
            if at + _MOST > len(strips):
                return 0
            words[i] = 0
            for column in range(4 * i, 4 * i + 4):
                at = _strips_of(columns[column], block * STRIP_ROWS * _COLUMNS + column, strips, at)
                columns[column] = 0
    return at
