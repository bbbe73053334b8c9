"""Compiled counter-based random numbers; see `fastpong.noise`."""

import numpy as np

from fastpong import noise
from fastpong.kernels.jit import kernel

hash64 = kernel(noise.hash64)


@kernel
def uniform(key: int, game: int, step: int) -> float:
    """Draw a number in [0, 1) with 53 random bits, for one game and step of the stream with this key (all uint64)."""
    return float(hash64(np.uint64(key), np.uint64(game), np.uint64(step)) >> np.uint64(11)) * 2.0**-53
