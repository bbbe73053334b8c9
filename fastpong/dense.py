"""The two networks in plain NumPy: as they would be written without a look at the clock.

The kernels compute the same from lists of the few set pixels, many times as fast. This is for single agents, for
``fastpong export``, and to read.
"""

import numpy as np

from fastpong.arrays import F32, Arrays

GRID = (21, 21)
"""Positions of the convolution: rows and columns."""

CELL = (8, 4)
"""A position sees four cells of so many rows and columns."""

SIDE_INPUTS = 16
"""What the hidden units get beside the channels: 1, and the last actions."""


def softmax(logits: F32) -> F32:
    """Return probabilities (n, actions)."""
    weights = np.exp(logits - logits.max(1, keepdims=True))
    probabilities: F32 = weights / weights.sum(1, keepdims=True)
    return probabilities


def convolution(images: F32, kernel: F32, bias: F32) -> F32:
    """Return the channels of all positions, float32 (n, 21, 21, 16).

    `images` float32 (n, frames, 160, 80) of 0 and 1, the newest first; `kernel` float32 (frames, 8, 4, 64), by row and
    column in a cell, for the 16 channels of four positions; `bias` (16,). The position (i, j) sees rows 8i − 8 … 8i + 7
    and columns 4j − 4 … 4j + 3; its channels are 0 if no pixel there is set, else relu(bias + Σ kernel[pixel]).
    """
    count, frames = images.shape[:2]
    rows, columns = GRID[0] - 1, GRID[1] - 1
    cells = images.reshape(count, frames, rows, CELL[0], columns, CELL[1]).transpose(0, 2, 4, 1, 3, 5)
    cells = cells.reshape(count * rows * columns, -1)
    seen = cells.any(1)  # few are
    parts = np.zeros((len(cells), 4, len(bias)), np.float32)
    parts[seen] = (cells[seen] @ kernel.reshape(cells.shape[1], -1)).reshape(-1, *parts.shape[1:])
    parts = parts.reshape(count, rows, columns, *parts.shape[1:])
    total, anything = np.zeros((count, *GRID, len(bias)), np.float32), np.zeros((count, *GRID, 1), bool)
    for part in range(4):
        at = np.s_[:, part // 2 : part // 2 + rows, part % 2 : part % 2 + columns]
        total[at] += parts[:, :, :, part]
        anything[at] |= seen.reshape(count, rows, columns, 1)
    channels: F32 = np.maximum(total + bias, 0) * anything
    return channels


def outputs(weights: Arrays, images: F32, side: F32) -> tuple[F32, F32]:
    """Return the logits (n, actions) and the value (n,) of the convolutional network.

    `weights` by name, see `fastpong.kernels.structs.Network`; `images` as for `convolution`; `side` float32 (n, 16): 1,
    then for each of the last actions a one at lag · actions + action.
    """
    channels = convolution(images, weights["kernel"], weights["bias"])
    inputs = np.concatenate([channels.reshape(len(images), -1), side], 1)
    used = inputs.any(0)  # a tenth
    hidden = np.maximum(inputs[:, used] @ weights["w1"][used], 0)
    out = hidden @ weights["w2"][:, :-1].T + weights["w2"][:, -1]
    return out[:, :-1], out[:, -1]


def mlp_logits(weights: Arrays, changes: F32) -> F32:
    """Return the logits (n, actions) of the reference programs' network, the last of which is 0.

    `changes` float32 (n, 6400): an image minus the one before.
    """
    logits = np.maximum(changes @ weights["w1"], 0) @ weights["w2"].T
    return np.concatenate([logits, np.zeros((len(logits), 1), np.float32)], 1)
