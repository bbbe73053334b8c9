"""Which patches are distinct, and at which positions of which samples each occurs.

The court (160×80 pixels of 0 or 1, three or so images deep) is cut into cells of 8×4 pixels. A *position* of the
convolution is a corner where four cells meet. Its *patch* is these 16×8 pixels, so each pixel belongs to four patches,
and neighbouring positions are 8 rows or 4 columns apart. Of 441 patches about 25 hold a set pixel.

          column 0   4   8  …           Pixels belong to the patches of the four corners of their cell. A cell has the
        ┌───┬───┬───                    number of the first of these positions, its upper left corner: position
      0 │   │   │        8 rows         q = 21 · (row // 8) + column // 4. The others are q + 1, q + 21, q + 22.
        ├───┼───┼───
      8 │   │   │

Most patches repeat: a batch has about 800,000 pairs of a position and a sample, of which 25,000 patches are distinct,
and a patch occurs mostly at the same few positions. So everything is computed once for each distinct patch of a part of
the positions, or once for each at a position, and not once for each sample. The patches do not depend on weights: they
are listed once for a batch, and serve all of its epochs.
"""

from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import I32, I64, U64
from fastpong.dense import CELL, GRID
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.gathers import LENGTH_BITS
from fastpong.kernels.preprocess import STRIP_ROWS
from fastpong.kernels.structs import Inputs
from fastpong.kernels.table import Table, larger, new_table, slot_of
from fastpong.pong import COURT

POSITIONS = GRID[0] * GRID[1]

BY_COLUMN = np.arange(POSITIONS).reshape(GRID).T.reshape(-1)
"""The positions column by column. A paddle stays in its columns, and looks alike in each row."""

PARTS = 8
"""Parts of the positions, and of a minibatch's samples, which threads divide among them.

They are as many on any machine, and float sums of theirs are joined in their order: so a seed has the same sums with
any number of threads.
"""

_BITS = 11  # of a hash, which tell patches at a position apart where their number need not be exact
_ROWS, _COLUMNS, _WIDTH = CELL[0], CELL[1], GRID[1]
_COURT_WIDTH = COURT[1]
_GOLDEN, _MUL_1, _MUL_2 = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

assert 1 << LENGTH_BITS == STRIP_ROWS


class Pairs(NamedTuple):
    """The pairs of some samples, in their order."""

    ends: I64  # (samples + 1,) how many pairs the samples before have
    positions: I32  # (≥ pairs,)
    keys: U64  # (≥ pairs,) hash of the patch, not 0
    counts: I64  # (441,) pairs at each position
    distinct: I64  # (441,) about how many patches there are at each position


@kernel
def _mixed(number: Any) -> Any:
    """Return 64 well-mixed bits, uint64: the finaliser of SplitMix64, see `fastpong.noise`."""
    x = np.uint64(number + 1) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MUL_1
    x = (x ^ (x >> np.uint64(27))) * _MUL_2
    return x ^ (x >> np.uint64(31))


@kernel
def patch_strip(
    strip: Any,  # see preprocess.find_strips
    column_of_sums: Any,  # (which of the four cells of its patch it is in · frames + frame) · 4
) -> Any:
    """Return a strip of an image as a strip of a patch, see `Patches`."""
    pixel = np.int64(strip) // STRIP_ROWS
    row, column = pixel // _COURT_WIDTH % _ROWS, pixel % _COURT_WIDTH % _COLUMNS
    return ((column_of_sums + column) * (_ROWS + 1) + row) << LENGTH_BITS | np.int64(strip) % STRIP_ROWS


@kernel
def cell_of(strip: Any) -> Any:
    """Return the cell of a strip, numbered by the first of the four positions whose patches it belongs to."""
    pixel = np.int64(strip) // STRIP_ROWS
    return pixel // _COURT_WIDTH // _ROWS * _WIDTH + pixel % _COURT_WIDTH // _COLUMNS


@kernel
def find_pairs(
    inputs: Inputs,
    samples: I64,  # (m,) some of the listed samples
) -> Pairs:
    """Find the positions of some samples whose patch is not empty, and hash the patch. Twin: naive.patch_at.

    A hash is the sum of those of a patch's strips (Zobrist, "A new hashing method with application for game playing",
    1970). Two patches are held to be the same if 63 bits are: of n different patches two are confused with a chance of
    n² / 2⁶⁴, 10⁻¹¹ for those of a batch.
    """
    strips, arrays, envs, frames, most = inputs.images, inputs.arrays, inputs.envs, inputs.frame_stack, 0
    for sample in samples:
        for f in range(min(arrays.steps_since_reset[sample] + 1, frames)):
            most += 4 * arrays.lengths[sample - f * envs]
    ends, counts = np.zeros(len(samples) + 1, np.int64), np.zeros(POSITIONS, np.int64)
    distinct, seen = np.zeros(POSITIONS, np.int64), np.zeros((POSITIONS, 1 << _BITS - 6), np.uint64)
    positions, keys = np.empty(most + 1, np.int32), np.empty(most + 1, np.uint64)
    hashes, visited, pair = np.zeros(POSITIONS, np.uint64), np.full(POSITIONS, -1, np.int64), np.int64(0)
    for m in range(len(samples)):
        for f in range(min(arrays.steps_since_reset[samples[m]] + 1, frames)):
            sample = samples[m] - f * envs
            k, end = arrays.offsets[sample], arrays.offsets[sample] + arrays.lengths[sample]
            while k < end:  # the strips of a cell are one after the other
                cell, mixed = cell_of(strips[k]), np.uint64(0)
                while k < end and cell_of(strips[k]) == cell:
                    mixed += _mixed(patch_strip(strips[k], f * _COLUMNS))
                    k += 1
                for d in range(4):
                    position = cell + (d >> 1) * _WIDTH + (d & 1)
                    positions[pair] = position  # without a branch, since none could be foreseen
                    pair += visited[position] != m
                    visited[position] = m
                    # Rotated by quarters, so that the same cell elsewhere in the patch counts differently.
                    hashes[position] += mixed << np.uint64(16 * d) | mixed >> np.uint64(64 - 16 * d & 63)
        for e in range(ends[m], pair):
            position = np.int64(positions[e])
            keys[e] = hashes[position] | np.uint64(1)  # 0: a free slot
            hashes[position] = np.uint64(0)
            counts[position] += 1
            word, bit = np.int64(keys[e] >> np.uint64(64 - _BITS + 6)), keys[e] >> np.uint64(64 - _BITS) & np.uint64(63)
            distinct[position] += np.int64(~seen[position, word] >> bit & np.uint64(1))
            seen[position, word] |= np.uint64(1) << bit
        ends[m + 1] = pair
    return Pairs(ends, positions, keys, counts, distinct)


@kernel
def sort_by_place(
    pairs: Pairs,
    first: int,  # index among the listed samples of the first one of `pairs`
    starts: I64,  # (441,) in: where its pairs at a position go; out: where they end
    keys: U64,  # (all pairs,) out
    sample_ids: I32,  # (all pairs,) out
) -> None:
    """Sort the pairs of some samples by place."""
    for m in range(len(pairs.ends) - 1):
        for e in range(pairs.ends[m], pairs.ends[m + 1]):
            at = starts[pairs.positions[e]]
            keys[at], sample_ids[at] = pairs.keys[e], first + m
            starts[pairs.positions[e]] = at + 1


@kernel
def _name_patches(
    offsets: I32,  # (442,) pairs at each place
    keys: U64,
    sample_ids: I32,
    place: Any,  # of the first pair that is to be named
    k: Any,  # that pair
    last: Any,  # the places before this one
    known: Any,  # how many patches there are
    table: Table,  # in and out
    patch_ids: I32,  # (pairs,) out
) -> tuple[int, int, int]:
    """Name the patches of pairs as long as there is room; return the next place and pair, and how many patches."""
    slots, names, firsts = table.keys, table.names, table.firsts
    while place < last:
        end = offsets[place + 1]
        while k < end:
            at = slot_of(slots, keys[k])
            if slots[at] == np.uint64(0):
                if known == len(firsts):
                    return place, k, known
                slots[at], names[at], firsts[known] = keys[k], known, place << 32 | np.int64(sample_ids[k])
                known += 1
            patch_ids[k] = names[at]
            k += 1
        place += 1
    return place, k, known


@kernel
def _strips_of(
    inputs: Inputs,
    samples: I64,
    positions: I64,
    firsts: I64,  # (patches,) place · 2³² + index of a sample where each patch is
) -> tuple[I32, I32]:
    """Return `strip_offsets` and `strips` of some patches, see `Patches`."""
    arrays, envs, frames, images, most = inputs.arrays, inputs.envs, inputs.frame_stack, inputs.images, 0
    for first in firsts:
        sample = samples[first & 0xFFFFFFFF]
        for f in range(min(arrays.steps_since_reset[sample] + 1, frames)):
            most += arrays.lengths[sample - f * envs]
    offsets, strips, made = np.zeros(len(firsts) + 1, np.int32), np.empty(most + 1, np.int32), 0
    for p in range(len(firsts)):
        position, sample = positions[firsts[p] >> 32], samples[firsts[p] & 0xFFFFFFFF]
        for f in range(min(arrays.steps_since_reset[sample] + 1, frames)):
            begin = arrays.offsets[sample - f * envs]
            for k in range(begin, begin + arrays.lengths[sample - f * envs]):
                back = position - cell_of(images[k])
                if back < 0:
                    break  # cells come in order
                below, right = back >= _WIDTH, back - _WIDTH * (back >= _WIDTH)
                # Without a branch, since none could be foreseen.
                strips[made] = patch_strip(images[k], ((2 * below + right) * frames + f) * _COLUMNS)
                made += right < 2
        offsets[p + 1] = made
    return offsets, strips[:made]


@kernel
def list_patches(
    inputs: Inputs,
    samples: I64,  # (m,) the listed samples
    positions: I64,  # (441,) see `Patches`, here and in the next
    offsets: I32,  # (442,)
    first: int,  # the places first … last − 1 are this call's
    last: int,
    keys: U64,  # (pairs,)
    patch_ids: I32,  # (pairs,) out: counted from 0, ascending at each place
    sample_ids: I32,  # (pairs,) in; out: in this order
) -> tuple[I32, I32]:
    """List the distinct patches of some places: return `strip_offsets` and `strips`, see `Patches`.

    Twin: naive.patch_at.
    """
    table = new_table()
    place: Any = np.int64(first)  # not an argument, for which Numba would compile once more
    k: Any = np.int64(offsets[first])
    known: Any = np.int64(0)
    while True:
        place, k, known = _name_patches(offsets, keys, sample_ids, place, k, np.int64(last), known, table, patch_ids)
        if place == last:
            break
        table = larger(table)  # outside of the loop over pairs, which would take twice as long
    _sort_by_patch(offsets, first, last, known, patch_ids, sample_ids)
    return _strips_of(inputs, samples, positions, table.firsts[:known])


@kernel
def _sort_by_patch(offsets: I32, first: int, last: int, known: Any, patch_ids: I32, sample_ids: I32) -> None:
    """Sort the pairs of each of some places by patch; equals stay in order."""
    begin, end = np.int64(offsets[first]), np.int64(offsets[last])
    where = np.zeros(known + 1, np.int64)
    for k in range(begin, end):
        where[patch_ids[k] + 1] += 1
    for p in range(known):
        where[p + 1] += where[p]
    by_patch = np.empty(end - begin, np.int64)  # place · 2³² + sample
    for place in range(first, last):
        for k in range(offsets[place], offsets[place + 1]):
            by_patch[where[patch_ids[k]]] = place << 32 | np.int64(sample_ids[k])
            where[patch_ids[k]] += 1
    e, place_ends = 0, offsets[first:last].copy()
    for p in range(known):
        while e < where[p]:  # by now the end of the patch's pairs
            place = (by_patch[e] >> 32) - first
            patch_ids[place_ends[place]], sample_ids[place_ends[place]] = p, by_patch[e] & 0xFFFFFFFF
            place_ends[place] += 1
            e += 1
