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
def adam_rows(
    weights: F32,  # (rows, n) in and out
    gradient: F32,  # (rows, n) in; out: zeros in the rows that were used
    other: F32,  # (rows, n) the same: what is to be added to the gradient
    mean: F32,  # (rows, n) in and out: running mean of the gradient
    square: F32,  # (rows, n) in and out: running mean of the squared gradient
    rows: npt.NDArray[np.int64],  # (≥ count,) the rows to change
    count: int,
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    step: int,  # 1 for the first step
) -> None:
    """Step uphill with Adam in some rows only; the others keep weights and means.

    Kingma and Ba, "Adam", 2015, algorithm 1. Unlike there a row that a minibatch does not touch does not move:
    of 12 800 rows a minibatch of 1024 samples touches about 3400, and Pong has pixels that are never set.
    """
    b1, b2 = np.float32(beta_1), np.float32(beta_2)
    rate = np.float32(learning_rate / (1.0 - beta_1**step))
    root = np.float32(1.0 / np.sqrt(1.0 - beta_2**step))
    eps, one = np.float32(epsilon), np.float32(1.0)
    for i in range(count):
        w, m, v = weights[rows[i]], mean[rows[i]], square[rows[i]]
        part, rest = gradient[rows[i]], other[rows[i]]
        for j in range(w.shape[0]):
            g = part[j] + rest[j]
            m[j] = b1 * m[j] + (one - b1) * g
            v[j] = b2 * v[j] + (one - b2) * g * g
            w[j] += rate * m[j] / (root * np.sqrt(v[j]) + eps)
            part[j] = rest[j] = np.float32(0.0)
