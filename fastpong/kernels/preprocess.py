"""From screens to a network's input, written down step by step: the few pixels that changed, or `strips`.

The reference programs crop rows 35 … 194, take every second pixel and its red channel, erase the background (red 144
and 109; 0 is erased by itself) and set the rest to 1: an 80×80 image. Here it reads palette indices, which determine
the colour, and writes down the positions of the ones, ascending: about 34 of 6400.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.arrays import I8, I16, I32, I64, U8, U64
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.strips import EMPTY, EVEN_BYTES, TABLE, WORDS, find_strips
from fastpong.kernels.structs import RolloutArrays

PIXELS = 6400
"""Pixels of an image: the inputs of the reference programs' network."""

_TOP = 35  # first row of the reference programs' image


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
    for i in range(WORDS):  # one vectorised pass: nearly every row is empty
        different |= (words[i] & EVEN_BYTES) ^ TABLE
    count = 0
    if different != 0:
        for i in range(WORDS):
            word = words[i] & EVEN_BYTES
            if word != TABLE:
                for k in range(4):
                    if not EMPTY[(word >> np.uint64(16 * k)) & np.uint64(0xFF)]:
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


NO_STRIPS = np.zeros((0, 0), np.int32)


class Observation(NamedTuple):
    """What the envs share: see `fastpong.envs.engine.array_layout`."""

    screens: U64  # (rows, 210, 20) palette indices, see as_words
    rewards: I8  # (rows,)
    ended: I8  # (rows,)
    strips: I32 = NO_STRIPS  # (rows, …), see `fastpong.envs.engine.STRIPS`


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
    """List the strips of the screens of some envs; return the end of the list. Twin: naive.strips."""
    for i in range(len(members)):
        sample, row = first + members[i], rows[i]
        _record_outcome(observation, row, arrays, sample, len(last.counts))
        arrays.offsets[sample] = at
        if len(observation.strips) and observation.strips[row, 0] > 0:
            for k in range(1, observation.strips[row, 0]):
                strips[at] = observation.strips[row, k]
                at += 1
        else:
            at = find_strips(observation.screens[row], strips, at)
        arrays.lengths[sample] = at - arrays.offsets[sample]
    return at


def dense(changes: I16) -> npt.NDArray[Any]:
    """Write out a list of signed non-zeros: int8 (6400,) of −1, 0, 1. Twin: naive.dense."""
    image = np.zeros(PIXELS, np.int8)
    image[np.abs(changes) - 1] = np.sign(changes)
    return image
