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
