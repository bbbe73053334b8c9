"""Which samples a pass of PPO goes over: mostly those whose gradient is large.

An agent that knows what to do takes its likeliest action nearly always, and there the gradient of the policy is nearly
0: after 3 M steps 1 % of the samples hold 90 % of its squares. To go over all of them is nearly all for nothing. So
each pass draws its samples, the larger its gradient the likelier, and weights each by one over its chance, which
leaves the mean of the gradient as it is. See Katharopoulos and Fleuret, "Not all samples are created equal: deep
learning with importance sampling", 2018, where the gradient of a sample is bounded by that of the last layer, as here.
"""

import numpy as np
import numpy.typing as npt

from fastpong.ranks import Ranks

F32 = npt.NDArray[np.float32]

LEAST = 0.2
"""The least chance: no sample weighs more than one over this, whatever it has come to be in later passes."""

SELDOM, SELDOM_WEIGHT, RARE = 0.1, 0.3, 0.01
"""Of actions that had to be taken: those less likely than `SELDOM` count less, and bad ones below `RARE` ever less."""


def temper(advantages: F32, log_probs: F32, planned: npt.NDArray[np.int8]) -> None:
    """Weaken, in place, what there is to learn from unlikely actions that the agent had to take.

    Drawn actions come up as often as they are likely: rare ones hardly ever. Those that had to be taken come up as
    often as they are planned. If they are good they are to spread. But most of them are blunders, with advantages of
    many standard deviations: together they would be most of the gradient, and only say what the agent knows. So bad
    ones count as if they came up in proportion to their probability π, from `RARE` down. (With all of their weight an
    agent that won 0.95 of its points was at 0.89 within 0.8 M steps, see docs/learning.md.)

    Parameters
    ----------
    advantages : float32 (…)
        Changed where the action was planned: multiplied by `SELDOM_WEIGHT` if π < `SELDOM`, and by min(1, π / RARE) if
        they are negative.
    log_probs : float32 (…)
        Natural logarithm of π, the probability that the action had when it was taken.
    planned : int8 (…)
        Not 0 where the action had to be taken.
    """
    had_to = planned != 0
    advantages[had_to & (log_probs < np.log(SELDOM))] *= np.float32(SELDOM_WEIGHT)
    bad = had_to & (advantages < 0.0)
    advantages[bad] *= np.minimum(np.float32(1.0), np.exp(log_probs[bad]) / np.float32(RARE))


def chances_of(advantages: F32, log_probs: F32, errors: F32, share: float, ranks: Ranks) -> F32:
    """Return the chance with which each sample is to be drawn: min(1, LEAST + (share − LEAST) · g / mean g).

    g² = p² / mean p² + e² / mean e², where p = A (1 − π) and e are the gradients by the outputs of the policy (up to a
    factor of at most √2) and of the value: so both keep their share, whichever is larger. Samples whose chance would
    be more than 1 make the mean of all smaller than `share`.

    Parameters
    ----------
    advantages : float32 (m,)
        A, standardised.
    log_probs : float32 (m,)
        Natural logarithm of π, the probability that the action had when it was taken.
    errors : float32 (m,)
        e: what the value lacked.
    share : float
        LEAST … 1; 1: all samples.
    ranks : Ranks
        Who learns together: the means are those of all their samples.

    Returns
    -------
    float32 (m,)
        LEAST … 1.
    """
    if share >= 1.0:
        return np.ones_like(advantages)
    pulls = advantages * -np.expm1(log_probs)
    squares = np.array([np.square(part, dtype=np.float64).sum() for part in (pulls, errors)])
    ranks.sum(squares)
    # In units of the sum of squares: what is common to all falls out below.
    policy, value = (np.float32(1.0 / max(1e-30, square)) for square in squares)
    sizes = np.sqrt(policy * np.square(pulls) + value * np.square(errors))
    sums = np.array([sizes.sum(dtype=np.float64), sizes.size])
    ranks.sum(sums)
    factor = np.float32((share - LEAST) * sums[1] / max(sums[0], 1e-30))
    chances: F32 = np.minimum(np.float32(1.0), np.float32(LEAST) + factor * sizes)
    return chances
