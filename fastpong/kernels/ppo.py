"""Clipped policy gradients with a value output: advantages, and the gradient of a minibatch."""

import math

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import kernel, reassociated
from fastpong.kernels.network import forward_one

F32 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


@kernel
def advantages_of(
    rewards: I8,  # (rows, games)
    ended: I8,  # (rows, games)
    values: F32,  # (rows + 1, games) the last row is the state after the last step
    gamma: float,  # discount factor per step
    lam: float,  # λ, the decay of the weights of longer returns
    advantages: F32,  # (rows, games) out
    targets: F32,  # (rows, games) out: advantage + value, what the value should have been
) -> None:
    """Estimate advantages with GAE (Schulman et al., "High-dimensional continuous control", 2016, equation 16).

    A point ends an episode here: nothing after it is credited to what came before.
    """
    rows, games = rewards.shape
    for n in range(games):
        running = 0.0
        for t in range(rows - 1, -1, -1):
            over = rewards[t, n] != 0 or ended[t, n] != 0
            after = 0.0 if over else float(values[t + 1, n])
            delta = rewards[t, n] + gamma * after - values[t, n]
            running = delta + (0.0 if over else gamma * lam * running)
            advantages[t, n] = running
            targets[t, n] = running + values[t, n]


@reassociated
def clipped_gradient(
    changes: I16,  # (…,)
    starts: I64,  # (rows · games,)
    lengths: I64,  # (rows · games,)
    actions: U8,  # (rows · games,)
    log_probs: F32,  # (rows · games,) of the actions when they were taken
    advantages: F32,  # (rows · games,) standardised
    targets: F32,  # (rows · games,)
    samples: I64,  # (m,) the samples to add, as indices into the arrays above
    w1: F32,  # (inputs, hidden)
    w2: F32,  # (actions, hidden): actions − 1 logits and the value
    clip: float,  # the ratio of probabilities has no gradient beyond 1 ± clip
    entropy_weight: float,
    value_weight: float,
    scale: float,  # weight of a sample: 1 / size of the minibatch
    grad_w1: F32,  # (inputs, hidden) in and out: the gradient is added
    grad_w2: F32,  # (actions, hidden) in and out: the gradient is added
    marks: I64,  # (inputs,) in and out: equal to `mark` for rows of grad_w1 that are listed already
    mark: int,  # a number that was never used with these marks
    touched: I64,  # (inputs,) out: the rows of grad_w1 that were added to
    statistics: npt.NDArray[np.float64],  # (4,) in and out: sums of entropy, KL, clipped samples, squared value error
) -> int:
    """Add the gradient of some samples, uphill, and return how many rows of `w1` it touches.

    Per sample: min(ρ A, clip(ρ, 1 − c, 1 + c) A) + entropy_weight · H − value_weight · ½ (target − V)²
    (Schulman et al., "Proximal policy optimization algorithms", 2017, equations 7 and 9). The KL divergence is
    estimated by (ρ − 1) − log ρ.
    """
    units, last = w1.shape[1], w2.shape[0] - 1
    hidden = np.empty(units, np.float32)
    grad_hidden = np.empty(units, np.float32)
    probs = np.empty(last + 1, np.float32)
    count = 0
    for i in range(len(samples)):
        sample = samples[i]
        start, length = starts[sample], lengths[sample]
        error = targets[sample] - forward_one(changes, start, length, w1, w2, hidden, probs)
        action, advantage = actions[sample], advantages[sample]
        log_ratio = math.log(max(probs[action], np.float32(1e-30))) - log_probs[sample]
        ratio = math.exp(log_ratio)
        clipped = ratio > 1.0 + clip if advantage > 0.0 else ratio < 1.0 - clip
        entropy = 0.0
        for a in range(last + 1):
            if probs[a] > 0.0:
                entropy -= probs[a] * math.log(probs[a])
        statistics[0] += entropy
        statistics[1] += ratio - 1.0 - log_ratio
        statistics[2] += clipped
        statistics[3] += error * error
        pull = 0.0 if clipped else ratio * advantage
        grad_hidden[:] = 0.0
        for a in range(last + 1):
            if a < last:
                wanted = 1.0 if action == a else 0.0
                surprise = math.log(max(probs[a], np.float32(1e-30))) + entropy
                slope = pull * (wanted - probs[a]) - entropy_weight * probs[a] * surprise
            else:
                slope = value_weight * error
            grad_output = np.float32(scale * slope)
            for j in range(units):
                grad_w2[a, j] += grad_output * hidden[j]
                grad_hidden[j] += grad_output * w2[a, j]
        for j in range(units):
            grad_hidden[j] = grad_hidden[j] if hidden[j] > 0.0 else np.float32(0.0)
        for k in range(start, start + length):
            change = changes[k]
            at = abs(change) - 1
            if marks[at] != mark:
                marks[at] = mark
                touched[count] = at
                count += 1
            row = grad_w1[at]
            sign = np.float32(1.0 if change > 0 else -1.0)
            for j in range(units):
                row[j] += sign * grad_hidden[j]
    return count


@kernel
def merge_rows(
    gradient: F32,  # (inputs, hidden) in and out: the rows of `other` are added
    marks: I64,  # (inputs,) in and out: equal to `mark` for the rows listed in `touched`
    mark: int,
    touched: I64,  # (inputs,) in and out: the rows of `gradient` that are not zero
    count: int,  # how many they are
    other: F32,  # (inputs, hidden) in; out: zeros
    other_touched: I64,  # (inputs,) the rows of `other` that are not zero
    other_count: int,
) -> int:
    """Add a gradient to another one, row by row, and return the new number of rows in `touched`."""
    for i in range(other_count):
        at = other_touched[i]
        into, row = gradient[at], other[at]
        for j in range(into.shape[0]):
            into[j] += row[j]
            row[j] = np.float32(0.0)
        if marks[at] != mark:
            marks[at] = mark
            touched[count] = at
            count += 1
    return count
