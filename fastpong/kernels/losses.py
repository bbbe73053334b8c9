"""The outputs of the convolutional network, and the gradient of PPO's loss.

The outputs are linear in the hidden units, with a bias: a logit per action, then the value of the state.
"""

import math

import numpy as np

from fastpong.arrays import F32, F64, I64
from fastpong.kernels.compile.jit import fused, kernel
from fastpong.kernels.gathers import dot
from fastpong.kernels.structs import Loss, Transitions


@kernel
def outputs(
    hidden: F32,  # (hidden,)
    w2: F32,  # (actions + 1, hidden + 1): logits and the value; the last column is the bias
    probs: F32,  # (actions,) out
    logs: F32,  # (actions,) out
) -> float:
    """Compute the probabilities of the actions and their logarithms, and return the value. Twin: naive.outputs."""
    units, actions = len(hidden), len(probs)
    value = top = np.float32(0.0)
    for a in range(actions + 1):
        total = dot(w2[a, units], w2, a, hidden)
        if a == actions:
            value = total
        else:
            logs[a] = total
            top = total if a == 0 else max(top, total)
    mass = np.float32(0.0)
    for a in range(actions):
        probs[a] = math.exp(logs[a] - top)
        mass += probs[a]
    shift = top + np.float32(math.log(mass))
    for a in range(actions):
        probs[a] /= mass
        logs[a] -= shift
    return float(value)


@fused
def loss_gradient(
    hidden: F32,  # (m, hidden) after the relu
    sample_ids: I64,  # (m,) as indices into the arrays of `transitions`
    transitions: Transitions,
    w2: F32,  # (actions + 1, hidden + 1)
    loss: Loss,
    grad_w2: F32,  # in and out: the gradient is added
    grad_hidden: F32,  # (m, hidden) out: 0 where the relu is off
    statistics: F64,  # (≥ 4,) in and out: sums of entropy, KL, clipped samples, squared value error
) -> None:
    """Add the gradient of some samples, uphill, to that of `w2`; write that of the hidden units.

    Per sample: min(ρ A, clip(ρ, 1 − clip_low, 1 + clip_high) A) + entropy_coef · H − value_coef · ½ (R − V)²
    (Schulman et al., "Proximal policy optimization algorithms", 2017, equations 7 and 9; the two sides of the clip as
    in Yu et al., "DAPO", 2025, equation 10). The KL divergence is estimated by (ρ − 1) − log ρ (Schulman,
    "Approximating KL divergence", 2020). Twin: naive.loss_gradient.
    """
    units, actions = hidden.shape[1], w2.shape[0] - 1
    probs, logs = np.empty(actions, np.float32), np.empty(actions, np.float32)
    slopes = np.empty(actions + 1, np.float32)
    for m in range(len(sample_ids)):
        sample, unit, grad = sample_ids[m], hidden[m], grad_hidden[m]
        error = transitions.returns[sample] - outputs(unit, w2, probs, logs)
        statistics[3] += error * error
        action, advantage = transitions.actions[sample], transitions.advantages[sample]
        log_ratio = logs[action] - transitions.log_probs[sample]
        ratio = math.exp(log_ratio)
        clipped = ratio > 1.0 + loss.clip_high if advantage > 0.0 else ratio < 1.0 - loss.clip_low
        entropy = 0.0
        for a in range(actions):
            entropy -= probs[a] * logs[a]
        statistics[0] += entropy
        statistics[1] += ratio - 1.0 - log_ratio
        statistics[2] += clipped
        pull = 0.0 if clipped else ratio * advantage
        for a in range(actions):
            taken = 1.0 if action == a else 0.0
            pulled = pull * (taken - probs[a]) - loss.entropy_coef * probs[a] * (logs[a] + entropy)
            slopes[a] = loss.scale * pulled
        slopes[actions] = loss.scale * loss.value_coef * error
        grad[:] = 0.0
        for a in range(actions + 1):
            slope, row, grad_row = slopes[a], w2[a], grad_w2[a]
            grad_row[units] += slope
            for j in range(units):
                grad_row[j] += slope * unit[j]
                grad[j] += slope * row[j]
        for j in range(units):
            grad[j] = grad[j] if unit[j] > 0.0 else np.float32(0.0)
