"""The critic of the late phase: a value network of its own, which learns from the steps of many batches.

PPO's own value shares its features with the policy and learns from each batch once. A separate network, which goes
on learning from older batches toward λ-returns that its own moving average completes, explains more of the returns, and
its TD errors have a third of the variance (docs/log). It differs from PPG (Cobbe et al., "Phasic policy gradient",
2021) in that nothing goes back to the policy but the advantages.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.arrays import F32, I64, Arrays, Bool
from fastpong.config import Config
from fastpong.kernels import returns
from fastpong.kernels.structs import Loss, Network, Transitions
from fastpong.learners.updater import Epochs, Samples, TwoThreads, Updater
from fastpong.noise import CRITIC, stream_key
from fastpong.parallel.comm import Communicator
from fastpong.policy import ConvNet
from fastpong.rollout.buffer import Rollout

SPAN = 32
"""Rows of a stretch of steps that is drawn from the replay rows: long enough for λ 0.9."""

EMA_DECAY = 0.99
"""Of the moving average of the weights, per minibatch."""


class Critic:
    """The value network, the moving average of its weights, and what it learns; `batches` counts what it learned from.

    It takes the settings, who learns together, the envs of this rank, and the threads, as `Updater` does.
    """

    LAMBDA = 0.9  # of the returns that it learns from, and of the advantages that its values give

    def __init__(self, config: Config, comm: Communicator, envs: range, threads: TwoThreads):
        self.config, self._comm, self._envs, self._threads = config, comm, envs, threads
        self.net = ConvNet(config, 1, np.random.default_rng(stream_key(config.seed, CRITIC)))
        self._updater = Updater(self.net, comm, threads, EMA_DECAY)
        self._mean = Network(**self.net.split(self._updater.ema))
        self.batches = 0

    @property
    def ready(self) -> bool:
        """Whether its values are to be used: the replay rows are then full for the first time."""
        return self.batches >= self.config.critic_replay_batches

    def values(self, samples: Samples) -> F32:
        """Return the values float32 (m,) of some samples, by the averaged weights."""
        return samples.values(self._mean)

    def learn(self, rollout: Rollout, gamma: float, learning_rate: float) -> float:
        """Learn λ-returns, discounted by `gamma`, of steps drawn from all rows that the rollout keeps.

        The last row has no outcome yet, and the first ones serve as history. Returns the share of the variance of these
        returns that the values explain, over all ranks.
        """
        c, envs = self.config, rollout.num_envs
        first, end = rollout.history, rollout.rows - 1
        span = min(SPAN, end - first)
        rng = np.random.default_rng([stream_key(c.seed, CRITIC), self._updater.updates])
        number = max(1, round(c.critic_samples_per_step * c.rollout_steps / span))
        rows = rng.integers(first, end - span + 1, number)[:, None] + np.arange(span + 1)  # the last one completes
        samples = Samples(rollout.inputs, (rows[:, :, None] * envs + np.arange(envs)).reshape(-1), self._threads)
        values = self.values(samples).reshape(number, span + 1, envs)
        targets = np.zeros_like(values)
        targets[:, :-1] = self._returns(rollout, rows[:, :-1], values, gamma)
        ids = self._sample_ids((rollout.arrays.forced[rows] == 0).reshape(-1), number * span, span)
        none = np.zeros(0, np.float32)
        transitions = Transitions(np.zeros(0, np.uint8), none, none, targets.reshape(-1))
        loss = Loss(0.0, 0.0, 0.0, 1.0, 0.0)  # only the value, with a coefficient of 1
        epochs = Epochs(samples, transitions, loss, ids, c.minibatch_size, c.hidden_units)
        self._updater.run(epochs.shuffled(rng.permutation(len(ids))), learning_rate)
        self.batches += 1
        goals = targets.reshape(-1)[ids[ids >= 0]].astype(np.float64)
        sums = np.array([epochs.statistics[:, 3].sum(), goals.sum(), np.square(goals).sum(), goals.size])
        self._comm.allreduce(sums)
        error, mean, square = (sums[:3] / max(1.0, sums[3])).tolist()
        return 1.0 - error / (square - mean**2) if square > mean**2 else 0.0

    def _sample_ids(self, learnable: Bool, steps: int, span: int) -> I64:
        """Return for each of these steps of all ranks' envs its index among the listed samples, or −1."""
        mine = len(self._envs)
        step, env = np.divmod(np.arange(steps * self.config.num_envs), self.config.num_envs)
        ids: I64 = (step + step // span) * mine + env - self._envs.start
        ids[(env < self._envs.start) | (env >= self._envs.stop)] = -1
        ids[ids >= 0] = np.where(learnable[ids[ids >= 0]], ids[ids >= 0], -1)
        return ids

    def _returns(self, rollout: Rollout, rows: I64, values: F32, gamma: float) -> F32:
        """Return λ-returns float32 (number, span, envs) of stretches of rows (number, span)."""
        number, span, envs = len(rows), rows.shape[1], rollout.num_envs

        def side_by_side(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(array.shape[1], number * envs)

        targets, advantages = (np.zeros((span, number * envs), np.float32) for _ in range(2))
        returns.advantages_of(
            side_by_side(rollout.arrays.rewards[rows]), side_by_side(rollout.arrays.ended[rows]), side_by_side(values),
            gamma, self.LAMBDA, self.LAMBDA, advantages, targets,
        )  # fmt: skip
        return targets.reshape(span, number, envs).swapaxes(0, 1)

    def state(self) -> Arrays:
        """Everything, as arrays by name."""
        own = {"weights": self.net.flat, "batches": np.array(self.batches), **self._updater.state()}
        return {f"critic_{name}": array for name, array in own.items()}

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""
        own = {name.removeprefix("critic_"): array for name, array in arrays.items() if name.startswith("critic_")}
        self.net.flat[:] = own["weights"]
        self.batches = int(own["batches"])
        self._updater.load_state(own)
