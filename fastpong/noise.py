"""Counter-based random numbers: the same for an env and a step, in whichever order they are drawn.

A generator with a state would tie a run to the order in which envs are stepped. Here every number is a hash
of (run seed, purpose, env, step), so that grouping, the number of workers and resuming change nothing.

The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014, figure 19), applied once for the env and once for the step.
`hash64` is written so that NumPy runs it on arrays in the env subprocesses, and numba compiles it unchanged
in ``kernels/sampling.py``.
"""

from typing import Any

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MUL_1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)

STICKY, ACTION, WEIGHTS, SHUFFLE, EVALUATION, START = 1, 2, 3, 4, 5, 6
"""Purposes: independent streams of one run seed."""


def hash64(key: Any, env: Any, step: Any) -> Any:
    """Hash a stream key, an env index and a step to 64 well-mixed bits.

    All are uint64: scalars under Numba, or arrays that broadcast under NumPy.
    """
    x = key + env * _GOLDEN
    x = (x ^ (x >> _S30)) * _MUL_1
    x = (x ^ (x >> _S27)) * _MUL_2
    x = (x ^ (x >> _S31)) + step * _GOLDEN
    x = (x ^ (x >> _S30)) * _MUL_1
    x = (x ^ (x >> _S27)) * _MUL_2
    return x ^ (x >> _S31)


def stream_key(seed: int, purpose: int) -> int:
    """Key of one stream (`STICKY`, `ACTION`, …) of the run with this seed, in 0 … 2⁶⁴ − 1."""
    array = np.array([[seed & _MASK], [purpose]], dtype=np.uint64)
    return int(hash64(array[0], array[1], np.zeros(1, np.uint64))[0])
