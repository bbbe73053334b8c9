import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpong import noise
from fastpong.kernels.sampling import uniform
from tests import naive


def test_numpy_hash_matches_its_twin() -> None:
    envs, steps = np.arange(7, dtype=np.uint64), np.uint64(12345)
    comp = noise.hash64(np.full(7, 2**63 + 11, np.uint64), envs, np.full(7, steps))
    assert [int(x) for x in comp] == [naive.hash64(2**63 + 11, env, 12345) for env in range(7)]


def test_streams_and_seeds_differ() -> None:
    purposes = (noise.STICKY, noise.ACTION, noise.WEIGHTS, noise.SHUFFLE, noise.EVALUATION, noise.START)
    keys = {noise.stream_key(seed, purpose) for seed in range(200) for purpose in purposes}
    assert len(keys) == 1200


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_compiled_draw_is_its_twins(seed: int, env: int, step: int) -> None:
    key = noise.stream_key(seed, noise.ACTION)
    assert uniform(np.uint64(key), env, step) == naive.uniform(key, env, step)  # type: ignore[arg-type]
