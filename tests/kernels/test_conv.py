"""The convolution and the hidden layer: prefix sums, pairs grouped by patch, and the hidden units of real screens."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong.kernels import conv
from fastpong.kernels.conv import GROUP_BLOCK, list_groups, list_new
from fastpong.kernels.structs import Bucket, Workspace
from tests import naive
from tests.support.kernels import SmallRollout, listed, random_network

PATCHES = 90
SORTED = st.lists(st.integers(0, PATCHES - 1), min_size=1, max_size=150).map(sorted)


@given(SORTED, st.integers(0, 5), st.integers(0, 5))
def test_pairs_are_grouped(ids: list[int], before: int, after: int) -> None:
    around = np.array([ids[0]] * before + ids + [ids[-1]] * after, np.int32)  # of other minibatches
    begin, end = before, before + len(ids)
    patches, groups = np.full(len(ids), -7), np.full(len(ids), -7)
    heads = np.full(len(ids) + 1, -7)
    count = list_groups(around, begin, end, patches, heads, groups)
    wanted_patches, wanted_heads, wanted_groups = naive.groups(around.tolist(), begin, end)
    assert patches[:count].tolist() == wanted_patches
    assert heads[: count + 1].tolist() == wanted_heads
    assert groups.tolist() == [group % GROUP_BLOCK for group in wanted_groups]


@given(st.lists(SORTED.map(lambda ids: sorted(set(ids))), min_size=1, max_size=4))
def test_each_patch_is_new_once(positions: list[list[int]]) -> None:
    visited, new, known = np.zeros(PATCHES, np.int64), np.full(PATCHES + 1, -7), 0
    wanted: list[int] = []
    for groups in positions:
        known = list_new(np.array(groups), len(groups), visited, 3, new, known)
        wanted += [patch for patch in groups if patch not in wanted]
        assert new[:known].tolist() == wanted
    assert np.flatnonzero(visited == 3).tolist() == sorted(wanted)


def test_there_is_room_when_all_patches_are_known() -> None:
    everything, visited, new = np.arange(PATCHES), np.zeros(PATCHES, np.int64), np.full(PATCHES + 1, -7)
    assert list_new(everything, PATCHES, visited, 1, new, 0) == PATCHES
    assert list_new(everything, PATCHES, visited, 1, new, PATCHES) == PATCHES  # writes new[PATCHES]: it does not count
    assert new[:PATCHES].tolist() == everything.tolist()


@pytest.mark.parametrize("images", [1, 3])
def test_prefix_sums_and_their_gradient(images: int) -> None:
    kernel = random_network(1, 64, images).kernel
    sums = conv.prefix_sums(kernel)
    np.testing.assert_allclose(sums, naive.prefix_sums(kernel).reshape(sums.shape), rtol=1e-5, atol=1e-5)
    # The sums are linear, so ⟨gradient, kernel⟩ = ⟨grad_sums, sums⟩, and more is added to what there is.
    grad_sums = np.random.default_rng(5).standard_normal(sums.shape).astype(np.float32)
    product, gradient = float(np.vdot(grad_sums.astype(float), sums)), np.full(kernel.shape, 2.0, np.float32)
    conv.prefix_gradient(grad_sums, gradient)
    assert np.vdot(gradient.astype(float) - 2.0, kernel) == pytest.approx(product, rel=1e-4)
    assert not grad_sums.any()


@pytest.mark.parametrize("actions", [2, 3])
def test_hidden_units(real_screens: npt.NDArray[np.uint8], actions: int) -> None:
    rollout, samples = SmallRollout(real_screens, actions), np.array([12, 1, 8, 9, 13, 0])
    network = rollout.network
    totals, sums = np.zeros((6, network.w1.shape[1]), np.int32), conv.prefix_sums(network.kernel)
    those = listed(rollout.inputs, samples)
    patches, stamps = those.patches, np.zeros(len(those.patches.strip_offsets) - 1, np.int64)
    channels = np.zeros((len(stamps), 16), np.float32)
    work = Workspace(stamps, stamps, channels, channels, sums)
    everywhere = []
    for order in those.bounds, those.bounds[::-1]:
        totals[:], stamps[:] = 0, 0
        for first, last in (sorted(pair) for pair in zip(order, order[1:], strict=False)):
            pairs = patches.offsets[:-1], patches.offsets[1:], patches.sample_ids, patches.patch_ids
            conv.conv_hidden_forward(patches, Bucket(*pairs, first, last), network, sums, work, 1, totals)
        everywhere.append(totals.copy())
    np.testing.assert_array_equal(everywhere[0], everywhere[1])  # the order of sums does not matter
    hidden = conv.finish_hidden(totals[None], 0, 6, *conv.side_rows(rollout.inputs, samples), network.w1)
    for m, sample in enumerate(samples.tolist()):
        ref = naive.hidden_units(rollout.sample(sample), actions, network.kernel, network.bias, network.w1)
        np.testing.assert_allclose(hidden[m], ref, rtol=1e-4, atol=1e-4)
        assert ref.any() and not ref.all()
