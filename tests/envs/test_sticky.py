import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpong.envs.sticky import sticky_repeats


@given(st.integers(0, 2**63 - 1), st.integers(0, 500), st.integers(1, 9))
def test_sticky_repeats_depend_on_env_and_step_alone(seed: int, first: int, frame_skip: int) -> None:
    envs = np.array([3, 9, 4])
    whole = sticky_repeats(seed, envs, first, 12, frame_skip, 0.25)
    one = sticky_repeats(seed, envs[1:2], first + 5, 1, frame_skip, 0.25)
    assert whole[5, 1] == one[0, 0]
    assert whole.max() <= frame_skip


def test_sticky_repeats_have_the_emulators_distribution() -> None:
    """ALE draws at every frame whether the new action takes over: a geometric number of frames, cut at four."""
    for probability in (0.25, 0.7):
        repeats = sticky_repeats(5, np.arange(100), 0, 2000, 4, probability)
        share = np.bincount(repeats.ravel(), minlength=5) / repeats.size
        expected = [(1 - probability) * probability**k for k in range(4)] + [probability**4]
        np.testing.assert_allclose(share, expected, atol=0.005)
    assert not sticky_repeats(5, np.arange(10), 0, 100, 4, 0.0).any()
