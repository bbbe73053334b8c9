"""Plain-loop float64 twins of the kernels: slow, obvious, and written from the algorithms, not from the kernels."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import F64, U8

Pixel = tuple[int, int, int]
"""An image's number (0: the present one), a row and a column."""


class Sample(NamedTuple):
    """What the convolutional network gets: images (160, 80) and earlier actions, the latest first."""

    images: Sequence[Any]
    history: Sequence[int]


class Transition(NamedTuple):
    """What is learned from a sample."""

    action: int
    log_prob: float
    advantage: float
    value_target: float


class Coefficients(NamedTuple):
    """Of the loss."""

    clip_low: float
    clip_high: float
    entropy: float
    value: float


# Noise.


def hash64(key: int, env: int, step: int) -> int:
    """Twin of: sampling.hash64."""
    mask = (1 << 64) - 1

    def finalise(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    return finalise((finalise((key + env * golden) & mask) + step * golden) & mask)


def uniform(key: int, env: int, step: int) -> float:
    """Twin of: sampling.uniform."""
    return (hash64(key, env, step) >> 11) / 2.0**53


def choose(probs: F64, number: float) -> int:
    """Twin of: sampling.choose, for the number that it draws."""
    total = 0.0
    for action, p in enumerate(probs):
        total += p
        if number < total:
            return action
    return len(probs) - 1


# Images.


def preprocess(red: U8) -> F64:
    """The reference programs' function, on the red channel (210, 160): float64 (6400,)."""
    image = red[35:195][::2, ::2].astype(np.float64)
    image[image == 144] = 0
    image[image == 109] = 0
    image[image != 0] = 1
    return image.ravel()


def find_pixels(image: F64) -> list[int]:
    """Twin of: preprocess.find_pixels."""
    return [i for i in range(6400) if image[i] == 1]


def dense(changes: Sequence[int]) -> F64:
    """Twin of: preprocess.dense."""
    image = np.zeros(6400)
    for change in changes:
        image[abs(change) - 1] += 1 if change > 0 else -1
    return image


def difference(before: Sequence[int], now: Sequence[int]) -> list[int]:
    """Twin of: preprocess.difference."""
    found = []
    for i in range(6400):
        if i in now and i not in before:
            found.append(i + 1)
        if i in before and i not in now:
            found.append(-(i + 1))
    return found


def changes(images: Sequence[Sequence[int]], begins: Sequence[bool]) -> list[list[int]]:
    """Inputs for an env's images, given as pixels; nothing where a game begins.

    Twin of: preprocess.record_changes, drawing.draw_differences.
    """
    return [[] if begins[t] else difference(images[t - 1] if t else [], images[t]) for t in range(len(images))]


def strips(image: Any) -> list[tuple[int, int, int]]:
    """Vertical strips of ones as (row, column, length), cut at rows that are multiples of 8.

    Twin of: preprocess.find_strips, preprocess.record_strips.
    """
    found = []
    for column in range(80):
        row = 0
        while row < 160:
            length = 0
            while row + length < 160 and image[row + length, column] and (length == 0 or (row + length) % 8):
                length += 1
            if length:
                found.append((row, column, length))
            row += max(1, length)
    return found


# The reference programs' network.


def softmax(logits: Any) -> F64:
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return np.array(weights) / sum(weights)


def mlp_hidden(x: F64, w1: Any) -> F64:
    """Hidden units; x (pixels,), w1 (pixels, hidden). Twin of: mlp.forward_one."""
    hidden = np.zeros(w1.shape[1])
    for j in range(w1.shape[1]):
        total = 0.0
        for i in np.flatnonzero(x):
            total += x[i] * float(w1[i, j])
        hidden[j] = max(total, 0.0)
    return hidden


def mlp_probs(x: F64, w1: Any, w2: Any) -> F64:
    """Probabilities of the actions; w2 (actions − 1, hidden). Twin of: mlp.forward_one, mlp.act."""
    hidden = mlp_hidden(x, w1)
    return softmax([sum(float(w2[a, j]) * hidden[j] for j in range(len(hidden))) for a in range(len(w2))] + [0.0])


def policy_gradient(
    xs: Sequence[F64], actions: Sequence[int], advantages: Sequence[float], w1: Any, w2: Any
) -> tuple[F64, F64]:
    """Twin of: mlp.policy_gradient."""
    grad_w1, grad_w2 = np.zeros(w1.shape), np.zeros(w2.shape)
    for x, action, advantage in zip(xs, actions, advantages, strict=True):
        hidden, probs = mlp_hidden(x, w1), mlp_probs(x, w1, w2)
        for a in range(len(w2)):
            wanted = 1.0 if a == action else 0.0
            slope = (wanted - probs[a]) * advantage
            for j in range(len(hidden)):
                grad_w2[a, j] += slope * hidden[j]
                if hidden[j] > 0:
                    for i in np.flatnonzero(x):
                        grad_w1[i, j] += slope * w2[a, j] * x[i]
    return grad_w1, grad_w2


def entropy(probs: F64) -> float:
    return -sum(float(p) * math.log(p) for p in probs if p > 0)


# The convolutional network.


def patch_at(images: Sequence[Any], position: int) -> frozenset[Pixel]:
    """The set pixels in the 16×8 around a position. Twin of: patches.find_pairs, patches.list_patches."""
    found, (i, j) = set[Pixel](), divmod(position, 21)
    for f, image in enumerate(images):
        for y in range(16):
            for x in range(8):
                row, column = 8 * i - 8 + y, 4 * j - 4 + x
                if 0 <= row < 160 and 0 <= column < 80 and image[row, column]:
                    found.add((f, y, x))
    return frozenset(found)


def bucket_by_minibatch(
    pairs: Sequence[tuple[int, int]], minibatches: Sequence[Sequence[int]]
) -> list[list[tuple[int, int]]]:
    """From (patch id, sample id) of a position: (patch id, row in it) for each minibatch, which lists sample ids.

    Twin of: buckets.bucket_by_minibatch.
    """
    return [
        [(patch, minibatch.index(sample)) for patch, sample in pairs if sample in minibatch]
        for minibatch in minibatches
    ]  # fmt: skip


def groups(patch_ids: Sequence[int], begin: int, end: int) -> tuple[list[int], list[int], list[int]]:
    """Group neighbours that are equal: the patch of each group, where each begins and the last ends, each pair's group.

    Twin of: conv.list_groups.
    """
    patches: list[int] = []
    heads: list[int] = []
    members: list[int] = []
    for k in range(begin, end):
        if not patches or patch_ids[k] != patches[-1]:
            patches.append(int(patch_ids[k]))
            heads.append(k)
        members.append(len(patches) - 1)
    return patches, [*heads, end], members


def prefix_sums(kernel: Any) -> F64:
    """Sums over the rows above, (4 cells, images, 4 columns, 9 rows, 16). Twin of: conv.prefix_sums."""
    sums = np.zeros((4, len(kernel), 4, 9, 16))
    for cell, f, column, row, channel in np.ndindex(*sums.shape):
        sums[cell, f, column, row, channel] = sum(float(kernel[f, y, column, 16 * cell + channel]) for y in range(row))
    return sums


def convolution(images: Sequence[Any], kernel: Any, bias: Any) -> F64:
    """Channels of all positions (21, 21, 16); kernel (images, 8, 4, 64). Twin of: acting.patches_of_few.

    The position (i, j) sees rows 8i − 8 … 8i + 7 and columns 4j − 4 … 4j + 3; its channels are 0 if no pixel there is
    set.
    """
    total, seen = np.zeros((21, 21, 16)), np.zeros((21, 21, 1))
    for f, image in enumerate(images):
        for i in range(21):
            for j in range(21):
                top, left = max(0, 8 * i - 8), max(0, 4 * j - 4)
                for y, x in np.argwhere(image[top : 8 * i + 8, left : 4 * j + 4]).tolist():
                    y, x = top + y, left + x
                    total[i, j] += kernel[f, y % 8, x % 4, _columns_of(i, j, y, x)].astype(float)
                    seen[i, j] = 1.0
    channels: F64 = np.maximum(total + bias, 0.0) * seen
    return channels


def _columns_of(i: int, j: int, y: int, x: int) -> slice:
    """The columns of the kernel with which a pixel counts at the position (i, j)."""
    cell = 2 * (i - y // 8) + (j - x // 4)
    return slice(16 * cell, 16 * cell + 16)


def hidden_inputs(sample: Sample, num_actions: int, kernel: Any, bias: Any) -> F64:
    """What the hidden layer gets (7072,): the channels, a constant, and a one for each earlier action."""
    side = np.zeros(16)
    side[0] = 1.0
    for lag, action in enumerate(sample.history):
        side[1 + lag * num_actions + action] = 1.0
    return np.concatenate([convolution(sample.images, kernel, bias).reshape(-1), side])


def hidden_units(sample: Sample, num_actions: int, kernel: Any, bias: Any, w1: Any) -> F64:
    """Twin of: conv.conv_hidden_forward, conv.finish_hidden."""
    inputs = hidden_inputs(sample, num_actions, kernel, bias)
    units: F64 = np.maximum(sum(inputs[i] * w1[i].astype(float) for i in np.flatnonzero(inputs)), 0.0)
    return units


def outputs(hidden: F64, w2: Any) -> tuple[F64, F64, float]:
    """Probabilities of the actions, their logarithms, and the value. Twin of: losses.outputs."""
    results = [float(w2[o, :-1] @ hidden) + float(w2[o, -1]) for o in range(len(w2))]
    probs = softmax(results[:-1]) if len(w2) > 1 else np.zeros(0)
    return probs, np.log(probs), results[-1]


def network_outputs(
    sample: Sample, num_actions: int, kernel: Any, bias: Any, w1: Any, w2: Any
) -> tuple[F64, F64, float]:
    """`outputs` for a sample. Twin of: acting.act."""
    return outputs(hidden_units(sample, num_actions, kernel, bias, w1), w2)


def forced_steps(before: int, begins: bool, number: float, probability: float, max_steps: int) -> int:
    """For how many steps the paddle is held, upwards if > 0; `number` in 0 … 1. Twin of: acting.forced_steps."""
    if not begins:
        return before - (before > 0) + (before < 0)
    if number >= probability:
        return 0
    position = number / probability * 2 - 1  # −1 … 1: up to the middle, down from there
    steps = min(max_steps, 1 + math.floor(abs(position) * max_steps))
    return steps if position < 0 else -steps


# Learning.


def objective(hidden: F64, w2: Any, learned: Transition, loss: Coefficients) -> float:
    """What PPO maximises for one sample."""
    probs, logs, value = outputs(hidden, w2)
    ratio = math.exp(float(logs[learned.action]) - learned.log_prob)
    clipped = min(max(ratio, 1 - loss.clip_low), 1 + loss.clip_high)
    gain = min(ratio * learned.advantage, clipped * learned.advantage) + loss.entropy * entropy(probs)
    return gain - loss.value * 0.5 * (learned.value_target - value) ** 2


def loss_gradient(hidden: F64, w2: Any, learned: Transition, loss: Coefficients) -> tuple[F64, F64]:
    """Gradient of `objective` for `w2`, and for the hidden units that are on, by differences.

    Twin of: losses.loss_gradient.
    """
    arrays = [np.array(w2, np.float64), np.array(hidden, np.float64)]
    gradients = [np.zeros(array.shape) for array in arrays]
    for array, gradient in zip(arrays, gradients, strict=True):
        for at in np.ndindex(*array.shape):
            gradient[at] = slope(lambda: objective(arrays[1], arrays[0], learned, loss), array, at)
    return gradients[0], gradients[1] * (hidden > 0)


def slope(function: Any, array: F64, at: tuple[int, ...]) -> float:
    """Central difference of a function of nothing, as one number of an array varies."""
    step, before = 1e-6, array[at]
    array[at] = before + step
    up = function()
    array[at] = before - step
    down = function()
    array[at] = before
    return float((up - down) / (2 * step))


def minibatch_objective(
    samples: Sequence[Sample], learned: Sequence[Transition], num_actions: int, loss: Coefficients,
    kernel: Any, bias: Any, w1: Any, w2: Any,
) -> float:  # fmt: skip
    """Sum of `objective` over samples."""
    return sum(
        objective(hidden_units(sample, num_actions, kernel, bias, w1), w2, transition, loss)
        for sample, transition in zip(samples, learned, strict=True)
    )


def minibatch_gradient(
    samples: Sequence[Sample], learned: Sequence[Transition], num_actions: int, loss: Coefficients,
    kernel: Any, bias: Any, w1: Any, w2: Any,
) -> tuple[F64, F64, F64, F64]:  # fmt: skip
    """Gradient of `minibatch_objective`, carried back layer by layer. Twin of: epochs.learn_minibatches."""
    grad_kernel, grad_bias = np.zeros(kernel.shape), np.zeros(bias.shape)
    grad_w1, grad_w2 = np.zeros(w1.shape), np.zeros(w2.shape)
    for sample, transition in zip(samples, learned, strict=True):
        inputs = hidden_inputs(sample, num_actions, kernel, bias)
        own_w2, grad_hidden = loss_gradient(
            hidden_units(sample, num_actions, kernel, bias, w1), w2, transition, loss
        )  # fmt: skip
        grad_w2 += own_w2
        grad_inputs = np.zeros(len(inputs))
        for i in np.flatnonzero(inputs):
            grad_w1[i] += inputs[i] * grad_hidden
            grad_inputs[i] = float(w1[i].astype(float) @ grad_hidden)  # 0 where the relu is off
        grad_channels = grad_inputs[:-16].reshape(21, 21, 16)
        grad_bias += grad_channels.sum((0, 1))
        for f, image in enumerate(sample.images):
            for y, x in np.argwhere(image).tolist():
                for row in (y // 8, y // 8 + 1):
                    for column in (x // 4, x // 4 + 1):
                        grad_kernel[f, y % 8, x % 4, _columns_of(row, column, y, x)] += grad_channels[row, column]
    return grad_kernel, grad_bias, grad_w1, grad_w2


def rmsprop(w: float, g: float, cache: float, rate: float, decay: float, epsilon: float) -> tuple[float, float]:
    """Twin of: optimiser.rmsprop."""
    cache = decay * cache + (1 - decay) * g * g
    return w + rate * g / (math.sqrt(cache) + epsilon), cache


def adam(
    w: float, g: float, m: float, v: float, rate: float, b1: float, b2: float, epsilon: float, step: int
) -> tuple[float, float, float]:
    """Twin of: optimiser.adam."""
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    return w + rate * (m / (1 - b1**step)) / (math.sqrt(v / (1 - b2**step)) + epsilon), m, v


def adam_of(
    w: Any, g: Any, m: Any, v: Any, rate: float, b1: float, b2: float, epsilon: float, step: int
) -> tuple[F64, F64, F64]:
    """`adam` for arrays of one shape."""
    rows = np.stack([array.ravel() for array in (w, g, m, v)], 1).astype(float).tolist()
    triples = [adam(a, b, c, d, rate, b1, b2, epsilon, step) for a, b, c, d in rows]
    columns = np.array(triples).T.reshape(3, *w.shape)
    return columns[0], columns[1], columns[2]


# Returns.


def returns(rewards: Sequence[float], gamma: float) -> list[float]:
    """The reference programs' process_rewards, for steps that end with a point. Twin of: returns.discounted_returns."""
    running, result = 0.0, []
    for reward in reversed(rewards):
        if reward != 0:
            running = 0.0
        running = running * gamma + reward
        result.append(running)
    return result[::-1]


def finished_samples(
    rewards: Any, ended: Any, begins: Sequence[int], rows: int, gamma: float, unit: str
) -> list[tuple[int, int, float, int]]:
    """(t, env, return, game id) of every step of a finished unit whose point was scored.

    Twin of: returns.finished_rows, returns.discounted_returns.
    """
    found = []
    game = -1
    for n in range(rewards.shape[1]):
        stops = [t for t in range(begins[n], rows) if ended[t, n] or (unit == "point" and rewards[t, n] != 0)]
        game += 1
        point: list[int] = []
        for t in range(begins[n], stops[-1] + 1 if stops else begins[n]):
            point.append(t)
            if rewards[t, n] != 0:
                discounted = returns([float(rewards[k, n]) for k in point], gamma)
                found += [(k, n, value, game) for k, value in zip(point, discounted, strict=True)]
                point = []
            if ended[t, n]:
                point = []
                game += 1
    return found


def standardise(numbers: Sequence[float], game_ids: Sequence[int]) -> list[float]:
    """Twin of: returns.standardise."""
    result = []
    for number, game in zip(numbers, game_ids, strict=True):
        group = [v for v, g in zip(numbers, game_ids, strict=True) if g == game]
        mean = sum(group) / len(group)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in group) / len(group))
        result.append((number - mean) / deviation if deviation > 1e-8 else 0.0)
    return result


def advantages_of(rewards: Any, ended: Any, values: Any, gamma: float, lam: float) -> tuple[F64, F64]:
    """GAE as it is defined: Σ (γλ)^k δ_{t+k} until the point ends; and V plus that. Twin of: returns.advantages_of."""
    rows, envs = rewards.shape
    advantages = np.zeros((rows, envs))
    for n in range(envs):
        for t in range(rows):
            weight = 1.0
            for k in range(t, rows):
                over = rewards[k, n] != 0 or ended[k, n] != 0
                after = 0.0 if over else float(values[k + 1, n])
                advantages[t, n] += weight * (rewards[k, n] + gamma * after - float(values[k, n]))
                if over:
                    break
                weight *= gamma * lam
    return advantages, advantages + values[:rows]


# Images for learners of other libraries.


def set_pixels(screen: Any) -> Any:
    """Return the pixels of the court's rows (160, 160), 1 where a palette index is not of the background.

    So `fastpong.courts.draw_court` has them, as bits.
    """
    empty = (0, 34, 48, 128, 144, 160, 176, 192, 206, 228)
    return np.array([[int(screen[34 + y][x] not in empty) for x in range(160)] for y in range(160)])


def court(screen: Any) -> Any:
    """Return the court (160, 80): of these, every second column.

    Twin of: drawing.draw_courts.
    """
    return set_pixels(screen)[:, ::2]


def shrink(grey: Any) -> F64:
    """Return a grey screen (210, 160) as (84, 84) means of areas, not rounded.

    Twin of: drawing.shrink.
    """

    def shares(source: int, target: int) -> F64:
        scale = source / target
        overlap = [
            [max(0.0, min(s + 1, (t + 1) * scale) - max(s, t * scale)) for s in range(source)] for t in range(target)
        ]
        return np.array(overlap) / scale

    return np.asarray(shares(210, 84) @ np.asarray(grey, float) @ shares(160, 84).T)
