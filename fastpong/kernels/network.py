"""The policy network on sparse input: forward, actions and the policy gradient.

    hidden = relu(x · w1)        w1 is (inputs, hidden): a sample adds up about 60 of its rows
    logits = w2 · hidden         w2 is (actions − 1, hidden)

The last action's logit is 0. With two actions the softmax over (logit, 0) is the seeds' sigmoid:
p(up) = 1 / (1 + exp(−logit)).
"""

import math

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import reassociated
from fastpong.kernels.noise import choose

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
I16 = npt.NDArray[np.int16]
U8 = npt.NDArray[np.uint8]


@reassociated
def add_rows(
    changes: I16,  # (…,) signed non-zeros of many samples: ±(position + 1)
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


@reassociated
def forward_one(
    changes: I16,  # (…,)
    start: int,
    length: int,
    w1: F32,  # (inputs, hidden)
    w2: F32,  # (actions − 1, hidden)
    hidden: F32,  # (hidden,) out
    probs: F32,  # (actions,) out: probabilities of the actions
) -> None:
    """Compute hidden units and action probabilities of one sample."""
    add_rows(changes, start, length, w1, hidden)
    units = hidden.shape[0]
    for j in range(units):
        hidden[j] = max(hidden[j], np.float32(0.0))
    last = probs.shape[0] - 1
    top = np.float32(0.0)  # the last action's logit
    for a in range(last):
        logit = np.float32(0.0)
        for j in range(units):
            logit += w2[a, j] * hidden[j]
        probs[a] = logit
        top = max(top, logit)
    total = np.float32(math.exp(-top))
    probs[last] = total
    for a in range(last):
        probs[a] = np.float32(math.exp(probs[a] - top))
        total += probs[a]
    for a in range(last + 1):
        probs[a] /= total


@reassociated
def act(
    changes: I16,  # (…,)
    starts: I64,  # (games,)
    lengths: I64,  # (games,)
    games: I64,  # (n,) the games that act
    w1: F32,  # (inputs, hidden)
    w2: F32,  # (actions − 1, hidden)
    key: int,  # uint64 key of the action noise
    offset: int,  # global index of game 0 here
    step: int,  # steps since the run began
    choices: int,  # number of actions
    greedy: bool,  # take the likeliest action instead of drawing one
    actions: U8,  # (games,) out
    log_probs: F32,  # (games,) out: log of the probability of the action
) -> None:
    """Draw an action for each of some games from the policy."""
    hidden = np.empty(w1.shape[1], np.float32)
    probs = np.empty(choices, np.float32)
    for i in range(len(games)):
        game = games[i]
        forward_one(changes, starts[game], lengths[game], w1, w2, hidden, probs)
        action = choose(probs, greedy, key, offset + game, step)
        actions[game] = action
        log_probs[game] = math.log(max(probs[action], np.float32(1e-30)))


@reassociated
def policy_gradient(
    changes: I16,  # (…,)
    starts: I64,  # (rows · games,)
    lengths: I64,  # (rows · games,)
    actions: U8,  # (rows · games,)
    samples: I64,  # (m,) the samples to sum over, as indices into the three arrays above
    advantages: F32,  # (m,)
    w1: F32,  # (inputs, hidden)
    w2: F32,  # (actions − 1, hidden)
    grad_w1: F32,  # (inputs, hidden) in and out: the gradient is added
    grad_w2: F32,  # (actions − 1, hidden) in and out: the gradient is added
) -> float:
    """Add Σ advantage · ∇ log p(action) over the samples, and return the sum of the policy's entropies in nats.

    For logit a the derivative of log p is (1 if a is the action else 0) − p(a): the seeds' ``y − p``
    (Williams, "Simple statistical gradient-following algorithms", 1992, section 4).
    """
    units, last = w1.shape[1], w2.shape[0]
    hidden = np.empty(units, np.float32)
    grad_hidden = np.empty(units, np.float32)
    probs = np.empty(last + 1, np.float32)
    entropy = 0.0
    for i in range(len(samples)):
        sample = samples[i]
        start, length = starts[sample], lengths[sample]
        forward_one(changes, start, length, w1, w2, hidden, probs)
        grad_hidden[:] = 0.0
        for a in range(last + 1):
            if probs[a] > 0.0:
                entropy -= probs[a] * math.log(probs[a])
            if a < last:
                wanted = np.float32(1.0 if actions[sample] == a else 0.0)
                grad_logit = (wanted - probs[a]) * advantages[i]
                for j in range(units):
                    grad_w2[a, j] += grad_logit * hidden[j]
                    grad_hidden[j] += grad_logit * w2[a, j]
        for j in range(units):
            grad_hidden[j] = grad_hidden[j] if hidden[j] > 0.0 else np.float32(0.0)
        for k in range(start, start + length):
            change = changes[k]
            row = grad_w1[abs(change) - 1]
            sign = np.float32(1.0 if change > 0 else -1.0)
            for j in range(units):
                row[j] += sign * grad_hidden[j]
    return entropy
