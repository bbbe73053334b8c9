"""The patches of positions, against sets of pixels: on real screens, and on pictures for which the table grows."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from fastpong.arrays import I64, Bool
from fastpong.courts import courts_of
from fastpong.kernels.patches import POSITIONS, bucket_by_minibatch, list_patches, middle_position
from fastpong.kernels.preprocess import find_strips
from fastpong.kernels.structs import Inputs, Patches
from tests import naive
from tests.support.kernels import (
    SmallRollout,
    both_halves,
    court,
    empty_buckets,
    rollout_arrays,
    screen_with_bars,
    slots_of,
)

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


def check_half(patches: Patches, seen: Sequence[Seen]) -> None:
    """Compare all that is listed with what the naive twin sees at these positions of the samples."""
    found: set[tuple[int, int]] = set()
    known: dict[int, frozenset[naive.Pixel]] = {}
    for position in range(POSITIONS):
        begin, end = patches.offsets[position : position + 2]
        pairs = list(zip(patches.patch_ids[begin:end].tolist(), patches.sample_ids[begin:end].tolist(), strict=True))
        assert pairs == sorted(pairs)
        for p, m in pairs:
            found.add((m, position))
            assert known.setdefault(p, seen[m][position]) == seen[m][position]
    assert found == {(m, q) for m, those in enumerate(seen) for q in those if patches.first <= q < patches.last}
    assert len(found) == len(patches.patch_ids)
    assert sorted(known) == list(range(len(patches.strip_offsets) - 1))
    assert len(set(known.values())) == len(known)
    for p, pixels in known.items():
        listed = list(pixels_of(patches, p))
        assert len(listed) == len(pixels) and set(listed) == pixels


def check(inputs: Inputs, samples: I64, seen: Sequence[Seen]) -> list[Patches]:
    """Compare the patches of all positions, and of two halves of them."""
    middle = middle_position(inputs, samples)
    found = []
    for first, last in (0, POSITIONS), (0, middle), (middle, POSITIONS), (middle, middle):
        found.append(list_patches(inputs, samples, first, last))
        check_half(found[-1], seen)
    return found


def test_patches_of_real_screens(real_screens: npt.NDArray[np.uint8]) -> None:
    rollout = SmallRollout(real_screens)
    seen = [seen_in(rollout.sample(s).images) for s in SAMPLES.tolist()]
    whole, above, below, none = check(rollout.inputs, SAMPLES, seen)
    assert 0.3 * len(whole.patch_ids) < len(above.patch_ids) < 0.7 * len(whole.patch_ids)
    assert len(above.patch_ids) + len(below.patch_ids) == len(whole.patch_ids) and not len(none.patch_ids)


def test_patches_of_pictures_that_are_all_different() -> None:
    inputs, pictures = drawings(12)
    seen = [seen_in(pictures[t : max(0, t - 2) - 1 if t > 2 else None : -1]) for t in range(12)]
    whole = check(inputs, np.arange(12), seen)[0]
    assert len(whole.strip_offsets) > 2048  # there is more than there was room for at first


def test_no_samples_and_empty_screens_have_no_patches() -> None:
    inputs = Inputs(np.zeros(0, np.int32), rollout_arrays(1), 1, 3, 0, 3)
    for samples in np.zeros(0, np.int64), np.zeros(3, np.int64):
        patches = list_patches(inputs, samples, 0, POSITIONS)
        assert len(patches.patch_ids) == len(patches.strips) == 0 and patches.strip_offsets.tolist() == [0]
        assert not patches.offsets.any()
        assert middle_position(inputs, samples) == POSITIONS


def test_pairs_are_bucketed_by_minibatch(real_screens: npt.NDArray[np.uint8]) -> None:
    halves = both_halves(SmallRollout(real_screens).inputs, SAMPLES)
    minibatches: list[list[int]] = [[7, 0, 3], [], [8, 2], [1, 5]]  # 4 and 6 are in none
    slots, buckets = slots_of(len(SAMPLES), minibatches), empty_buckets(halves, 4)
    for half, patches in enumerate(halves):
        rows, ids = buckets.slots[half], buckets.patch_ids[half]
        bucket_by_minibatch(patches, slots, buckets.offsets, rows, ids)
        for position in range(patches.first, patches.last):
            own = slice(patches.offsets[position], patches.offsets[position + 1])
            pairs = list(zip(patches.patch_ids[own].tolist(), patches.sample_ids[own].tolist(), strict=True))
            for b, wanted in enumerate(naive.bucket_by_minibatch(pairs, minibatches)):
                bucket = slice(buckets.offsets[b, position], buckets.offsets[b + 1, position])
                assert list(zip(ids[bucket].tolist(), rows[bucket].tolist(), strict=True)) == wanted
