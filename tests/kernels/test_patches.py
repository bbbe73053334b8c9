"""The patches of positions, against sets of pixels: on real screens, and on pictures for which the table grows."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong.arrays import I64, Bool
from fastpong.courts import courts_of
from fastpong.dense import GRID
from fastpong.kernels.buckets import bucket_by_minibatch
from fastpong.kernels.patches import PARTS, POSITIONS
from fastpong.kernels.preprocess import find_strips
from fastpong.kernels.structs import Inputs, Patches
from fastpong.learners.threads import Threads
from fastpong.learners.updater import Samples, divide
from tests import naive
from tests.support.kernels import SmallRollout, court, empty_buckets, listed, rollout_arrays, screen_with_bars, slots_of

SAMPLES = np.array([12, 1, 8, 9, 13, 0, 2, 11, 5])
Seen = dict[int, frozenset[naive.Pixel]]
"""The patches of a sample by position, but for empty ones."""


def seen_in(images: Sequence[Bool]) -> Seen:
    """Look at each position."""
    return {q: patch for q in range(POSITIONS) if (patch := naive.patch_at(images, q))}


def drawings(count: int) -> tuple[Inputs, list[Bool]]:
    """Pictures of random bars as the steps of one env, whose samples have three images."""
    rng, pictures, at = np.random.default_rng(2), list[Bool](), 0
    arrays, strips = rollout_arrays(count), np.zeros(count * 400, np.int32)
    arrays.steps_since_reset[:] = np.arange(count)
    for t in range(count):
        ends = rng.integers(0, 160, 30), rng.integers(0, 80, 30), rng.integers(1, 30, 30)
        screen = screen_with_bars(np.stack(ends, 1).tolist())
        arrays.offsets[t], at = at, find_strips(courts_of(screen[None])[0], strips, at)
        arrays.lengths[t] = at - arrays.offsets[t]
        pictures.append(court(screen))
    return Inputs(strips, arrays, 1, 3, 0, 3), pictures


def pixels_of(patches: Patches, p: int) -> Iterator[naive.Pixel]:
    """The pixels (image, row, column) of a patch, from its strips; three images."""
    for strip in patches.strips[patches.strip_offsets[p] : patches.strip_offsets[p + 1]].tolist():
        above, length = strip >> 3, (strip & 7) + 1
        rest, row = divmod(above, 9)
        rest, column = divmod(rest, 4)
        cell, image = divmod(rest, 3)
        for y in range(row, row + length):
            # The first of the four positions of a cell has it at its lower right.
            yield image, y + 8 * (1 - cell // 2), column + 4 * (1 - cell % 2)


def check(inputs: Inputs, samples: I64, seen: Sequence[Seen]) -> Patches:
    """Compare all that is listed with what the naive twin sees at the positions of the samples."""
    those = listed(inputs, samples)
    patches, positions = those.patches, those.patches.positions.tolist()
    assert sorted(positions) == list(range(POSITIONS))
    assert those.bounds[0] == 0 and those.bounds[-1] == POSITIONS and np.all(np.diff(those.bounds) >= 0)
    found, named = set[tuple[int, int]](), list[int]()
    for first, last in zip(those.bounds, those.bounds[1:], strict=False):
        assert positions[first:last] == sorted(positions[first:last])
        known: dict[int, frozenset[naive.Pixel]] = {}  # the patches of a part
        for place in range(first, last):
            begin, end = patches.offsets[place : place + 2]
            ids = patches.patch_ids[begin:end].tolist(), patches.sample_ids[begin:end].tolist()
            pairs = list(zip(*ids, strict=True))
            assert pairs == sorted(pairs)
            for p, m in pairs:
                found.add((m, positions[place]))
                assert known.setdefault(p, seen[m][positions[place]]) == seen[m][positions[place]]
        assert len(set(known.values())) == len(known)
        named += sorted(known)
        for p, pixels in known.items():
            shown = list(pixels_of(patches, p))
            assert len(shown) == len(pixels) and set(shown) == pixels
    assert named == list(range(len(patches.strip_offsets) - 1))  # no patch is of two parts
    assert found == {(m, q) for m, those_seen in enumerate(seen) for q in those_seen}
    assert len(found) == len(patches.patch_ids)
    return patches


def test_patches_of_real_screens(real_screens: npt.NDArray[np.uint8]) -> None:
    rollout = SmallRollout(real_screens)
    check(rollout.inputs, SAMPLES, [seen_in(rollout.sample(s).images) for s in SAMPLES.tolist()])


def test_patches_of_pictures_that_are_all_different() -> None:
    inputs, pictures = drawings(40)
    seen = [seen_in(pictures[t : max(0, t - 2) - 1 if t > 2 else None : -1]) for t in range(40)]
    patches = check(inputs, np.arange(40), seen)
    assert len(patches.strip_offsets) > 2 * 1024 * PARTS / 2  # there is more than there was room for at first


def test_no_samples_and_empty_screens_have_no_patches() -> None:
    inputs = Inputs(np.zeros(0, np.int32), rollout_arrays(1), 1, 3, 0, 3)
    for samples in np.zeros(0, np.int64), np.zeros(3, np.int64):
        patches = listed(inputs, samples).patches
        assert len(patches.patch_ids) == len(patches.strips) == 0 and patches.strip_offsets.tolist() == [0]
        assert not patches.offsets.any()


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_list_the_same(real_screens: npt.NDArray[np.uint8], threads: int) -> None:
    inputs = SmallRollout(real_screens).inputs
    pool = Threads(threads)
    one, other = listed(inputs, SAMPLES), Samples(inputs, SAMPLES, pool)
    pool.close()
    for array, same in zip((one.bounds, *one.patches), (other.bounds, *other.patches), strict=True):
        np.testing.assert_array_equal(array, same)


def test_pairs_are_bucketed_by_minibatch(real_screens: npt.NDArray[np.uint8]) -> None:
    patches = listed(SmallRollout(real_screens).inputs, SAMPLES).patches
    minibatches: list[list[int]] = [[7, 0, 3], [], [8, 2], [1, 5]]  # 4 and 6 are in none
    slots, buckets = slots_of(len(SAMPLES), minibatches), empty_buckets(patches, 4)
    for first, last in ((0, 200), (200, POSITIONS)):
        bucket_by_minibatch(patches, slots, buckets, first, last)
    for place in range(POSITIONS):
        own = slice(patches.offsets[place], patches.offsets[place + 1])
        pairs = list(zip(patches.patch_ids[own].tolist(), patches.sample_ids[own].tolist(), strict=True))
        for b, wanted in enumerate(naive.bucket_by_minibatch(pairs, minibatches)):
            bucket = slice(buckets.offsets[b, place], buckets.offsets[b + 1, place])
            found = zip(buckets.patch_ids[bucket].tolist(), buckets.slots[bucket].tolist(), strict=True)
            assert list(found) == wanted


@given(st.lists(st.integers(0, 50), min_size=POSITIONS, max_size=POSITIONS), st.integers(0, POSITIONS - 1))
def test_parts_of_the_positions(work: list[int], heavy: int) -> None:
    work[heavy] += 100
    bounds, positions = divide(np.array(work))
    parts = np.split(positions, bounds[1:-1])
    assert len(parts) == PARTS and sorted(np.concatenate(parts)) == list(range(POSITIONS))
    assert max(sum(work[q] for q in part) for part in parts) <= -(-sum(work) // PARTS) + max(work)
    columns = [sorted({int(q) % GRID[1] for q in part}) for part in parts]
    for part, more in zip(columns, columns[1:], strict=False):
        assert not part or not more or part[-1] <= more[0]
