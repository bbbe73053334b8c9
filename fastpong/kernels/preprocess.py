"""From screens to a network's input: lists of the few pixels that changed, or of vertical strips of set pixels.

The reference programs crop rows 35 … 194, take every second pixel and its red channel, erase the background (red 144
and 109; 0 is erased by itself) and set the rest to 1: an 80×80 image. Here it reads palette indices, which determine
the colour, and writes down the positions of the ones, ascending: about 34 of 6400.

The convolutional network of the preset ``fast`` gets every row of the court, and every second column, as the ball and
the paddles move by single rows: the bits of `courts`. Of these 160×80 pixels about 66 are set; written down as vertical
strips, cut where a cell of the convolution ends, they are about 13 numbers.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.arrays import I8, I16, I32, I64, U8, U64, Arrays
from fastpong.courts import IS_SET, WORDS
from fastpong.dense import CELL
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.compile.simd import lowest_bit
from fastpong.kernels.structs import RolloutArrays
from fastpong.pong import COURT, SCREEN

PIXELS = 6400
"""Pixels of an image: the inputs of the reference programs' network."""

_TOP, _SCREEN_WORDS = 35, 20  # first row of the reference programs' image; 8-byte words in a row of 160

EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
TABLE = np.uint64(0x0022002200220022)  # index 34 in all of them

_SEEN = np.array([0x5555555555555555, 0x5555555555555555, 0x55555555], np.uint64)
"""Every second pixel of a row of a court."""
_LOWEST = np.array([0, *((bits & -bits).bit_length() - 1 for bits in range(1, 512))])  # set bit of 9

STRIP_ROWS = CELL[0]
"""Rows after which a strip is cut, and the most pixels in one."""

_COLUMNS = COURT[1]


def as_words(screens: U8) -> U64:
    """View uint8 (n, 210, 160) screens as uint64 (n, 210, 20): the kernels test four pixels at once."""
    return screens.view(np.uint64)


@kernel
def _set_columns(
    words: U64,  # (20,) a row of a screen
    columns: I64,  # (80,) out: which of the even columns, counted from 0, are set, ascending
) -> int:
    """Find the set pixels of a row and return how many they are."""
    different = np.uint64(0)
    for i in range(_SCREEN_WORDS):  # one vectorised pass: nearly every row is empty
        different |= (words[i] & EVEN_BYTES) ^ TABLE
    count = 0
    if different != 0:
        for i in range(_SCREEN_WORDS):
            word = words[i] & EVEN_BYTES
            if word != TABLE:
                for k in range(4):
                    if IS_SET[(word >> np.uint64(16 * k)) & np.uint64(0xFF)]:
                        columns[count] = 4 * i + k
                        count += 1
    return count


@kernel
def find_pixels(
    screen: U64,  # (210, 20) palette indices, eight a word, little-endian
    pixels: I16,  # (6400,) out: positions of the ones, row · 80 + column, ascending
) -> int:
    """Preprocess one screen and return how many pixels are set. Twin: naive.find_pixels."""
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
    """Write the non-zeros of (image − previous image), ascending in position; return the end of what was written.

    Twin: naive.difference.
    """
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


class Observation(NamedTuple):
    """What the envs share: see `fastpong.envs.memory.fields`. Of screens and courts there may be none."""

    screens: U64  # (rows, 210, 20) palette indices, see as_words
    courts: U64  # (rows, 160, 3) bits, see `courts`
    rewards: I8  # (rows,)
    ended: I8  # (rows,)


def observe(arrays: Arrays) -> Observation:
    """Return what a policy sees of the arrays of some envs, by name: see `fastpong.envs.memory.fields`."""
    screens, courts = np.zeros((0, *SCREEN), np.uint8), np.zeros((0, COURT[0], WORDS), np.uint64)
    shown = as_words(arrays.get("screens", screens)), arrays.get("courts", courts)
    return Observation(*shown, arrays["rewards"], arrays["ended"])


class LastImages(NamedTuple):
    """The last image of each env, where the next one needs it: positions of its ones, and how many they are."""

    pixels: I16  # (envs, 6400), or (envs, 0)
    counts: I64  # (envs,)


@kernel
def _record_outcome(
    observation: Observation,
    row: int,  # the env's row in the observation
    arrays: RolloutArrays,  # out
    sample: int,  # the env's present step
    envs: int,
) -> None:
    """Write down what the step before a present one brought, and how long its game is."""
    before, ended = sample - envs, observation.ended[row]
    # Before the first row stands, in this sense, the last one that there is room for: not in use yet.
    arrays.rewards[before], arrays.ended[before] = observation.rewards[row], ended
    arrays.steps_since_reset[sample] = 0 if ended or before < 0 else arrays.steps_since_reset[before] + 1


@kernel
def record_changes(
    observation: Observation,
    rows: I64,  # (n,) the row of each env in the observation
    members: I64,  # (n,) the envs
    arrays: RolloutArrays,  # out
    first: int,  # index of env 0's present step
    changes: I16,  # (…,) out from `at` on: signed non-zeros, one env after the other
    at: int,
    last: LastImages,  # in and out
) -> int:
    """Preprocess the screens of some envs and list their non-zero inputs; return the end of the list.

    The first image of a game has no difference. Twin: naive.changes.
    """
    now, envs = np.empty(PIXELS, np.int16), len(last.counts)
    for i in range(len(members)):
        env, row = members[i], rows[i]
        _record_outcome(observation, row, arrays, first + env, envs)
        count = find_pixels(observation.screens[row], now)
        arrays.offsets[first + env] = at
        if not observation.ended[row]:
            at = difference(last.pixels[env], last.counts[env], now, count, changes, at)
        arrays.lengths[first + env] = at - arrays.offsets[first + env]
        for k in range(count):
            last.pixels[env, k] = now[k]
        last.counts[env] = count
    return at


@kernel
def _strips_of(
    bits: Any,  # the set pixels of a column of 8, the lowest bit for the uppermost
    position: int,  # of the uppermost, row · 80 + column
    strips: I32,  # see find_strips
    at: int,
) -> int:
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
    court: U64,  # (160, 3) bits, see `courts`
    strips: I32,  # (…,) out from `at` on: (row · 80 + column) · 8 + length − 1
    at: int,
) -> int:
    """List the vertical strips of set pixels in every second column of a court; return the end of the list.

    They come in order of the blocks of 8 rows, within them of the columns, and then of the rows. No strip leaves its
    block. Twin: naive.strips.
    """
    for top in range(0, COURT[0], STRIP_ROWS):
        for word in range(WORDS):
            columns = np.uint64(0)
            for row in range(STRIP_ROWS):
                columns |= court[top + row, word]
            columns &= _SEEN[word]
            while columns != np.uint64(0):
                place = np.uint64(lowest_bit(columns))
                columns &= columns - np.uint64(1)
                bits = np.int64(0)  # one for each set pixel of the column, the lowest for the uppermost
                for row in range(STRIP_ROWS):
                    bits |= np.int64(court[top + row, word] >> place & np.uint64(1)) << row
                at = _strips_of(bits, top * _COLUMNS + (64 * word + int(place)) // 2, strips, at)
    return at


@kernel
def record_strips(
    observation: Observation,
    rows: I64,  # (n,) the row of each env in the observation
    members: I64,  # (n,) the envs
    arrays: RolloutArrays,  # out
    first: int,  # index of env 0's present step
    strips: I32,  # (…,) out from `at` on: the strips of one env after the other
    at: int,
    last: LastImages,  # tells how many envs there are; strips do not depend on the last image
) -> int:
    """List the strips of the courts of some envs; return the end of the list. Twin: naive.strips."""
    for i in range(len(members)):
        sample = first + members[i]
        _record_outcome(observation, rows[i], arrays, sample, len(last.counts))
        arrays.offsets[sample] = at
        at = find_strips(observation.courts[rows[i]], strips, at)
        arrays.lengths[sample] = at - arrays.offsets[sample]
    return at


def dense(changes: I16) -> npt.NDArray[Any]:
    """Write out a list of signed non-zeros: int8 (6400,) of −1, 0, 1. Twin: naive.dense."""
    image = np.zeros(PIXELS, np.int8)
    image[np.abs(changes) - 1] = np.sign(changes)
    return image
