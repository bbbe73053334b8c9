"""Plain-loop float64 twins of the kernels: slow, obvious, and written from the seeds rather than from the kernels."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


def hash64(key: int, game: int, step: int) -> int:
    mask = (1 << 64) - 1

    def finalise(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    return finalise((finalise((key + game * golden) & mask) + step * golden) & mask)


def uniform(key: int, game: int, step: int) -> float:
    return (hash64(key, game, step) >> 11) / 2.0**53


def preprocess(red: npt.NDArray[np.uint8]) -> F64:
    """The seeds' function, on the red channel (210, 160): float64 (6400,)."""
    image = red[35:195][::2, ::2].astype(np.float64)
    image[image == 144] = 0
    image[image == 109] = 0
    image[image != 0] = 1
    return image.ravel()


def find_pixels(image: F64) -> list[int]:
    return [i for i in range(6400) if image[i] == 1]


def dense(changes: Sequence[int]) -> F64:
    image = np.zeros(6400)
    for change in changes:
        image[abs(change) - 1] += 1 if change > 0 else -1
    return image


def difference(before: Sequence[int], now: Sequence[int]) -> list[int]:
    changes = []
    for i in range(6400):
        if i in now and i not in before:
            changes.append(i + 1)
        if i in before and i not in now:
            changes.append(-(i + 1))
    return changes


def forward(x: F64, w1: Any, w2: Any) -> tuple[F64, F64]:
    """Hidden units and probabilities of the actions; x (pixels,), w1 (pixels, hidden), w2 (actions − 1, hidden)."""
    hidden = np.zeros(w1.shape[1])
    for j in range(w1.shape[1]):
        total = 0.0
        for i in np.flatnonzero(x):
            total += x[i] * float(w1[i, j])
        hidden[j] = max(total, 0.0)
    logits = [sum(float(w2[a, j]) * hidden[j] for j in range(len(hidden))) for a in range(len(w2))] + [0.0]
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return hidden, np.array(weights) / sum(weights)


def draw(probs: F64, number: float) -> int:
    total = 0.0
    for action, p in enumerate(probs):
        total += p
        if number < total:
            return action
    return len(probs) - 1


def log_prob(x: F64, action: int, w1: Any, w2: Any) -> float:
    return math.log(float(forward(x, w1, w2)[1][action]))


def entropy(x: F64, w1: Any, w2: Any) -> float:
    return -sum(float(p) * math.log(p) for p in forward(x, w1, w2)[1] if p > 0)


def policy_gradient(
    xs: Sequence[F64], actions: Sequence[int], advantages: Sequence[float], w1: Any, w2: Any
) -> tuple[F64, F64]:
    grad_w1, grad_w2 = np.zeros(w1.shape), np.zeros(w2.shape)
    for x, action, advantage in zip(xs, actions, advantages, strict=True):
        hidden, probs = forward(x, w1, w2)
        for a in range(len(w2)):
            wanted = 1.0 if a == action else 0.0
            slope = (wanted - probs[a]) * advantage
            for j in range(len(hidden)):
                grad_w2[a, j] += slope * hidden[j]
                if hidden[j] > 0:
                    for i in np.flatnonzero(x):
                        grad_w1[i, j] += slope * w2[a, j] * x[i]
    return grad_w1, grad_w2


def advantages_of(
    rewards: Any, ended: Any, values: Any, gamma: float, lam: float, traces: Any = None
) -> tuple[F64, F64]:
    """GAE as it is defined: Σ (γλ)^k c_{t+1} … c_{t+k} δ_{t+k} until the point ends; and V + c_t times that."""
    rows, games = rewards.shape
    advantages = np.zeros((rows, games))
    traces = np.ones((rows, games)) if traces is None else np.asarray(traces, np.float64)
    for n in range(games):
        for t in range(rows):
            weight = 1.0
            for k in range(t, rows):
                over = rewards[k, n] != 0 or ended[k, n] != 0
                after = 0.0 if over else float(values[k + 1, n])
                advantages[t, n] += weight * (rewards[k, n] + gamma * after - float(values[k, n]))
                if over:
                    break
                weight *= gamma * lam * (traces[k + 1, n] if k + 1 < rows else 1.0)
    return advantages, traces * advantages + values[:rows]


def court(rgb: npt.NDArray[np.uint8]) -> F64:
    """The seeds' preprocessing of the red channel (210, 160), but every row of the court: float64 (160, 80)."""
    image = rgb[34:194][:, ::2].astype(np.float64)
    image[(image == 144) | (image == 109)] = 0
    image[image != 0] = 1
    return image


def runs_of(image: Any) -> list[tuple[int, int, int]]:
    """Vertical runs of ones as (row, column, length), cut at rows that are multiples of 8."""
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


def convolution(frames: Sequence[Any], kernel: Any, bias: Any) -> F64:
    """Channels of all sites (21, 21, 16). `frames` are (160, 80) images, the present one first; kernel (f, 8, 4, 64).

    The site (i, j) sees rows 8i − 8 … 8i + 7 and columns 4j − 4 … 4j + 3; it is silent if no pixel there is set.
    """
    total, seen = np.zeros((21, 21, 16)), np.zeros((21, 21, 1))
    for f, image in enumerate(frames):
        for i in range(21):
            for j in range(21):
                for y in range(max(0, 8 * i - 8), min(160, 8 * i + 8)):
                    for x in range(max(0, 4 * j - 4), min(80, 4 * j + 4)):
                        if image[y, x]:
                            quarter = 2 * (i - y // 8) + (j - x // 4)
                            total[i, j] += kernel[f, y % 8, x % 4, 16 * quarter : 16 * quarter + 16].astype(float)
                            seen[i, j] = 1.0
    channels: F64 = np.maximum(total + bias, 0.0) * seen
    return channels


def hidden_units(frames: Sequence[Any], past: Sequence[int], actions: int, kernel: Any, bias: Any, w1: Any) -> F64:
    """Hidden units of the convolutional network; `past` are the last actions, the latest first."""
    acts = convolution(frames, kernel, bias).reshape(-1)
    facts = np.zeros(16)
    facts[0] = 1.0
    for lag, action in enumerate(past):
        facts[1 + lag * actions + action] = 1.0
    inputs = np.concatenate([acts, facts])
    units: F64 = np.maximum(sum(inputs[i] * w1[i].astype(float) for i in np.flatnonzero(inputs)), 0.0)
    return units


def convolutional_outputs(frames: Sequence[Any], past: Sequence[int], kernel: Any, bias: Any, w1: Any, w2: Any) -> F64:
    """Logits and value; `past` are the last actions, the latest first."""
    hidden = hidden_units(frames, past, len(w2) - 1, kernel, bias, w1)
    return np.array([float(w2[o, :-1] @ hidden) + float(w2[o, -1]) for o in range(len(w2))])


def held_start(number: float, share: float, longest: int) -> int:
    """For how many steps the paddle is held at first, upwards if > 0, from a number in 0 … 1."""
    if number >= share:
        return 0
    position = number / share * 2 - 1  # −1 … 1: up to the middle, down from there
    steps = min(longest, 1 + math.floor(abs(position) * longest))
    return steps if position < 0 else -steps


def softmax(logits: Any) -> F64:
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return np.array(weights) / sum(weights)


def clipped_objective(
    outputs: F64, action: int, log_prob: float, advantage: float, target: float,
    clip: float, clip_high: float, entropy_weight: float, value_weight: float,
) -> float:  # fmt: skip
    """What PPO maximises for one sample; `outputs` are the logits and the value."""
    probs = softmax(outputs[:-1])
    ratio = math.exp(math.log(float(probs[action])) - log_prob)
    surrogate = min(ratio * advantage, min(max(ratio, 1 - clip), 1 + clip_high) * advantage)
    bonus = entropy_weight * -sum(float(p) * math.log(p) for p in probs)
    return float(surrogate + bonus - value_weight * 0.5 * (target - float(outputs[-1])) ** 2)


def chances_of(advantages: Any, log_probs: Any, errors: Any, share: float, least: float) -> list[float]:
    """Chance of each sample to be drawn, by the size of its gradient."""
    if share >= 1:
        return [1.0] * len(advantages)
    pulls = [float(a) * (1 - math.exp(float(p))) for a, p in zip(advantages, log_probs, strict=True)]
    policy, value = sum(p * p for p in pulls) or 1.0, sum(float(e) ** 2 for e in errors) or 1.0
    sizes = [math.sqrt(p * p / policy + float(e) ** 2 / value) for p, e in zip(pulls, errors, strict=True)]
    mean = sum(sizes) / len(sizes)
    return [min(1.0, least + (share - least) * size / mean) for size in sizes]


def adam(
    w: float, g: float, m: float, v: float, rate: float, b1: float, b2: float, epsilon: float, step: int
) -> tuple[float, float, float]:
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


def views_of(frames: Sequence[Any]) -> dict[int, frozenset[tuple[int, int, int]]]:
    """What each site sees, if it sees anything: set pixels as (frame, row, column) in its 16×8; frames (160, 80)."""
    found: dict[int, set[tuple[int, int, int]]] = {}
    for f, image in enumerate(frames):
        for y, x in np.argwhere(image).tolist():
            for i in (y // 8, y // 8 + 1):
                for j in (x // 4, x // 4 + 1):
                    found.setdefault(21 * i + j, set()).add((f, y - 8 * i + 8, x - 4 * j + 4))
    return {site: frozenset(pixels) for site, pixels in found.items()}


def score_of(steps: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """Score and length of a game at the last of some steps (reward, ended, practised), since it had ended before."""
    score = length = 0
    for reward, ended, practised in steps[:-1]:
        score, length = (0, 0) if ended == 1 else (score + reward * (not practised), length + (not practised))
    reward, _, practised = steps[-1]
    return score + reward * (not practised), length + (not practised)


def returns_of(rewards: Sequence[float], gamma: float) -> list[float]:
    """The seeds' process_rewards, for steps that end with a point."""
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
    """(t, game, return, number of the segment) of every step of a finished unit whose point was scored."""
    found = []
    segment = -1
    for n in range(rewards.shape[1]):
        stops = [t for t in range(begins[n], rows) if ended[t, n] or (unit == "point" and rewards[t, n] != 0)]
        segment += 1
        point: list[int] = []
        for t in range(begins[n], stops[-1] + 1 if stops else begins[n]):
            point.append(t)
            if rewards[t, n] != 0:
                values = returns_of([float(rewards[k, n]) for k in point], gamma)
                found += [(k, n, value, segment) for k, value in zip(point, values, strict=True)]
                point = []
            if ended[t, n]:
                point = []
                segment += 1
    return found


def standardise(values: Sequence[float], segments: Sequence[int]) -> list[float]:
    result = []
    for value, segment in zip(values, segments, strict=True):
        group = [v for v, s in zip(values, segments, strict=True) if s == segment]
        mean = sum(group) / len(group)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in group) / len(group))
        result.append((value - mean) / deviation if deviation > 1e-8 else 0.0)
    return result


def rmsprop(w: float, g: float, cache: float, rate: float, decay: float, epsilon: float) -> tuple[float, float]:
    cache = decay * cache + (1 - decay) * g * g
    return w + rate * g / (math.sqrt(cache) + epsilon), cache


def groups_of(kinds: npt.NDArray[np.int32], begin: int, end: int) -> tuple[list[int], list[int], list[int]]:
    """Group neighbours that are equal: what each group has, where each begins and the last ends, each entry's group."""
    groups: list[int] = []
    heads: list[int] = []
    members: list[int] = []
    for k in range(begin, end):
        if not groups or kinds[k] != groups[-1]:
            groups.append(int(kinds[k]))
            heads.append(k)
        members.append(len(groups) - 1)
    return groups, [*heads, end], members
