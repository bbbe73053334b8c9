"""From screens to a network's input: lists of the few pixels that are set or that changed, or of their vertical runs.

The seeds' preprocessing crops rows 35 … 194, takes every second pixel and its red channel, erases the background
(red 144 and 109; 0 is erased by itself) and sets the rest to 1: an 80×80 image. Here it reads palette indices, which
determine the colour, and writes down the positions of the ones, ascending: about 34 of 6400.

The convolutional network of the preset ``fast`` sees every row of the court, and every second column, as the
ball and the paddles move by single rows. Of these 160×80 pixels about 66 are set; written down as vertical runs,
cut where a cell of the convolution ends, they are about 13 numbers.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import kernel

PIXELS = 6400
"""Pixels of an image: the inputs of a network that sees the difference, or half of those if it sees the image too."""

SCREEN = (210, 160)
"""Height and width of a screen in pixels."""

_TOP, _WORDS = 35, 20  # first row of the court; 8-byte words in a row of 160

BACKGROUND = (0, 34, 48, 128, 144, 160, 176, 192, 206, 228)
"""Indices of ALE's NTSC palette whose red channel is 0, 109 or 144. In Pong's court 34 is the table."""

_EMPTY = np.zeros(256, np.bool_)
_EMPTY[list(BACKGROUND)] = True
_EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
_TABLE = np.uint64(0x0022002200220022)  # index 34 in all of them

_BYTE = np.uint64(0xFF)
_SET = (~_EMPTY).astype(np.int64)
_LOWEST = np.array([0, *((bits & -bits).bit_length() - 1 for bits in range(1, 512))])  # set bit of 9

COURT = (160, 80)
"""Height and width of the image whose runs are listed: rows 34 … 193 and every second column of a screen."""

RUN = 8
"""Rows after which a run is cut, and the most pixels in one."""

I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


def as_words(screens: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """View uint8 (n, 210, 160) screens as uint64 (n, 210, 20): the kernels test four pixels at once."""
    return screens.view(np.uint64)


@kernel
def _set_columns(
    words: npt.NDArray[np.uint64],  # (20,) a row of a screen
    columns: I64,  # (80,) out: which of the even columns, counted from 0, are set, ascending
) -> int:
    """Find the set pixels of a row and return how many they are."""
    different = np.uint64(0)
    for i in range(_WORDS):  # one vectorised pass: nearly every row is empty
        different |= (words[i] & _EVEN_BYTES) ^ _TABLE
    count = 0
    if different != 0:
        for i in range(_WORDS):
            word = words[i] & _EVEN_BYTES
            if word != _TABLE:
                for k in range(4):
                    if not _EMPTY[(word >> np.uint64(16 * k)) & np.uint64(0xFF)]:
                        columns[count] = 4 * i + k
                        count += 1
    return count


@kernel
def find_pixels(
    screen: npt.NDArray[np.uint64],  # (210, 20) palette indices, eight a word, little-endian
    pixels: I16,  # (6400,) out: positions of the ones, row · 80 + column, ascending
) -> int:
    """Preprocess one screen and return how many pixels are set."""
    columns = np.empty(80, np.int64)
    count = 0
    for row in range(80):
        for k in range(_set_columns(screen[_TOP + 2 * row], columns)):
            pixels[count] = row * 80 + columns[k]
            count += 1
    return count


@kernel
def difference(
    before: I16,  # (≥ before_count,) ascending positions of the ones in the previous image
    before_count: int,
    now: I16,  # (≥ now_count,) the same of the present image
    now_count: int,
    changes: I16,  # (…,) out from `at` on: position + 1 where a one came, −(position + 1) where it went
    at: int,
) -> int:
    """Write the non-zeros of (image − previous image), ascending in position; return the end of what was written."""
    i = j = 0
    while i < before_count or j < now_count:
        if j == now_count or (i < before_count and before[i] < now[j]):
            changes[at] = -(before[i] + 1)
            i += 1
            at += 1
        elif i == before_count or now[j] < before[i]:
            changes[at] = now[j] + 1
            j += 1
            at += 1
        else:
            i += 1
            j += 1
    return at


@kernel
def observe(
    screens: npt.NDArray[np.uint64],  # (slots, 210, 20) palette indices, see as_words
    slots: npt.NDArray[np.int64],  # (n,) where each game's screen stands
    games: npt.NDArray[np.int64],  # (n,) the games, rows of last_*
    first: npt.NDArray[np.int8],  # (slots,) 1: the first screen of a game, whose difference is zero
    last_pixels: I16,  # (games, 6400) in and out: the last image of each game
    last_counts: npt.NDArray[np.int64],  # (games,) in and out: its number of ones
    changes: I16,  # (…,) out from `at` on: signed non-zeros, one game after the other
    at: int,
    starts: npt.NDArray[np.int64],  # (games,) out: where each game's non-zeros start
    lengths: npt.NDArray[np.int64],  # (games,) out: how many they are
    with_image: bool,  # whether the ones of the image follow, as 6400 + position + 1
) -> int:
    """Preprocess the screens of some games and list their non-zero inputs; return the end of the list."""
    now = np.empty(PIXELS, np.int16)
    for i in range(len(games)):
        game, slot = games[i], slots[i]
        count = find_pixels(screens[slot], now)
        starts[game] = at
        if not first[slot]:
            at = difference(last_pixels[game], last_counts[game], now, count, changes, at)
        if with_image:
            for k in range(count):
                changes[at] = PIXELS + now[k] + 1
                at += 1
        lengths[game] = at - starts[game]
        for i in range(count):
            last_pixels[game, i] = now[i]
        last_counts[game] = count
    return at


@kernel
def _runs_of(
    bits: Any,  # the set pixels of a column of 8, the lowest bit for the uppermost
    position: int,  # of the uppermost, row · 80 + column
    runs: I32,  # see find_runs
    at: int,
) -> int:
    """List the runs of a column of a block."""
    while bits != 0:
        begin = _LOWEST[bits]
        end = _LOWEST[~(bits | (1 << begin) - 1) & 511]  # the next that is not set; there is always one
        runs[at] = (position + 80 * begin) * RUN + end - begin - 1
        at += 1
        bits &= -1 << end
    return at


@kernel
def find_runs(
    screen: npt.NDArray[np.uint64],  # (210, 20) palette indices, eight a word, little-endian
    runs: I32,  # (…,) out from `at` on: (row · 80 + column) · 8 + length − 1
    at: int,
) -> int:
    """List the vertical runs of set pixels of the 160×80 court; return the end of the list.

    They come in order of the blocks of 8 rows, within them of the columns, and then of the rows. No run leaves its
    block, and nearly all words of a block look as the table does in all of its rows, so most is looked at once only.
    """
    different, words = np.empty(_WORDS, np.uint64), np.empty(_WORDS, np.int64)
    for top in range(0, COURT[0], RUN):
        block = screen[_TOP - 1 + top : _TOP - 1 + top + RUN]
        anything = np.uint64(0)
        for i in range(_WORDS):
            bits = np.uint64(0)
            for row in range(RUN):
                bits |= block[row, i] ^ _TABLE
            different[i] = bits & _EVEN_BYTES
            anything |= different[i]
        if anything == 0:
            continue
        count = 0
        for i in range(_WORDS):  # without a branch, since none could be foreseen
            words[count] = i
            count += different[i] != 0
        for n in range(count):
            i = words[n]
            # One for each set pixel of a column, the lowest for the uppermost.
            bits0 = bits1 = bits2 = bits3 = np.int64(0)
            for row in range(RUN):
                word = block[row, i]
                bits0 |= _SET[word & _BYTE] << row
                bits1 |= _SET[word >> np.uint64(16) & _BYTE] << row
                bits2 |= _SET[word >> np.uint64(32) & _BYTE] << row
                bits3 |= _SET[word >> np.uint64(48) & _BYTE] << row
            at = _runs_of(bits0, top * 80 + 4 * i, runs, at)
            at = _runs_of(bits1, top * 80 + 4 * i + 1, runs, at)
            at = _runs_of(bits2, top * 80 + 4 * i + 2, runs, at)
            at = _runs_of(bits3, top * 80 + 4 * i + 3, runs, at)
    return at


@kernel
def observe_runs(
    screens: npt.NDArray[np.uint64],  # (slots, 210, 20) palette indices, see as_words
    slots: I64,  # (n,) where each game's screen stands
    games: I64,  # (n,) the games
    first: npt.NDArray[np.int8],  # (slots,) 1: the first screen of a game
    runs: I32,  # (…,) out from `at` on: the runs of one game after the other
    at: int,
    starts: I64,  # (games,) out: where each game's runs start
    lengths: I64,  # (games,) out: how many they are
    ages_before: I64,  # (games,) steps of each game before its previous screen
    ages: I64,  # (games,) out: steps of each game before this screen
) -> int:
    """List the runs of the screens of some games; return the end of the list."""
    for i in range(len(games)):
        game, slot = games[i], slots[i]
        starts[game] = at
        at = find_runs(screens[slot], runs, at)
        lengths[game] = at - starts[game]
        ages[game] = 0 if first[slot] else ages_before[game] + 1
    return at


def dense(changes: I16, inputs: int = PIXELS) -> npt.NDArray[Any]:
    """Write out a list of signed non-zeros: int8 (inputs,) of −1, 0, 1."""
    image = np.zeros(inputs, np.int8)
    image[np.abs(changes) - 1] = np.sign(changes)
    return image
