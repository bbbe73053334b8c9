"""Compiled counter-based random numbers; see `fastpong.noise`."""

import numpy as np

from fastpong import noise
from fastpong.arrays import F32
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.structs import Noise

hash64 = kernel(noise.hash64)


@kernel
def uniform(key: int, env: int, step: int) -> float:
    """Draw a number in [0, 1) with 53 random bits, for one env and step of the stream with this key (all uint64).

    Twin: naive.uniform.
    """
    return float(hash64(np.uint64(key), np.uint64(env), np.uint64(step)) >> np.uint64(11)) * 2.0**-53


@kernel
def choose(
    probs: F32,  # (actions,)
    noise: Noise,
    env: int,  # as the caller counts them
) -> int:
    """Choose an action, by the number that `uniform` draws for this env and step. Twin: naive.choose."""
    action, last = 0, len(probs) - 1
    if noise.greedy:
        for a in range(1, last + 1):
            if probs[a] > probs[action]:
                action = a
        return action
    left = uniform(noise.key, noise.env_offset + env, noise.step)
    while action < last and left >= probs[action]:
        left -= probs[action]
        action += 1
    return action
