"""The step from a gradient to new weights."""

import numpy as np

from fastpong.arrays import F32
from fastpong.kernels.compile.jit import fused, kernel
from fastpong.kernels.structs import Adam, Network, Rates
from fastpong.kernels.tiles import CHANNELS

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-5
"""Adam's constants; ε as in the PPO of OpenAI's Baselines."""

_ZERO_BELOW = np.float32(1e-30)
"""Adam's averages of the gradient that are not larger become 0: no weight moves by them.

The average of a gradient that stays 0, such as of a unit that stays off, would decay to a denormal number and remain
one, since 0.9 of the smallest is rounded to the smallest. Processors take some 25 times as long with these.
"""


@fused
def rmsprop(
    weights: F32,  # (any,) in and out
    gradient: F32,  # (any,) in; out: zeros, ready for the next batch
    cache: F32,  # (any,) in and out: running mean of the squared gradient
    learning_rate: float,
    decay: float,
    epsilon: float,
) -> None:
    """Step uphill: ``cache = d·cache + (1−d)·g²``, then ``w += lr·g / (√cache + ε)``.

    Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5 (2012), with the reference programs' ε
    outside the root. Twin: naive.rmsprop.
    """
    rate, keep, eps = np.float32(learning_rate), np.float32(decay), np.float32(epsilon)
    new = np.float32(1.0 - decay)
    for i in range(len(weights)):
        g = gradient[i]
        cache[i] = keep * cache[i] + new * g * g
        weights[i] += rate * g / (np.sqrt(cache[i]) + eps)
        gradient[i] = np.float32(0.0)


@kernel
def rates_of(
    learning_rate: float,
    step: int,  # 1 for the first step
) -> Rates:
    """Return Adam's constants at a step; the corrections for the beginning are part of them."""
    return Rates(
        BETA_1, BETA_2, learning_rate / (1.0 - BETA_1**step), 1.0 / float(np.sqrt(1.0 - BETA_2**step)), EPSILON
    )


@fused
def adam(
    weights: F32,  # (any,) in and out
    gradient: F32,  # (any,) in; out: zeros
    exp_avg: F32,  # (any,) in and out: running mean of the gradient
    exp_avg_sq: F32,  # (any,) in and out: running mean of the squared gradient
    rates: Rates,
) -> None:
    """Step uphill with Adam (Kingma and Ba, "Adam", 2015, algorithm 1). Twin: naive.adam."""
    b1, b2, rate = np.float32(rates.beta_1), np.float32(rates.beta_2), np.float32(rates.rate)
    root, epsilon, one = np.float32(rates.root), np.float32(rates.epsilon), np.float32(1.0)
    for j in range(len(weights)):
        g = gradient[j]
        m = b1 * exp_avg[j] + (one - b1) * g
        m = m if abs(m) > _ZERO_BELOW else np.float32(0.0)
        exp_avg[j] = m
        exp_avg_sq[j] = b2 * exp_avg_sq[j] + (one - b2) * g * g
        weights[j] += rate * m / (root * np.sqrt(exp_avg_sq[j]) + epsilon)
        gradient[j] = np.float32(0.0)


@kernel
def adam_where_touched(
    network: Network,  # w1 in and out
    gradient: Network,  # w1 in; out: zeros where touched
    state: Adam,  # in and out
    rates: Rates,
    first: int,  # the positions first … last − 1 are this call's
    last: int,
) -> None:
    """Step uphill in the rows of `w1` whose position was touched; the others keep weights and averages.

    Unlike in Adam as published, weights that a minibatch does not touch do not move: Pong has pixels that are never
    set.
    """
    size = CHANNELS * network.w1.shape[1]
    w, g = network.w1.reshape(-1), gradient.w1.reshape(-1)
    m, v = state.exp_avg.w1.reshape(-1), state.exp_avg_sq.w1.reshape(-1)
    for i in range(first, last):
        if state.touched[i]:
            part = slice(i * size, (i + 1) * size)
            adam(w[part], g[part], m[part], v[part], rates)
