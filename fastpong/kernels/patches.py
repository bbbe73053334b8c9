"""Which patches are distinct, and at which positions of which samples each occurs.

The court (160×80 pixels of 0 or 1, three or so images deep) is cut into cells of 8×4 pixels. A *position* of the
convolution is a corner where four cells meet. Its *patch* is these 16×8 pixels, so each pixel belongs to four patches,
and neighbouring positions are 8 rows or 4 columns apart. Of 441 patches about 25 hold a set pixel.

          column 0   4   8  …           Pixels belong to the patches of the four corners of their cell. A cell has the
        ┌───┬───┬───                    number of the first of these positions, its upper left corner: position
      0 │   │   │        8 rows         q = 21 · (row // 8) + column // 4. The others are q + 1, q + 21, q + 22.
        ├───┼───┼───
      8 │   │   │

Most patches repeat: a batch has about 200,000 pairs of a position and a sample, of which 8,000 patches are distinct,
and a patch occurs mostly at the same few positions. So everything is computed once for each distinct patch, or once for
each at a position, and not once for each sample. The patches do not depend on weights: they are listed once for a
batch, and serve all of its epochs.
"""

from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import I32, I64, U64
from fastpong.dense import CELL, GRID
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.gathers import LENGTH_BITS
from fastpong.kernels.preprocess import STRIP_ROWS
from fastpong.kernels.structs import Inputs, Patches
from fastpong.pong import COURT

POSITIONS = GRID[0] * GRID[1]

_ROWS, _COLUMNS, _WIDTH = CELL[0], CELL[1], GRID[1]
_COURT_WIDTH = COURT[1]
_MIN_TABLE = 2048  # slots of the hash table
_EXAMINED = 1024  # samples, to find the middle position
_GOLDEN, _MUL_1, _MUL_2 = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

assert 1 << LENGTH_BITS == STRIP_ROWS


class _Table(NamedTuple):
    """The patches found so far: a hash table with open addressing, and lists that grow with it."""

    keys: U64  # (slots, a power of 2) hash of the patch, 0: free
    names: I32  # (slots,) which patch it is
    positions: I32  # (≥ pairs,) of all pairs, in order of the samples
    patch_ids: I32  # (≥ pairs,)
    strip_offsets: I32  # (≥ patches + 1,) see `Patches`, here and in the next
    strips: I32


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
def _add_samples(
    inputs: Inputs,
    samples: I64,
    first: Any,
    last: Any,
    m: Any,  # the first sample that is to be added
    ends: I32,  # (samples + 1,) in and out: pairs of all samples before each; that of sample `m` is known
    known: Any,  # how many patches there are
    table: _Table,  # in and out
) -> tuple[int, int]:
    """Add samples as long as there is room for them; return the next sample, and how many patches there are."""
    strips, arrays, envs, frames = inputs.images, inputs.arrays, inputs.envs, inputs.frame_stack
    keys, names, positions, patch_ids = table.keys, table.names, table.positions, table.patch_ids
    # Of each position, in a sample; and of each cell, which has the number of the first of its positions: its strips.
    hashes, visited = np.zeros(POSITIONS, np.uint64), np.full(POSITIONS, -1, np.int64)
    cells, cell_visited = np.zeros((frames, POSITIONS, 2), np.int64), np.full((frames, POSITIONS), -1, np.int64)
    pair: Any = np.int64(ends[m])
    made: Any = np.int64(table.strip_offsets[known])
    while m < len(samples):
        begin, images, most = pair, min(arrays.steps_since_reset[samples[m]] + 1, frames), 0
        for f in range(images):
            most += 4 * arrays.lengths[samples[m] - f * envs]
        if pair + most >= len(patch_ids) or made + most > len(table.strips) or 2 * (known + most) > len(keys):
            break
        for f in range(images):
            sample = samples[m] - f * envs
            k, end = arrays.offsets[sample], arrays.offsets[sample] + arrays.lengths[sample]
            while k < end:  # the strips of a cell are one after the other, and cells come in order
                head, cell, mixed = k, cell_of(strips[k]), np.uint64(0)
                if cell >= last:
                    break
                if cell + _WIDTH + 1 < first:
                    k += 1
                    continue
                while k < end and cell_of(strips[k]) == cell:
                    mixed += _mixed(patch_strip(strips[k], f * _COLUMNS))
                    k += 1
                cells[f, cell, 0], cells[f, cell, 1], cell_visited[f, cell] = head, k, m
                for d in range(4):
                    position = cell + (d >> 1) * _WIDTH + (d & 1)
                    # Without a branch, since none could be foreseen; other calls' positions are not read again.
                    positions[pair] = position
                    pair += (visited[position] != m) & (first <= position) & (position < last)
                    visited[position] = m
                    # Rotated by quarters, so that the same cell elsewhere in the patch counts differently.
                    hashes[position] += mixed << np.uint64(16 * d) | mixed >> np.uint64(64 - 16 * d & 63)
        for e in range(begin, pair):
            position = np.int64(positions[e])
            key = hashes[position] | np.uint64(1)  # 0: a free slot
            hashes[position] = np.uint64(0)
            at = _slot_of(keys, key)
            if keys[at] == np.uint64(0):
                keys[at], names[at] = key, known
                for f in range(images):
                    for d in range(4):
                        cell = position - (d >> 1) * _WIDTH - (d & 1)
                        if cell >= 0 and cell_visited[f, cell] == m:
                            for k in range(cells[f, cell, 0], cells[f, cell, 1]):
                                table.strips[made] = patch_strip(strips[k], (d * frames + f) * _COLUMNS)
                                made += 1
                known += 1
                table.strip_offsets[known] = made
            patch_ids[e] = names[at]
        m += 1
        ends[m] = pair
    return m, known


@kernel
def list_patches(
    inputs: Inputs,
    samples: I64,  # (m,) the listed samples
    first: Any,  # the positions first … last − 1 are this call's
    last: Any,
) -> Patches:
    """List the distinct patches of some samples. Twin: naive.patch_at.

    Two patches are held to be the same if 63 bits of their hashes are, a sum over their strips (Zobrist, "A new hashing
    method with application for game playing", 1970): of n different patches two are confused with a chance of n² / 2⁶⁴,
    10⁻¹¹ for those of a batch.
    """
    size = _MIN_TABLE
    while size < 4 * len(samples):
        size *= 2
    table = _Table(
        np.zeros(size, np.uint64), np.zeros(size, np.int32), np.empty(4 * size, np.int32), np.empty(4 * size, np.int32),
        np.zeros(4 * size + 1, np.int32), np.empty(4 * size, np.int32),
    )  # fmt: skip
    ends = np.zeros(len(samples) + 1, np.int32)
    done: Any = np.int64(0)  # not 0, for which Numba would compile once more
    known: Any = np.int64(0)
    while True:
        done, known = _add_samples(inputs, samples, first, last, done, ends, known, table)
        if done == len(samples):
            break
        table = _larger(table)  # outside of the loop over samples, which would take twice as long
    offsets, patch_ids, sample_ids = _sort(table.positions, table.patch_ids, ends, known)
    strip_offsets = table.strip_offsets[: known + 1]
    return Patches(strip_offsets, table.strips[: strip_offsets[known]], offsets, patch_ids, sample_ids, first, last)


@kernel
def _sort(
    positions: I32,  # (≥ pairs,) in order of the samples
    patch_ids: I32,  # (≥ pairs,)
    ends: I32,  # (samples + 1,)
    known: Any,  # patches
) -> Any:
    """Sort pairs by patch, and then by position; both keep the order of equals. Returns three arrays of `Patches`."""
    pairs = ends[len(ends) - 1]
    where, offsets = np.zeros(known + 1, np.int32), np.zeros(POSITIONS + 1, np.int32)
    for e in range(pairs):
        where[patch_ids[e] + 1] += 1
        offsets[positions[e] + 1] += 1
    for p in range(known):
        where[p + 1] += where[p]
    by_patch = np.empty(pairs, np.int64)  # sample · 2¹⁶ + position
    for m in range(len(ends) - 1):
        for e in range(ends[m], ends[m + 1]):
            by_patch[where[patch_ids[e]]] = m << 16 | positions[e]
            where[patch_ids[e]] += 1
    for q in range(POSITIONS):
        offsets[q + 1] += offsets[q]
    sorted_ids, sample_ids = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
    e, position_ends = 0, offsets.copy()
    for p in range(known):
        while e < where[p]:  # by now the end of the patch's pairs
            position = by_patch[e] & 0xFFFF
            sorted_ids[position_ends[position]], sample_ids[position_ends[position]] = p, by_patch[e] >> 16
            position_ends[position] += 1
            e += 1
    return offsets, sorted_ids, sample_ids


@kernel
def _doubled(numbers: I32) -> I32:
    """Return an array of twice the size that begins with these."""
    more = np.empty(2 * len(numbers), np.int32)
    for i in range(len(numbers)):
        more[i] = numbers[i]
    return more


@kernel
def _slot_of(
    keys: U64,  # (a power of 2,) 0: free
    key: Any,  # uint64
) -> Any:
    """Return the slot of a key in the table, or the one for it."""
    last = len(keys) - 1
    at = np.int64(key >> np.uint64(33)) & last
    while keys[at] != key and keys[at] != np.uint64(0):
        at = (at + 1) & last
    return at


@kernel
def _larger(table: _Table) -> _Table:
    """Return a table with the same patches that is twice as large."""
    keys, names = np.zeros(2 * len(table.keys), np.uint64), np.zeros(2 * len(table.keys), np.int32)
    for i in range(len(table.keys)):
        if table.keys[i] != np.uint64(0):
            at = _slot_of(keys, table.keys[i])
            keys[at], names[at] = table.keys[i], table.names[i]
    return _Table(
        keys, names, _doubled(table.positions), _doubled(table.patch_ids), _doubled(table.strip_offsets),
        _doubled(table.strips),
    )  # fmt: skip


@kernel
def middle_position(inputs: Inputs, samples: I64) -> int:
    """Return the position before which about half of the pairs are, going by a part of the samples."""
    strips, arrays = inputs.images, inputs.arrays
    counts = np.zeros(POSITIONS, np.int64)
    for m in range(0, len(samples), max(1, len(samples) // _EXAMINED)):
        cell, start = -1, arrays.offsets[samples[m]]
        for k in range(start, start + arrays.lengths[samples[m]]):
            if cell_of(strips[k]) != cell:
                cell = cell_of(strips[k])
                for d in range(4):
                    counts[cell + (d >> 1) * _WIDTH + (d & 1)] += 1
    half, middle, before = counts.sum(), 0, 0
    while middle < POSITIONS and 2 * (before + counts[middle]) <= half:
        before += counts[middle]
        middle += 1
    return middle


@kernel
def bucket_by_minibatch(
    patches: Patches,
    slots: I64,  # (listed,) minibatch · 2³² + row in it, of each listed sample; −1: in none
    offsets: I32,  # (minibatches + 1, 441) out: see `Buckets`, for the positions of `patches`
    rows: I32,  # (pairs,) out: the row of the sample in its minibatch
    patch_ids: I32,  # (pairs,) out
) -> None:
    """Sort the pairs of each position by minibatch; patches stay in order. Twin: naive.bucket_by_minibatch."""
    for position in range(patches.first, patches.last):
        begin, end = patches.offsets[position], patches.offsets[position + 1]
        for b in range(len(offsets)):
            offsets[b, position] = 0
        for k in range(begin, end):
            slot = slots[patches.sample_ids[k]]
            if slot >= 0:
                offsets[(slot >> 32) + 1, position] += 1
        offsets[0, position] = begin
        for b in range(1, len(offsets)):
            offsets[b, position] += offsets[b - 1, position]
        # Each minibatch's offset moves on to the next one's while it gets its pairs: afterwards all are one too far.
        for k in range(begin, end):
            slot = slots[patches.sample_ids[k]]
            if slot >= 0:
                at = offsets[slot >> 32, position]
                offsets[slot >> 32, position] += 1
                rows[at], patch_ids[at] = slot & 0xFFFFFFFF, patches.patch_ids[k]
        for b in range(len(offsets) - 1, 0, -1):
            offsets[b, position] = offsets[b - 1, position]
        offsets[0, position] = begin
