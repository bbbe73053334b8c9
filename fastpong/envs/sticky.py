"""Sticky actions: for how many frames of a step the action before it is repeated, whoever steps the env."""

import numpy as np

from fastpong.arrays import I64, U8
from fastpong.noise import STICKY, hash64, stream_key


def sticky_repeats(seed: int, env_ids: I64, first_step: int, steps: int, frame_skip: int, probability: float) -> U8:
    """Return for how many frames of each step the action of the step before is repeated: uint8 (steps, n).

    ALE draws once a frame whether the new action takes over, and it stays once it has (Machado et al., "Revisiting the
    Arcade Learning Environment", JAIR 2018, section 5.2). So the number of repeated frames is geometric, cut at the
    frame skip.

    `env_ids` int64 (n,) are global; steps are counted since the run began. Every four frames share one hash, 16 bits
    each, so `probability`, that of a repeat at each frame, is rounded to 1/65536.
    """
    key = np.full((1, 1), stream_key(seed, STICKY), np.uint64)
    env = env_ids.astype(np.uint64)[None, :]
    words = -(-frame_skip // 4)
    step = (np.arange(first_step, first_step + steps, dtype=np.uint64) * np.uint64(words))[:, None]
    threshold = np.uint64(round(probability * 65536))
    repeats = np.zeros((steps, len(env_ids)), np.uint8)
    still_old = np.ones((steps, len(env_ids)), np.bool_)
    for frame in range(frame_skip):
        if frame % 4 == 0:
            bits = hash64(key, env, step + np.uint64(frame // 4))
        still_old &= (bits & np.uint64(0xFFFF)) < threshold
        bits = bits >> np.uint64(16)
        repeats += still_old
    return repeats
