"""The reference programs' two layers on sparse input: forward, actions and the policy gradient.

    hidden = relu(x · w1)        w1 is (inputs, hidden): a sample adds up about 60 of its rows
    logits = w2 · hidden         w2 is (actions − 1, hidden)

The last action's logit is 0. With two actions the softmax over (logit, 0) is the reference programs' sigmoid:
p(up) = 1 / (1 + exp(−logit)).
"""

import math
from typing import Any

import numpy as np

from fastpong.arrays import F32, I64, U8
from fastpong.kernels.compile.jit import fused
from fastpong.kernels.gathers import dot
from fastpong.kernels.sampling import choose
from fastpong.kernels.structs import Inputs, Mlp, Noise


@fused
def add_rows(
    changes: Any,  # int16 (…,) signed non-zeros of many samples: ±(position + 1)
    start: int,
    length: int,
    w1: F32,  # (inputs, hidden)
    out: F32,  # (hidden,) out: x · w1, before the relu
) -> None:
    """Add up the rows of one sample's non-zeros, four at a time: that saves three of four passes over `out`."""
    out[:] = 0.0
    units = out.shape[0]
    end = start + length
    k = start
    while k + 4 <= end:
        a, b, c, d = changes[k], changes[k + 1], changes[k + 2], changes[k + 3]
        row_a, row_b, row_c, row_d = w1[abs(a) - 1], w1[abs(b) - 1], w1[abs(c) - 1], w1[abs(d) - 1]
        sign_a = np.float32(1.0 if a > 0 else -1.0)
        sign_b = np.float32(1.0 if b > 0 else -1.0)
        sign_c = np.float32(1.0 if c > 0 else -1.0)
        sign_d = np.float32(1.0 if d > 0 else -1.0)
        for j in range(units):
            out[j] += (sign_a * row_a[j] + sign_b * row_b[j]) + (sign_c * row_c[j] + sign_d * row_d[j])
        k += 4
    while k < end:
        a = changes[k]
        row = w1[abs(a) - 1]
        sign = np.float32(1.0 if a > 0 else -1.0)
        for j in range(units):
            out[j] += sign * row[j]
        k += 1


@fused
def forward_one(
    changes: Any,  # int16 (…,)
    start: int,
    length: int,
    w1: F32,  # (inputs, hidden)
    w2: F32,  # (actions − 1, hidden)
    hidden: F32,  # (hidden,) out
    probs: F32,  # (actions,) out: probabilities of the actions
) -> None:
    """Compute hidden units and action probabilities of one sample. Twin: naive.mlp_hidden, naive.mlp_probs."""
    add_rows(changes, start, length, w1, hidden)
    units = hidden.shape[0]
    for j in range(units):
        hidden[j] = max(hidden[j], np.float32(0.0))
    last = probs.shape[0] - 1
    top = np.float32(0.0)  # the last action's logit
    for a in range(last):
        logit = dot(np.float32(0.0), w2, a, hidden)
        probs[a] = logit
        top = max(top, logit)
    total = np.float32(math.exp(-top))
    probs[last] = total
    for a in range(last):
        probs[a] = np.float32(math.exp(probs[a] - top))
        total += probs[a]
    for a in range(last + 1):
        probs[a] /= total


@fused
def act(
    inputs: Inputs,  # actions and log_probs: out, for the present steps
    first: int,  # index of env 0's present step
    members: I64,  # (n,) the envs that act
    weights: Mlp,
    noise: Noise,
) -> U8:
    """Choose an action for each of some envs, and return them: uint8 (n,). Twin: naive.mlp_probs."""
    arrays, chosen = inputs.arrays, np.empty(len(members), np.uint8)
    hidden = np.empty(weights.w1.shape[1], np.float32)
    probs = np.empty(inputs.num_actions, np.float32)
    for i in range(len(members)):
        sample = first + members[i]
        forward_one(
            inputs.images, arrays.offsets[sample], arrays.lengths[sample], weights.w1, weights.w2, hidden, probs
        )
        action = choose(probs, noise, members[i])
        arrays.actions[sample] = chosen[i] = action
        arrays.log_probs[sample] = math.log(max(probs[action], np.float32(1e-30)))
    return chosen


@fused
def policy_gradient(
    inputs: Inputs,
    samples: I64,  # (m,) the samples to sum over
    advantages: F32,  # (m,)
    weights: Mlp,
    gradient: Mlp,  # in and out: the gradient is added
) -> float:
    """Add Σ advantage · ∇ log p(action) over the samples, and return the sum of the policy's entropies in nats.

    For logit a the derivative of log p is (1 if a is the action else 0) − p(a): the reference programs' ``y − p``
    (Williams, "Simple statistical gradient-following algorithms", 1992, section 4). Twin: naive.policy_gradient.
    """
    changes, arrays = inputs.images, inputs.arrays
    units, last = weights.w1.shape[1], weights.w2.shape[0]
    hidden = np.empty(units, np.float32)
    grad_hidden = np.empty(units, np.float32)
    probs = np.empty(last + 1, np.float32)
    entropy = 0.0
    for i in range(len(samples)):
        sample = samples[i]
        start, length = arrays.offsets[sample], arrays.lengths[sample]
        forward_one(changes, start, length, weights.w1, weights.w2, hidden, probs)
        grad_hidden[:] = 0.0
        for a in range(last + 1):
            if probs[a] > 0.0:
                entropy -= probs[a] * math.log(probs[a])
            if a < last:
                taken = np.float32(1.0 if arrays.actions[sample] == a else 0.0)
                grad_logit = (taken - probs[a]) * advantages[i]
                for j in range(units):
                    gradient.w2[a, j] += grad_logit * hidden[j]
                    grad_hidden[j] += grad_logit * weights.w2[a, j]
        for j in range(units):
            grad_hidden[j] = grad_hidden[j] if hidden[j] > 0.0 else np.float32(0.0)
        for k in range(start, start + length):
            change = changes[k]
            row = gradient.w1[abs(change) - 1]
            sign = np.float32(1.0 if change > 0 else -1.0)
            for j in range(units):
                row[j] += sign * grad_hidden[j]
    return entropy
