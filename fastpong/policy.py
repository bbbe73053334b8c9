"""The policy: its weights, and how it acts."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import network
from fastpong.kernels.images import PIXELS
from fastpong.noise import ACTION, WEIGHTS, stream_key

F32 = npt.NDArray[np.float32]


class Policy:
    """A two-layer network without biases.

    All weights live in one flat float32 buffer; `w1` and `w2` are views of it.

    Parameters
    ----------
    config : Config
        Uses `seed`, `algorithm`, `inputs`, `hidden`, `actions` and `weight_std`.

    Attributes
    ----------
    w1 : float32 (inputs, hidden)
        A row per input, so that a sample reads whole rows.
    w2 : float32 (outputs, hidden)
        A logit per action but the last, whose logit is 0; with algorithm ``ppo`` then the value.
    """

    def __init__(self, config: Config):
        self.config = config
        self.weights: F32 = np.zeros(weight_count(config), np.float32)
        self.w1, self.w2 = split(config, self.weights)
        self._noise_key: Any = np.uint64(stream_key(config.seed, ACTION))
        rng = np.random.default_rng(stream_key(config.seed, WEIGHTS))
        # The seeds' "Xavier" start is N(0, 1) / √fan_in.
        self.w1[:] = rng.standard_normal(self.w1.shape, np.float32) * (config.weight_std or 1 / np.sqrt(PIXELS))
        self.w2[:] = rng.standard_normal(self.w2.shape, np.float32) / np.sqrt(config.hidden)
        if config.algorithm == "ppo":
            self.w2[: config.actions - 1] *= 0.1  # all actions are about equally likely at first

    def act(
        self,
        changes: npt.NDArray[np.int16],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        games: npt.NDArray[np.int64],
        step: int,
        actions: npt.NDArray[np.uint8],
        log_probs: F32,
        values: F32,
        greedy: bool = False,
    ) -> None:
        """Choose the actions of some games.

        Parameters
        ----------
        changes : int16 (…,)
            Signed non-zero inputs, see `fastpong.kernels.images.observe`.
        starts, lengths : int64 (games,)
            Where each game's non-zeros are.
        games : int64 (n,)
            The games that act.
        step : int
            Steps since the run began; it keys the noise together with the game.
        actions : uint8 (games,)
            Receives 0 (up), 1 (down) or 2 (no-op).
        log_probs, values : float32 (games,)
            Receive the log of the action's probability, and the value of the state (0 without a value output).
        greedy : bool
            Take the likeliest action instead of drawing one.
        """
        network.act(
            changes, starts, lengths, games, self.w1, self.w2, self._noise_key, step,
            self.config.actions, greedy, actions, log_probs, values,
        )  # fmt: skip

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        one, number = np.zeros(1, np.int64), np.zeros(1, np.float32)
        self.act(np.zeros(1, np.int16), one, one, one, 0, np.zeros(1, np.uint8), number, number.copy())

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Weights by name."""
        return {"w1": self.w1, "w2": self.w2}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state` of the same shape."""
        self.w1[:] = arrays["w1"]
        self.w2[:] = arrays["w2"]


def input_count(config: Config) -> int:
    """Return the number of inputs: pixels of the difference image, and of the image itself if that is seen as well."""
    return PIXELS * (1 if config.inputs == "difference" else 2)


def weight_count(config: Config) -> int:
    """Return the number of weights."""
    outputs = config.actions if config.algorithm == "ppo" else config.actions - 1
    return (input_count(config) + outputs) * config.hidden


def split(config: Config, flat: F32) -> tuple[F32, F32]:
    """View a flat buffer of `weight_count` numbers as `w1` (inputs, hidden) and `w2` (outputs, hidden)."""
    cut = input_count(config) * config.hidden
    return flat[:cut].reshape(-1, config.hidden), flat[cut:].reshape(-1, config.hidden)
