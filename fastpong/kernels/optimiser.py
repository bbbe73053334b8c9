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


@reassociated
def adam(
    weights: F32,  # (any,) in and out
    gradient: F32,  # (any,) in; out: zeros where it was used
    other: F32,  # (any,) the same: what is to be added to the gradient
    mean: F32,  # (any,) in and out: running mean of the gradient
    square: F32,  # (any,) in and out: running mean of the squared gradient
    spans: npt.NDArray[np.int64],  # (n, 2) begins and ends of what is to be changed
    first: int,
    last: int,  # the spans first … last − 1 are this call's
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    step: int,  # 1 for the first step
) -> None:
    """Step uphill with Adam in some spans only; the rest keeps weights and means.

    Kingma and Ba, "Adam", 2015, algorithm 1. Unlike there, weights that a minibatch does not touch do not move: Pong
    has pixels that are never set.
    """
    b1, b2 = np.float32(beta_1), np.float32(beta_2)
    rate = np.float32(learning_rate / (1.0 - beta_1**step))
    root = np.float32(1.0 / np.sqrt(1.0 - beta_2**step))
    eps, one = np.float32(epsilon), np.float32(1.0)
    for i in range(first, last):
        part = slice(spans[i, 0], spans[i, 1])
        # Views, so that no index can be negative: Numba's loops over those that could are not vectorised.
        w, m, v, mine, others = weights[part], mean[part], square[part], gradient[part], other[part]
        for j in range(len(w)):
            g = mine[j] + others[j]
            m[j] = b1 * m[j] + (one - b1) * g
            v[j] = b2 * v[j] + (one - b2) * g * g
            w[j] += rate * m[j] / (root * np.sqrt(v[j]) + eps)
            mine[j] = others[j] = np.float32(0.0)
