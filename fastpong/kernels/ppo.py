"""Clipped policy gradients on the convolutional network: advantages, and the gradient of a minibatch."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.kernels.acting import outputs
from fastpong.kernels.jit import kernel, reassociated

F32 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


@kernel
def advantages_of(
    rewards: I8,  # (rows, games)
    ended: I8,  # (rows, games)
    values: F32,  # (rows + 1, games) the last row is the state after the last step
    gamma: float,  # discount factor per step
    lam: float,  # λ, the decay of the weights of longer returns, for the advantages
    value_lam: float,  # the same for the targets
    traces: F32,  # (rows, games) how likely the action was, if it was not the agent's choice; otherwise 1
    advantages: F32,  # (rows, games) out
    targets: F32,  # (rows, games) out: the returns, which the value should have been
) -> None:
    """Estimate advantages with GAE (Schulman et al., "High-dimensional continuous control", 2016, equation 16).

    A point ends an episode here: nothing after it is credited to what came before. The returns have a λ of their own,
    as in Yuan et al., "What's behind PPO's collapse in long-CoT", 2025 (decoupled GAE): the nearer it is to 1, the
    sooner the value knows what rare shots are worth.

    What comes of an action that the agent had not chosen is credited to that action, and to what was before only as far
    as the agent might have done the same (`traces`, as in Munos et al., "Safe and efficient off-policy reinforcement
    learning", 2016, equation 3 with c = λπ, for actions that were certain to be taken).
    """
    rows, games = rewards.shape
    for n in range(games):
        running = longer = 0.0
        for t in range(rows - 1, -1, -1):
            over = rewards[t, n] != 0 or ended[t, n] != 0
            after = 0.0 if over else float(values[t + 1, n])
            delta = rewards[t, n] + gamma * after - values[t, n]
            running = delta + (0.0 if over else gamma * lam * running)
            longer = delta + (0.0 if over else gamma * value_lam * longer)
            advantages[t, n] = running
            running *= traces[t, n]
            longer *= traces[t, n]
            targets[t, n] = longer + values[t, n]


class Steps(NamedTuple):
    """What was done in each step of all games, and what is to be learned from it; arrays (rows · games,).

    Attributes
    ----------
    ages : int64
        Steps of the game before this one.
    actions : uint8
        What was done.
    log_probs : float32
        Log of the action's probability when it was taken.
    advantages : float32
        Standardised.
    targets : float32
        What the value should have been.
    importance : float32
        How much each sample counts: 1 / the chance that it is among those of a pass.
    planned : int8
        Not 0 where the action was not the agent's choice.
    """

    ages: I64
    actions: U8
    log_probs: F32
    advantages: F32
    targets: F32
    importance: F32
    planned: I8


class Objective(NamedTuple):
    """Constants of the objective, see `clipped_gradient`: the sides of the clip, and two weights."""

    clip: float
    clip_high: float
    entropy_weight: float
    value_weight: float


@reassociated
def clipped_gradient(
    hidden: F32,  # (m, hidden) after the relu
    samples: I64,  # (m,) as indices into the arrays of `steps`
    steps: Steps,
    w2: F32,  # (actions + 1, hidden + 1)
    objective: Objective,
    scale: float,  # weight of a sample: 1 / size of the minibatch
    grad_w2: F32,  # in and out: the gradient is added
    grad_hidden: F32,  # (m, hidden) out: 0 where the relu is off
    statistics: npt.NDArray[np.float64],  # (4,) in and out: sums of entropy, KL, clipped samples, squared value error
) -> None:
    """Add the gradient of some samples, uphill, to that of `w2`; write that of the hidden units.

    Per sample: min(ρ A, clip(ρ, 1 − clip, 1 + clip_high) A) + entropy_weight · H − value_weight · ½ (target − V)²
    (Schulman et al., "Proximal policy optimization algorithms", 2017, equations 7 and 9; the two sides of the clip as
    in Yu et al., "DAPO", 2025, equation 10). The KL divergence is estimated by (ρ − 1) − log ρ.
    """
    units, choices = hidden.shape[1], w2.shape[0] - 1
    probs, logs = np.empty(choices, np.float32), np.empty(choices, np.float32)
    slopes = np.empty(choices + 1, np.float32)
    for m in range(len(samples)):
        sample, unit, grad = samples[m], hidden[m], grad_hidden[m]
        error = steps.targets[sample] - outputs(unit, w2, probs, logs)
        action, advantage, weight = steps.actions[sample], steps.advantages[sample], steps.importance[sample]
        log_ratio = logs[action] - steps.log_probs[sample]
        ratio = math.exp(log_ratio)
        clipped = ratio > 1.0 + objective.clip_high if advantage > 0.0 else ratio < 1.0 - objective.clip
        entropy = 0.0
        for a in range(choices):
            entropy -= probs[a] * logs[a]
        statistics[0] += weight * entropy
        statistics[1] += weight * (ratio - 1.0 - log_ratio) * (steps.planned[sample] == 0)
        statistics[2] += weight * clipped
        statistics[3] += weight * error * error
        pull = 0.0 if clipped else ratio * advantage
        for a in range(choices):
            wanted = 1.0 if action == a else 0.0
            pulled = pull * (wanted - probs[a]) - objective.entropy_weight * probs[a] * (logs[a] + entropy)
            slopes[a] = scale * weight * pulled
        slopes[choices] = scale * weight * objective.value_weight * error
        grad[:] = 0.0
        for a in range(choices + 1):
            slope, row, grad_row = slopes[a], w2[a], grad_w2[a]
            grad_row[units] += slope
            for j in range(units):
                grad_row[j] += slope * unit[j]
                grad[j] += slope * row[j]
        for j in range(units):
            grad[j] = grad[j] if unit[j] > 0.0 else np.float32(0.0)
