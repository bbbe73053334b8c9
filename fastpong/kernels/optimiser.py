"""The step from a gradient to new weights."""

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import reassociated

F32 = npt.NDArray[np.float32]


@reassociated
def rmsprop(
    weights: F32,  # (any,) in and out
    gradient: F32,  # (any,) in; out: zeros, ready for the next batch
    cache: F32,  # (any,) in and out: running mean of the squared gradient
    learning_rate: float,
    decay: float,
    epsilon: float,
) -> None:
    """Step uphill: ``cache = d·cache + (1−d)·g²``, then ``w += lr·g / (√cache + ε)``.

    Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5 (2012), with the seeds' ε outside
    the root.
    """
    rate, keep, eps = np.float32(learning_rate), np.float32(decay), np.float32(epsilon)
    new = np.float32(1.0 - decay)
    for i in range(len(weights)):
        g = gradient[i]
        cache[i] = keep * cache[i] + new * g * g
        weights[i] += rate * g / (np.sqrt(cache[i]) + eps)
        gradient[i] = np.float32(0.0)
