"""A network on the convolution whose only output is the value of a state: what it says, and its gradient.

The value is linear in the hidden units, with a bias.
"""

import numpy as np
import numpy.typing as npt

from fastpong.kernels import convolution
from fastpong.kernels.aligned import new_matrix
from fastpong.kernels.jit import inlined, reassociated

F32 = npt.NDArray[np.float32]
I16 = npt.NDArray[np.int16]
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


@reassociated
def values_of(
    bounds: I64,  # see sites.list_sites, here and in the next three
    sites: I16,
    run_bounds: I64,
    moves: I64,
    picks: I64,  # (m,) the samples wanted, as indices into what was listed
    ages: I64,  # (rows · games,)
    games: int,  # the sample before sample s is s − games
    actions: U8,  # (rows · games,)
    samples: I64,  # (m,) the same samples, as indices into the arrays of (rows · games,)
    weights: F32,  # (frames, 8, 4, 64) the kernel of the convolution
    bias: F32,  # (16,) of its channels
    w1: F32,  # (7072, hidden)
    w2: F32,  # (1, hidden + 1)
    past: int,  # how many of the last actions are seen
    choices: int,  # how many actions there are
    values: F32,  # (listed,) out, at `picks`
) -> None:
    """Compute the values of some samples."""
    hidden = convolution.forward(
        bounds, sites, run_bounds, moves, picks, ages, games, actions, samples, weights, bias, w1, past, choices
    )[0]
    for m in range(len(picks)):
        values[picks[m]] = _value(hidden[m], w2)


@inlined
def value_gradient(
    bounds: I64,  # as for values_of, here and in the next twelve
    sites: I16,
    run_bounds: I64,
    moves: I64,
    picks: I64,
    ages: I64,
    games: int,
    actions: U8,
    samples: I64,
    weights: F32,
    bias: F32,
    w1: F32,
    w2: F32,
    past: int,
    choices: int,
    targets: F32,  # (listed,) what the values should have been
    scale: float,  # weight of a sample: 1 / size of the minibatch
    grad_weights: F32,  # in and out: the gradient is added, here and in the next three
    grad_bias: F32,
    grad_w1: F32,
    grad_w2: F32,
    touched: npt.NDArray[np.bool_],  # (442,) in and out: set for the sites whose rows of grad_w1 were added to
) -> None:
    """Add the gradient of −½ (target − V)² over some samples, uphill."""
    hidden, acts, groups, firsts, places, owners = convolution.forward(
        bounds, sites, run_bounds, moves, picks, ages, games, actions, samples, weights, bias, w1, past, choices
    )
    units = hidden.shape[1]
    grad_hidden = new_matrix(*hidden.shape)
    row, grad_row = w2[0], grad_w2[0]
    for m in range(len(picks)):
        slope = np.float32(scale * (targets[picks[m]] - _value(hidden[m], w2)))
        grad_row[units] += slope
        for j in range(units):
            grad_row[j] += slope * hidden[m, j]
            grad_hidden[m, j] = slope * row[j] if hidden[m, j] > 0.0 else np.float32(0.0)
    convolution.backward(
        run_bounds, moves, picks, ages, games, actions, samples, w1, past, choices, acts, groups, firsts, places,
        owners, grad_hidden, grad_weights, grad_bias, grad_w1, touched,
    )  # fmt: skip
