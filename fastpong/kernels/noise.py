"""Compiled counter-based random numbers; see `fastpong.noise`."""

import numpy as np
import numpy.typing as npt

from fastpong import noise
from fastpong.kernels.jit import kernel

hash64 = kernel(noise.hash64)


@kernel
def uniform(key: int, game: int, step: int) -> float:
    """Draw a number in [0, 1) with 53 random bits, for one game and step of the stream with this key (all uint64)."""
    return float(hash64(np.uint64(key), np.uint64(game), np.uint64(step)) >> np.uint64(11)) * 2.0**-53


@kernel
def choose(
    probs: npt.NDArray[np.float32],  # (actions,)
    greedy: bool,  # take the likeliest action instead of drawing one
    key: int,
    game: int,
    step: int,
) -> int:
    """Choose an action, by the number that `uniform` draws for this game and step."""
    action, last = 0, len(probs) - 1
    if greedy:
        for a in range(1, last + 1):
            if probs[a] > probs[action]:
                action = a
        return action
    left = uniform(key, game, step)
    while action < last and left >= probs[action]:
        left -= probs[action]
        action += 1
    return action
