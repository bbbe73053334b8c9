"""A network on the convolution whose only output is the value of a state: what it says, and its gradient.

The value is linear in the hidden units, with a bias.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels import convolution
from fastpong.kernels.aligned import new_matrix
from fastpong.kernels.jit import kernel, reassociated
from fastpong.kernels.tiles import CHANNELS

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


@reassociated
def _value(
    hidden: F32,  # (hidden,)
    w2: F32,  # (1, hidden + 1) the last column is the bias
) -> float:
    units, row = len(hidden), w2[0]
    total = row[units]
    for j in range(units):
        total += row[j] * hidden[j]
    return float(total)


@kernel
def values_of(
    views: Any,  # Views of either half of the sites
    bounds: I32,  # (parts + 1, 441) see sites.deal; part b has the samples b · size … (b + 1) · size − 1
    rows: Any,  # of either half, see sites.deal, here and in the next
    kinds: Any,
    size: int,
    first: int,  # the parts first … last − 1 are this call's
    last: int,
    ages: I64,  # (rows · games,)
    games: int,  # the sample before sample s is s − games
    actions: U8,  # (rows · games,)
    samples: I64,  # (listed,) the listed samples, as indices into these two arrays
    weights: F32,  # (frames, 8, 4, 64) the kernel of the convolution
    bias: F32,  # (16,) of its channels
    w1: F32,  # (7072, hidden)
    w2: F32,  # (1, hidden + 1)
    past: int,  # how many of the last actions are seen
    choices: int,  # how many actions there are
    values: F32,  # (listed,) out, for these parts
) -> None:
    """Compute the values of some samples."""
    sums, room = convolution.prefix_sums(weights), new_matrix(size, w1.shape[1])
    counts = len(views[0].bounds) - 1, len(views[1].bounds) - 1
    channels = np.int64(CHANNELS)  # Numba compiles once more for numbers that it knows
    acts, known = (new_matrix(counts[0], channels), new_matrix(counts[1], channels)), np.int64(1)
    # The same mark for all parts, since the weights stay: the channels of a view are computed once.
    marks = np.zeros(counts[0], np.int64), np.zeros(counts[1], np.int64)
    for b in range(first, last):
        part = samples[b * size : (b + 1) * size]
        hidden = room[: len(part)]
        hidden[:] = np.float32(0.0)
        for half in range(2):
            convolution.add_sites(
                views[half], bounds[b], bounds[b + 1], rows[half], kinds[half], sums, bias, w1, marks[half], known,
                acts[half], hidden,
            )  # fmt: skip
        convolution.add_facts(ages, actions, games, part, past, choices, w1, hidden)
        for m in range(len(part)):
            values[b * size + m] = _value(hidden[m], w2)


@kernel
def value_gradient(
    hidden: F32,  # (m, hidden) after the relu
    picks: I64,  # (m,) the samples, as indices into `targets`
    targets: F32,  # (listed,) what the values should have been
    w2: F32,  # (1, hidden + 1)
    scale: float,  # weight of a sample: 1 / size of the minibatch
    grad_w2: F32,  # in and out: the gradient is added
    grad_hidden: F32,  # (m, hidden) out: 0 where the relu is off
) -> None:
    """Add the gradient of some samples, uphill, to that of `w2`; write that of the hidden units.

    Per sample: −½ (target − V)².
    """
    units, row, grad_row = hidden.shape[1], w2[0], grad_w2[0]
    for m in range(len(picks)):
        unit, grad = hidden[m], grad_hidden[m]
        slope = np.float32(scale * (targets[picks[m]] - _value(unit, w2)))
        grad_row[units] += slope
        for j in range(units):
            grad_row[j] += slope * unit[j]
            grad[j] = slope * row[j] if unit[j] > 0.0 else np.float32(0.0)
