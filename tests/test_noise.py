from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpong import noise
from fastpong.kernels.noise import uniform
from tests import naive


def test_numpy_hash_matches_its_twin() -> None:
    games, steps = np.arange(7, dtype=np.uint64), np.uint64(12345)
    comp = noise.hash64(np.full(7, 2**63 + 11, np.uint64), games, np.full(7, steps))
    assert [int(x) for x in comp] == [naive.hash64(2**63 + 11, game, 12345) for game in range(7)]


def test_streams_and_seeds_differ() -> None:
    keys = {noise.stream_key(seed, purpose) for seed in range(200) for purpose in (1, 2, 3)}
    assert len(keys) == 600


@given(st.integers(0, 2**63 - 1), st.integers(0, 500), st.integers(1, 9))
def test_sticky_repeats_depend_on_game_and_step_alone(seed: int, first: int, frame_skip: int) -> None:
    games = np.array([3, 9, 4])
    whole = noise.sticky_repeats(seed, games, first, 12, frame_skip, 0.25)
    one = noise.sticky_repeats(seed, games[1:2], first + 5, 1, frame_skip, 0.25)
    assert whole[5, 1] == one[0, 0]
    assert whole.max() <= frame_skip


def test_sticky_repeats_have_the_emulators_distribution() -> None:
    """ALE draws at every frame whether the new action takes over: a geometric number of frames, cut at four."""
    for sticky in (0.25, 0.7):
        repeats = noise.sticky_repeats(5, np.arange(100), 0, 2000, 4, sticky)
        share = np.bincount(repeats.ravel(), minlength=5) / repeats.size
        expected = [(1 - sticky) * sticky**k for k in range(4)] + [sticky**4]
        np.testing.assert_allclose(share, expected, atol=0.005)
    assert not noise.sticky_repeats(5, np.arange(10), 0, 100, 4, 0.0).any()


@given(st.integers(0, 2**40), st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_single_draw_is_the_kernels(seed: int, game: int, step: int) -> None:
    key = noise.stream_key(seed, noise.PRACTICE)
    wide: Any = np.uint64(key)
    drawn = noise.uniform_of(seed, noise.PRACTICE, game, step)
    assert drawn == uniform(wide, game, step) == (naive.hash64(key, game, step) >> 11) / 2**53
