"""The policy: its parameters, how it acts, and how a batch changes it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import network, optimiser
from fastpong.kernels.images import PIXELS
from fastpong.noise import ACTION, WEIGHTS, stream_key

F32 = npt.NDArray[np.float32]


class Policy:
    """A two-layer network without biases, learned by REINFORCE with RMSProp.

    All parameters live in one flat float32 buffer; `w1` and `w2` are views of it, and the gradient and the
    optimiser's cache are buffers of the same layout.

    Parameters
    ----------
    config : Config
        Uses `seed`, `hidden`, `actions`, `learning_rate` and the ``rmsprop_*`` settings.

    Attributes
    ----------
    w1 : float32 (6400, hidden)
        A row per pixel, so that a sample reads whole rows.
    w2 : float32 (actions − 1, hidden)
        The last action's logit is 0.
    updates : int
        Steps of the optimiser so far.
    """

    def __init__(self, config: Config):
        self.config = config
        size = (PIXELS + config.actions - 1) * config.hidden
        self.parameters: F32 = np.zeros(size, np.float32)
        self.gradient: F32 = np.zeros(size, np.float32)
        self.cache: F32 = np.zeros(size, np.float32)
        self.w1, self.w2 = self._split(self.parameters)
        self.grad_w1, self.grad_w2 = self._split(self.gradient)
        self.updates = 0
        self._noise_key: Any = np.uint64(stream_key(config.seed, ACTION))
        # The seeds' "Xavier" start: N(0, 1) / √fan_in.
        rng = np.random.default_rng(stream_key(config.seed, WEIGHTS))
        self.w1[:] = rng.standard_normal(self.w1.shape, np.float32) / np.sqrt(PIXELS)
        self.w2[:] = rng.standard_normal(self.w2.shape, np.float32) / np.sqrt(config.hidden)

    def act(
        self,
        changes: npt.NDArray[np.int16],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        games: npt.NDArray[np.int64],
        step: int,
        actions: npt.NDArray[np.uint8],
    ) -> None:
        """Draw the actions of some games.

        Parameters
        ----------
        changes : int16 (…,)
            Signed non-zeros of the difference images, see `fastpong.kernels.images.difference`.
        starts, lengths : int64 (games,)
            Where each game's non-zeros are.
        games : int64 (n,)
            The games that act.
        step : int
            Steps since the run began; it keys the noise together with the game.
        actions : uint8 (games,)
            Receives 0 (up), 1 (down) or 2 (no-op).
        """
        network.act(changes, starts, lengths, games, self.w1, self.w2, self._noise_key, step, actions)

    def add_gradient(
        self,
        changes: npt.NDArray[np.int16],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        actions: npt.NDArray[np.uint8],
        samples: npt.NDArray[np.int64],
        advantages: F32,
    ) -> float:
        """Add the policy gradient of a batch to `gradient`; see `fastpong.kernels.network.policy_gradient`.

        Returns the mean entropy of the policy over the samples, in nats.
        """
        entropy = network.policy_gradient(
            changes, starts, lengths, actions, samples, advantages, self.w1, self.w2, self.grad_w1, self.grad_w2
        )
        return entropy / max(1, len(samples))

    def step(self) -> None:
        """Change the weights by the gradient, and set it to zero."""
        c = self.config
        optimiser.rmsprop(
            self.parameters, self.gradient, self.cache, c.learning_rate, c.rmsprop_decay, c.rmsprop_epsilon
        )
        self.updates += 1

    def warm_up(self) -> None:
        """Compile or load every kernel used here, on a sample without pixels; changes nothing."""
        one, games = np.zeros(1, np.int64), np.zeros(1, np.int64)
        empty, action = np.zeros(1, np.int16), np.zeros(1, np.uint8)
        self.act(empty, one, one, games, 0, action)
        self.add_gradient(empty, one, one, action, games, np.zeros(1, np.float32))
        optimiser.rmsprop(np.zeros(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32), 0.0, 0.5, 1.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that learning needs, by name."""
        return {"w1": self.w1, "w2": self.w2, "cache": self.cache, "updates": np.array(self.updates)}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state` of the same shape; weights alone are enough for playing."""
        self.w1[:] = arrays["w1"]
        self.w2[:] = arrays["w2"]
        if "cache" in arrays:
            self.cache[:] = arrays["cache"]
            self.updates = int(arrays["updates"])

    def _split(self, flat: F32) -> tuple[F32, F32]:
        c = self.config
        cut = PIXELS * c.hidden
        return flat[:cut].reshape(PIXELS, c.hidden), flat[cut:].reshape(c.actions - 1, c.hidden)
