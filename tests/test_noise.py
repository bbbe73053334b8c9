import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpong import noise
from fastpong.kernels.noise import uniform
from tests import naive


def test_numpy_hash_matches_its_twin() -> None:
    envs, steps = np.arange(7, dtype=np.uint64), np.uint64(12345)
    comp = noise.hash64(np.full(7, 2**63 + 11, np.uint64), envs, np.full(7, steps))
    assert [int(x) for x in comp] == [naive.hash64(2**63 + 11, env, 12345) for env in range(7)]


def test_streams_and_seeds_differ() -> None:
    purposes = (noise.STICKY, noise.ACTION, noise.WEIGHTS, noise.SHUFFLE, noise.EVALUATION, noise.START, noise.CRITIC)
    keys = {noise.stream_key(seed, purpose) for seed in range(200) for purpose in purposes}
    assert len(keys) == 1400


@given(st.integers(0, 2**63 - 1), st.integers(0, 500), st.integers(1, 9))
def test_sticky_repeats_depend_on_env_and_step_alone(seed: int, first: int, frame_skip: int) -> None:
    envs = np.array([3, 9, 4])
    whole = noise.sticky_repeats(seed, envs, first, 12, frame_skip, 0.25)
    one = noise.sticky_repeats(seed, envs[1:2], first + 5, 1, frame_skip, 0.25)
    assert whole[5, 1] == one[0, 0]
    assert whole.max() <= frame_skip


def test_sticky_repeats_have_the_emulators_distribution() -> None:
    """ALE draws at every frame whether the new action takes over: a geometric number of frames, cut at four."""
    for probability in (0.25, 0.7):
        repeats = noise.sticky_repeats(5, np.arange(100), 0, 2000, 4, probability)
        share = np.bincount(repeats.ravel(), minlength=5) / repeats.size
        expected = [(1 - probability) * probability**k for k in range(4)] + [probability**4]
        np.testing.assert_allclose(share, expected, atol=0.005)
    assert not noise.sticky_repeats(5, np.arange(10), 0, 100, 4, 0.0).any()


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_compiled_draw_is_its_twins(seed: int, env: int, step: int) -> None:
    key = noise.stream_key(seed, noise.ACTION)
    assert uniform(np.uint64(key), env, step) == naive.uniform(key, env, step)  # type: ignore[arg-type]
