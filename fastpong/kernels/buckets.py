"""The pairs of each minibatch: sorted out once an epoch, from those of the batch."""

from fastpong.arrays import I64
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.structs import Bucket, Buckets, Epoch, Patches


@kernel
def bucket_by_minibatch(
    patches: Patches,
    slots: I64,  # (listed,) minibatch · 2³² + row in it, of each listed sample; −1: in none
    buckets: Buckets,  # out, for these places
    first: int,  # the places first … last − 1 are this call's
    last: int,
) -> None:
    """Sort the pairs of each place by minibatch; patches stay in order. Twin: naive.bucket_by_minibatch."""
    offsets, rows, patch_ids = buckets.offsets, buckets.slots, buckets.patch_ids
    for place in range(first, last):
        begin, end = patches.offsets[place], patches.offsets[place + 1]
        for b in range(len(offsets)):
            offsets[b, place] = 0
        for k in range(begin, end):
            slot = slots[patches.sample_ids[k]]
            if slot >= 0:
                offsets[(slot >> 32) + 1, place] += 1
        offsets[0, place] = begin
        for b in range(1, len(offsets)):
            offsets[b, place] += offsets[b - 1, place]
        # Each minibatch's offset moves on to the next one's while it gets its pairs: afterwards all are one too far.
        for k in range(begin, end):
            slot = slots[patches.sample_ids[k]]
            if slot >= 0:
                at = offsets[slot >> 32, place]
                offsets[slot >> 32, place] += 1
                rows[at], patch_ids[at] = slot & 0xFFFFFFFF, patches.patch_ids[k]
        for b in range(len(offsets) - 1, 0, -1):
            offsets[b, place] = offsets[b - 1, place]
        offsets[0, place] = begin


@kernel
def bucket_of(part: int, b: int, epoch: Epoch) -> Bucket:
    """Return the pairs of minibatch b at a part of the places."""
    bounds, buckets = epoch.bounds, epoch.buckets
    return Bucket(
        buckets.offsets[b], buckets.offsets[b + 1], buckets.slots, buckets.patch_ids, bounds[part], bounds[part + 1]
    )
