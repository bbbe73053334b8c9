"""The step from a gradient to new weights."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import kernel, reassociated

F32 = npt.NDArray[np.float32]

_NOTHING = np.float32(1e-30)
"""Adam's means that are not larger become 0: no weight moves by them.

The mean of what has no gradient any more, such as a unit that stays off, would decay to a denormal number and remain
one, since 0.9 of the smallest is rounded to the smallest. Processors take some 25 times as long with these.
"""


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


class Rates(NamedTuple):
    """Adam's settings at one of its steps; see `rates_of`."""

    beta_1: float
    beta_2: float
    rate: float
    root: float
    epsilon: float


@kernel
def rates_of(
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    step: int,  # 1 for the first step
) -> Rates:
    """Return the settings of a step; the corrections for the beginning are part of them."""
    return Rates(
        beta_1, beta_2, learning_rate / (1.0 - beta_1**step), 1.0 / float(np.sqrt(1.0 - beta_2**step)), epsilon
    )


@reassociated
def adam(
    weights: F32,  # (any,) in and out
    gradient: F32,  # (any,) in; out: zeros
    mean: F32,  # (any,) in and out: running mean of the gradient
    square: F32,  # (any,) in and out: running mean of the squared gradient
    rates: Rates,
) -> None:
    """Step uphill with Adam (Kingma and Ba, "Adam", 2015, algorithm 1); see `_NOTHING`."""
    b1, b2, rate = np.float32(rates.beta_1), np.float32(rates.beta_2), np.float32(rates.rate)
    root, epsilon, one = np.float32(rates.root), np.float32(rates.epsilon), np.float32(1.0)
    for j in range(len(weights)):
        g = gradient[j]
        m = b1 * mean[j] + (one - b1) * g
        m = m if abs(m) > _NOTHING else np.float32(0.0)
        mean[j] = m
        square[j] = b2 * square[j] + (one - b2) * g * g
        weights[j] += rate * m / (root * np.sqrt(square[j]) + epsilon)
        gradient[j] = np.float32(0.0)


@kernel
def adam_where_touched(
    weights: F32,  # (rows, columns) in and out, as are the next three: as for `adam`
    gradient: F32,
    mean: F32,
    square: F32,
    rates: Rates,
    touched: npt.NDArray[np.bool_],  # (n,) whether the rows i · height … (i + 1) · height − 1 have a gradient
    height: int,
    first: int,  # the flags first … last − 1 are this call's
    last: int,
) -> None:
    """Step uphill in the rows that were touched only; the others keep weights and means.

    Unlike in Adam as published, weights that a minibatch does not touch do not move: Pong has pixels that are never
    set.
    """
    size = height * weights.shape[1]
    w, g, m, v = weights.reshape(-1), gradient.reshape(-1), mean.reshape(-1), square.reshape(-1)
    for i in range(first, last):
        if touched[i]:
            part = slice(i * size, (i + 1) * size)
            adam(w[part], g[part], m[part], v[part], rates)
