"""The two policies: their weights, and how they act."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import acting, aligned, convolution, network, sites
from fastpong.kernels.images import PIXELS
from fastpong.kernels.records import Network
from fastpong.kernels.tiles import CHANNELS
from fastpong.noise import ACTION, START, WEIGHTS, stream_key
from fastpong.rollout import Rollout

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of weights, by name, in the order in which they lie in memory.

    Algorithm ``reinforce``, see `fastpong.kernels.network`: ``w1`` (inputs, hidden), ``w2`` (actions − 1, hidden).
    Algorithm ``ppo``, see `fastpong.kernels.convolution`: ``kernel`` (frames, 8, 4, 64), ``bias`` (16,), ``w1``
    (7072, hidden), ``w2`` (actions + 1, hidden + 1).
    """
    if config.algorithm == "reinforce":
        return {"w1": (input_count(config), config.hidden), "w2": (config.actions - 1, config.hidden)}
    return {
        "kernel": (config.frames, *sites.CELL, 4 * CHANNELS),
        "bias": (CHANNELS,),
        "w1": (convolution.INPUTS, config.hidden),
        "w2": (config.actions + 1, config.hidden + 1),
    }


def input_count(config: Config) -> int:
    """Return the number of inputs of the two-layer network: pixels of the difference, and of the image if seen."""
    return PIXELS * (1 if config.inputs == "difference" else 2)


def views(shapes: Mapping[str, tuple[int, ...]], flat: F32) -> dict[str, F32]:
    """View a flat buffer as arrays of these `shapes`, one after the other."""
    arrays, at = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        arrays[name] = flat[at : at + size].reshape(shape)
        at += size
    return arrays


def draw_weights(config: Config, arrays: dict[str, F32], rng: np.random.Generator) -> None:
    """Draw the weights with which a convolutional network starts; biases stay 0."""
    kernel, w1, w2 = arrays["kernel"], arrays["w1"], arrays["w2"]
    pixels = sites.SITES * CHANNELS
    kernel[:] = rng.standard_normal(kernel.shape, np.float32) * config.kernel_std
    w1[:pixels] = rng.standard_normal((pixels, config.hidden), np.float32) * config.weight_std
    w2[:, :-1] = rng.standard_normal((len(w2), config.hidden), np.float32) / np.sqrt(config.hidden)


class Policy(ABC):
    """Weights in one flat float32 buffer, and a way to act.

    Parameters
    ----------
    config : Config
        Uses `seed`, `algorithm`, `actions`, `hidden`, `weight_std`, and `inputs`, or `frames`, `past_actions` and
        `kernel_std`.
    first : int
        Global index of the first game that acts here: it keys the noise.

    Attributes
    ----------
    weights : float32 (any,)
        All weights.
    arrays : dict of float32
        Views of them by name, see `shapes`.
    held_share : float
        How many of the points begin with the paddle held, see `kernels.acting.hold_start`; 0 by default.
    """

    def __init__(self, config: Config, first: int = 0):
        self.config, self.first, self.held_share = config, first, 0.0
        self.weights: F32 = aligned.zeros(sum(int(np.prod(shape)) for shape in shapes(config).values()))
        self.arrays = views(shapes(config), self.weights)
        self.noise_key: Any = np.uint64(stream_key(config.seed, ACTION))
        self.start_key: Any = np.uint64(stream_key(config.seed, START))
        self.initialise(np.random.default_rng(stream_key(config.seed, WEIGHTS)))

    @abstractmethod
    def initialise(self, rng: np.random.Generator) -> None:
        """Draw the weights of the start."""

    @abstractmethod
    def act(self, rollout: Rollout, row: int, games: I64, step: int, greedy: bool = False) -> U8:
        """Choose the actions of some games, uint8 (n,); write them and what belongs to them into a row of the rollout.

        Parameters
        ----------
        rollout : Rollout
            Holds what the games show; its `actions` (0: up, 1: down, 2: no-op), `log_probs` of them and `values`
            (0 without a value output) are written.
        row : int
            The present row.
        games : int64 (n,)
            The games that act.
        step : int
            Steps since the run began; it keys the noise together with the game.
        greedy : bool
            Take the likeliest action instead of drawing one.
        """

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        spare = Rollout(self.config, 1)
        self.act(spare, spare.new_row(), np.zeros(1, np.int64), 0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Weights by name."""
        return dict(self.arrays)

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state` of the same shapes; raises `ValueError` if they differ, `KeyError` if one is missing."""
        for name, array in self.arrays.items():
            if arrays[name].shape != array.shape:
                raise ValueError(f"{name} has shape {arrays[name].shape}, not {array.shape}")
            array[:] = arrays[name]


class TwoLayers(Policy):
    """The seeds' network: hidden = relu(x · w1), logits = w2 · hidden; the last action's logit is 0."""

    def initialise(self, rng: np.random.Generator) -> None:
        """N(0, 1) / √fan_in, which the seeds call Xavier."""
        w1, w2 = self.arrays["w1"], self.arrays["w2"]
        w1[:] = rng.standard_normal(w1.shape, np.float32) * (self.config.weight_std or 1 / np.sqrt(PIXELS))
        w2[:] = rng.standard_normal(w2.shape, np.float32) / np.sqrt(self.config.hidden)

    def act(self, rollout: Rollout, row: int, games: I64, step: int, greedy: bool = False) -> U8:
        """See `Policy.act`."""
        network.act(
            rollout.items, rollout.starts[row], rollout.lengths[row], games, self.arrays["w1"], self.arrays["w2"],
            self.noise_key, self.first, step, self.config.actions, greedy,
            rollout.actions[row], rollout.log_probs[row],
        )  # fmt: skip
        taken: U8 = rollout.actions[row, games]
        return taken


class Convolutional(Policy):
    """A convolution, a hidden layer, and a logit per action and the value on top."""

    def __init__(self, config: Config, first: int = 0):
        super().__init__(config, first)
        self.network = Network(**self.arrays)

    def initialise(self, rng: np.random.Generator) -> None:
        """Small weights: Adam's steps soon make the features, and all actions are about equally likely at first."""
        draw_weights(self.config, self.arrays, rng)
        self.arrays["w2"][:-1] *= 0.1

    def act(self, rollout: Rollout, row: int, games: I64, step: int, greedy: bool = False) -> U8:
        """See `Policy.act`."""
        return acting.act(
            rollout.items, rollout.flat, row * rollout.games, games, rollout.games, self.network,
            self.config.past_actions, self.start_key, self.held_share, self.config.held_steps, self.noise_key,
            self.first, step, greedy,
        )  # fmt: skip


def make_policy(config: Config, first: int = 0) -> Policy:
    """Return the policy of an algorithm, for games from this global index on."""
    return (Convolutional if config.algorithm == "ppo" else TwoLayers)(config, first)
