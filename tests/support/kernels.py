"""What kernels take: inputs from real screens or any samples, a small network, epochs over it, and Adam."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from fastpong.arrays import F32, F64, I64, U8, Bool
from fastpong.courts import courts_of
from fastpong.kernels import conv
from fastpong.kernels.patches import PARTS, POSITIONS
from fastpong.kernels.preprocess import LastImages, Observation, as_words, record_strips
from fastpong.kernels.structs import Adam, Buckets, Epoch, Inputs, Loss, Network, Patches, RolloutArrays, Transitions
from fastpong.learners.threads import Threads
from fastpong.learners.updater import Samples
from fastpong.pong import BACKGROUND
from tests import naive


def last_images(envs: int, pixels: int) -> LastImages:
    """No image before."""
    return LastImages(np.zeros((envs, pixels), np.int16), np.zeros(envs, np.int64))


def rollout_arrays(samples: int) -> RolloutArrays:
    """Empty columns, flat."""
    kinds: list[Any] = [np.int64] * 3 + [np.int16, np.uint8] + [np.float32] * 2 + [np.int8] * 2
    columns: list[Any] = [np.zeros(samples, kind) for kind in kinds]
    return RolloutArrays(*columns)


def observation(screens: U8, rewards: Sequence[int] | None = None, ended: Sequence[int] | None = None) -> Observation:
    """Screens (n, 210, 160) with the outcomes of the steps before them, by default none."""
    nothing = [0] * len(screens)
    outcomes = [np.array(nothing if given is None else given, np.int8) for given in (rewards, ended)]
    return Observation(as_words(np.ascontiguousarray(screens)), courts_of(screens), outcomes[0], outcomes[1])


def court(screen: U8) -> Bool:
    """The set pixels (160, 80) of the rows and columns whose strips are listed."""
    return ~np.isin(screen[34:194, ::2], BACKGROUND)


def screen_with_bars(bars: Sequence[tuple[int, int, int]]) -> U8:
    """A screen (210, 160) with vertical bars: row and column in the court, and length."""
    screen = np.full((210, 160), 34, np.uint8)
    for row, column, length in bars:
        screen[34 + row : min(194, 34 + row + length), 2 * column] = 92
    return screen


class SmallRollout:
    """Seven steps of two envs on real screens (env 1 shows them backwards), and a small network.

    Env 0 begins a game at step 4, so its samples have 1, 2 or 3 images.
    """

    ROWS, ENVS, IMAGES = 7, 2, 3

    def __init__(self, screens: U8, num_actions: int = 3, hidden_units: int = 128):
        rng = np.random.default_rng(3)
        chosen, samples = screens[100 : 100 + self.ROWS], self.ROWS * self.ENVS
        arrays, strips, at = rollout_arrays(samples), np.zeros(samples * 200, np.int32), 0
        last = last_images(self.ENVS, 0)
        arrays.actions[:] = rng.integers(0, num_actions, samples)
        self.pictures: list[Bool] = []  # of each sample
        for t in range(self.ROWS):
            for env, row in ((0, t), (1, self.ROWS - 1 - t)):
                seen = observation(chosen, ended=[int(env == 0 and t == 4)] * self.ROWS)
                at = record_strips(seen, np.array([row]), np.array([env]), arrays, self.ENVS * t, strips, at, last)
                self.pictures.append(court(chosen[row]))
        self.inputs = Inputs(strips, arrays, self.ENVS, self.IMAGES, 2, num_actions)
        self.network = random_network(num_actions + 1, hidden_units, self.IMAGES)

    def sample(self, index: int) -> naive.Sample:
        """What the network gets of a sample."""
        arrays, envs = self.inputs.arrays, self.ENVS
        age = int(arrays.steps_since_reset[index])
        pictures = [self.pictures[index - f * envs] for f in range(min(age + 1, self.IMAGES))]
        lags = range(1, min(age, self.inputs.action_history) + 1)
        return naive.Sample(pictures, [int(arrays.actions[index - lag * envs]) for lag in lags])

    def outputs(self, index: int) -> tuple[F64, F64, float]:
        """Probabilities of the actions, their logarithms, and the value of a sample."""
        return naive.network_outputs(self.sample(index), self.inputs.num_actions, *self.network)


def random_network(outputs: int, hidden_units: int, images: int) -> Network:
    """A network whose hidden units are partly on and partly off."""
    rng = np.random.default_rng(3)
    shapes = (images, 8, 4, 64), (16,), (conv.INPUTS, hidden_units), (outputs, hidden_units + 1)
    deviations = 0.2, 0.2, 0.1, 1.0
    return Network(*(
        (rng.standard_normal(shape) * deviation).astype(np.float32)
        for shape, deviation in zip(shapes, deviations, strict=True)
    ))  # fmt: skip


def zeros_like(network: Network) -> Network:
    """Return a gradient of 0, or the like."""
    return Network(*(np.zeros_like(array) for array in network))


def flattened(network: Network) -> tuple[F32, Network]:
    """Return a copy of all weights, one after the other, and the network that consists of parts of it."""
    flat = np.concatenate([array.reshape(-1) for array in network])
    ends = np.cumsum([array.size for array in network])
    parts = np.split(flat, ends[:-1])
    return flat, Network(*(part.reshape(array.shape) for part, array in zip(parts, network, strict=True)))


def listed(inputs: Inputs, samples: I64) -> Samples:
    """The samples with their patches."""
    return Samples(inputs, samples, Threads(1))


def slots_of(listed: int, minibatches: Sequence[Sequence[int]]) -> I64:
    """Minibatch · 2³² + row in it of each listed sample; −1: in none."""
    slots = np.full(listed, -1, np.int64)
    for b, part in enumerate(minibatches):
        slots[list(part)] = b << 32 | np.arange(len(part))
    return slots


def empty_buckets(patches: Patches, minibatches: int) -> Buckets:
    """Buffers for all pairs, bucketed by minibatch."""
    slots, ids = (np.full(len(patches.patch_ids), -1, np.int32) for _ in range(2))
    return Buckets(np.full((minibatches + 1, POSITIONS), 77, np.int32), slots, ids)


def epoch_of(
    inputs: Inputs, samples: I64, transitions: Transitions, minibatches: Sequence[Sequence[int]], loss: Loss,
    hidden_units: int, threads: int = 1,
) -> Epoch:  # fmt: skip
    """An epoch whose minibatches are these parts of the listed samples; the scale of each is that of the loss."""
    those = listed(inputs, samples)
    ids = np.array([i for part in minibatches for i in part], np.int64)
    offsets = np.cumsum([0] + [len(part) for part in minibatches])
    rows = max(len(part) for part in minibatches)
    totals = np.full((threads, rows, hidden_units), 9, np.int32)
    grad_hidden = np.full((rows, hidden_units), 9.0, np.float32)
    return Epoch(
        those.patches, those.bounds, inputs, transitions, loss._replace(scale=0.0), ids, offsets,
        np.full(len(minibatches), loss.scale), samples[ids], slots_of(len(samples), minibatches),
        empty_buckets(those.patches, len(minibatches)), totals, grad_hidden, np.zeros((PARTS, 8)),
    )  # fmt: skip


def rests_of(network: Network) -> F32:
    """Room for what the parts add up, see `epochs.rest_of`."""
    size = sum(array.size for array in network) - conv.SIDE * network.w1.shape[1]
    return np.zeros((PARTS, size), np.float32)


def adam_state(network: Network, apply: bool) -> Adam:
    """Adam before its third step."""
    rng = np.random.default_rng(9)
    mean = Network(*((0.01 * rng.standard_normal(array.shape)).astype(np.float32) for array in network))
    square = Network(*((0.01 * rng.random(array.shape)).astype(np.float32) for array in network))
    return Adam(mean, square, np.zeros(POSITIONS, np.bool_), apply, 0.01, 2)


def sparse_inputs(xs: npt.NDArray[Any], num_actions: int) -> Inputs:
    """Dense samples (n, 6400) of −1, 0 and 1 as lists of signed non-zeros, each the present step of an env."""
    lists = [[int(np.sign(x[i])) * (int(i) + 1) for i in np.flatnonzero(x)] for x in xs]
    arrays = rollout_arrays(len(xs))
    arrays.lengths[:] = [len(changes) for changes in lists]
    arrays.offsets[:] = np.cumsum(arrays.lengths) - arrays.lengths
    changes = np.array([change for changes in lists for change in changes] + [0], np.int16)
    return Inputs(changes, arrays, len(xs), 1, 0, num_actions)


def call(function: Any, *arguments: Any) -> None:
    """Call an intrinsic, which is for compiled code only."""
    names = [f"a{i}" for i in range(len(arguments))]
    scope: dict[str, Any] = {"function": function}
    exec(f"def run({', '.join(names)}):\n    function({', '.join(names)})", scope)
    njit(scope["run"])(*arguments)
