"""The two policies: their weights by name, how these begin, and how they act."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpong.arrays import F32, I64, U8, Arrays
from fastpong.config import Config
from fastpong.dense import CELL
from fastpong.kernels import acting, conv, mlp
from fastpong.kernels.compile import jit
from fastpong.kernels.patches import POSITIONS
from fastpong.kernels.preprocess import PIXELS
from fastpong.kernels.structs import ExploringStarts, Inputs, Mlp, Network, Noise
from fastpong.kernels.tiles import CHANNELS
from fastpong.noise import ACTION, START, WEIGHTS, stream_key
from fastpong.rollout.buffer import CHANGES, STRIPS, Rollout

INIT_STD_DENSE, INIT_STD_CONV = 0.02, 0.1
"""Standard deviations of the first weights of the hidden layer, and of the convolution."""


_NOOP = 2
"""The number of this action."""
_NEVER, _SELDOM = -1e3, -1.0  # biases of no-op's logit: while it is not played, and what is added when it joins


class Weights:
    """Arrays of weights float32, by name and shape: `arrays`, all of them parts of one buffer `flat`."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]):
        self.shapes = shapes
        self.flat: F32 = jit.zeros(sum(int(np.prod(shape)) for shape in shapes.values()))
        self.arrays = self.split(self.flat)

    def split(self, flat: F32) -> dict[str, F32]:
        """Return arrays of the same shapes that are parts of another flat buffer."""
        arrays, at = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            arrays[name] = flat[at : at + size].reshape(shape)
            at += size
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Copy arrays of the same shapes; raises `ValueError` if they differ, `KeyError` if one is missing."""
        for name, array in self.arrays.items():
            if arrays[name].shape != array.shape:
                raise ValueError(f"{name} has shape {arrays[name].shape}, not {array.shape}")
            array[:] = arrays[name]


def _conv_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    return {
        "kernel": (config.frame_stack, *CELL, 4 * CHANNELS),
        "bias": (CHANNELS,),
        "w1": (conv.INPUTS, config.hidden_units),
        "w2": (config.num_actions + 1, config.hidden_units + 1),
    }


def _mlp_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    return {"w1": (PIXELS, config.hidden_units), "w2": (config.num_actions - 1, config.hidden_units)}


def checked_weights(config: Config, arrays: Arrays) -> Arrays:
    """Return the policy's weights as float32 by name, if that is what these arrays are; nothing larger is allocated.

    Files may have half of the precision, and anything besides. Raises `ValueError` if one is missing, of another shape
    or no numbers.
    """
    ppo, weights = config.algorithm == "ppo", {}
    for name, shape in (_conv_shapes(config) if ppo else _mlp_shapes(config)).items():
        array = arrays.get(name)
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.shape != shape:
            found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "missing"
            raise ValueError(f"{name} is {found}, not floats {shape}")
        with np.errstate(over="ignore"):
            weights[name] = array.astype(np.float32)
        if not np.isfinite(weights[name]).all():
            raise ValueError(f"{name} holds NaN or infinity")
    return weights


class ConvNet(Weights):
    """The convolutional network: ``kernel``, ``bias``, ``w1`` and ``w2``, see `fastpong.kernels.structs.Network`.

    `rng` draws the first weights; biases begin at 0.
    """

    def __init__(self, config: Config, rng: np.random.Generator):
        super().__init__(_conv_shapes(config))
        self.network = Network(**self.arrays)
        kernel, _, w1, w2 = self.network
        pixels = POSITIONS * CHANNELS
        kernel[:] = rng.standard_normal(kernel.shape, np.float32) * INIT_STD_CONV
        w1[:pixels] = rng.standard_normal((pixels, config.hidden_units), np.float32) * INIT_STD_DENSE
        w2[:, :-1] = rng.standard_normal((len(w2), config.hidden_units), np.float32) / np.sqrt(config.hidden_units)


class Policy(ABC):
    """Weights, and a way to act.

    `env_offset` is the global index of the first env that acts here: it keys the noise. `began` is after how many steps
    of all envs the weights were drawn.
    """

    weights: Weights
    began: int

    def __init__(self, config: Config, env_offset: int = 0):
        self.config, self.env_offset = config, env_offset
        self._action_key: Any = np.uint64(stream_key(config.seed, ACTION))
        self._start_key: Any = np.uint64(stream_key(config.seed, START))
        self.initialise()

    def initialise(self, reinits: int = 0, began: int = 0) -> None:
        """Make `weights`, others for each number of `reinits`, that are to learn after so many steps of all envs."""
        self.began = began
        self._draw(np.random.default_rng(stream_key(self.config.seed, WEIGHTS) + reinits))

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> None:
        """Make `weights`."""

    @abstractmethod
    def make_rollout(self, num_envs: int) -> Rollout:
        """Return an empty rollout for so many envs, with images as this policy reads them."""

    @abstractmethod
    def act(self, inputs: Inputs, first: int, members: I64, step: int, greedy: bool = False) -> U8:
        """Choose the actions of some envs, uint8 (n,): 0 up, 1 down, 2 no-op.

        The envs are `members` int64 (n,); their inputs, and the outputs (actions, log probabilities and values), stand
        in `inputs` of a rollout, where `first` is the index of env 0's present step. `step`, the steps since the run
        began, keys the noise together with the env. With `greedy` the likeliest action is taken instead of a sampled
        one.
        """

    def _noise(self, step: int, greedy: bool) -> Noise:
        return Noise(self._action_key, self.env_offset, step, greedy)


class MlpPolicy(Policy):
    """The reference programs' network: hidden = relu(x · w1), logits = w2 · hidden; the last action's logit is 0."""

    def _draw(self, rng: np.random.Generator) -> None:
        """N(0, 1) / √fan_in, which the reference programs call Xavier."""
        units = self.config.hidden_units
        self.weights = Weights(_mlp_shapes(self.config))
        self._mlp = Mlp(**self.weights.arrays)
        self._mlp.w1[:] = rng.standard_normal(self._mlp.w1.shape, np.float32) / np.sqrt(PIXELS)
        self._mlp.w2[:] = rng.standard_normal(self._mlp.w2.shape, np.float32) / np.sqrt(units)

    def make_rollout(self, num_envs: int) -> Rollout:
        """See `Policy`: the input is the difference of two images."""
        return Rollout(self.config, CHANGES, 0, num_envs)

    def act(self, inputs: Inputs, first: int, members: I64, step: int, greedy: bool = False) -> U8:
        """See `Policy`; every point begins as the game begins it."""
        return mlp.act(inputs, first, members, self._mlp, self._noise(step, greedy))


def share_of_exploring_starts(config: Config, step: int, began: int = 0) -> float:
    """Return the share of the points that begin with the paddle held, after so many steps of each env.

    `began` is after how many steps of all envs the weights were drawn.
    See `fastpong.kernels.acting.forced_steps`; for none at all `exploring_start_steps` is 0.
    """
    return max(0.0, 1.0 - (step * config.num_envs - began) / config.exploring_start_until)


class ConvPolicy(Policy):
    """A convolution, a hidden layer, and a logit per action and the value on top."""

    def _draw(self, rng: np.random.Generator) -> None:
        """Small logits: Adam's steps soon make the features, and up and down are about equally likely at first."""
        net = ConvNet(self.config, rng)
        net.network.w2[:-1] *= 0.1
        if self.config.num_actions > _NOOP and self.config.noop_win_rate:
            net.network.w2[_NOOP, -1] = _NEVER
        self.weights = self.net = net

    def make_rollout(self, num_envs: int) -> Rollout:
        """See `Policy`: the input is strips of several images, and previous actions."""
        history = max(self.config.frame_stack - 1, self.config.action_history)
        return Rollout(self.config, STRIPS, history, num_envs)

    def act(self, inputs: Inputs, first: int, members: I64, step: int, greedy: bool = False) -> U8:
        """See `Policy`; some points begin with the paddle held."""
        share = share_of_exploring_starts(self.config, step, self.began)
        starts = ExploringStarts(self._start_key, share, self.config.exploring_start_steps)
        return acting.act(inputs, first, members, self.net.network, starts, self._noise(step, greedy))

    def play_noop(self) -> None:
        """Let the policy choose no-op from now on, at first less often than the mean of up and down.

        Nothing changes if no-op is played already, or is no action. The weights say so, and with them a checkpoint.
        """
        logits = self.net.network.w2[: self.config.num_actions]
        if len(logits) > _NOOP and logits[_NOOP, -1] <= _NEVER / 2:
            logits[_NOOP] = logits[:_NOOP].mean(0)
            logits[_NOOP, -1] += np.float32(_SELDOM)

    def scale_logits(self, factor: float) -> None:
        """Multiply all logits: above 1 the policy becomes greedier."""
        self.net.network.w2[: self.config.num_actions] *= np.float32(factor)


POLICIES: dict[str, type[Policy]] = {"ppo": ConvPolicy, "reinforce": MlpPolicy}
"""The policy that each algorithm learns."""


def make_policy(config: Config, env_offset: int = 0) -> Policy:
    """Return the policy of a run, for envs from this global index on."""
    return POLICIES[config.algorithm](config, env_offset)
