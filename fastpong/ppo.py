"""Clipped policy gradients (PPO) on sparse inputs, with a value output and Adam."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import optimiser, ppo
from fastpong.noise import SHUFFLE, stream_key
from fastpong.policy import Policy, input_count, split
from fastpong.rollout import Rollout
from fastpong.tally import Tally


class PPO:
    """Goes over every `rollout_steps` steps of all games several times, in minibatches.

    Parameters
    ----------
    config : Config
        Uses `rollout_steps`, `epochs`, `minibatch`, `gamma`, `gae_lambda`, `clip`, `entropy`, `value_weight`,
        `learning_rate`, the ``adam_*`` and the ``schedule_*`` settings.
    policy : Policy
        The weights to change; it has a value output.

    Attributes
    ----------
    updates : int
        Steps of the optimiser so far.
    statistics : dict of str to float
        Means over the last batch: ``entropy`` and ``kl`` (nats), ``clipped`` (share of samples) and ``explained``
        (share of the variance of the returns that the value explains); and the present ``learning_rate``.
    """

    def __init__(self, config: Config, policy: Policy):
        self.config, self.policy = config, policy
        weights = policy.weights
        self.gradient, self.mean, self.square = np.zeros_like(weights), np.zeros_like(weights), np.zeros_like(weights)
        self._marks = np.zeros(input_count(config), np.int64)
        self._touched = np.zeros(input_count(config), np.int64)
        self.updates = 0
        self.statistics: dict[str, float] = {}

    def due(self, rollout: Rollout, tally: Tally) -> bool:
        """Whether all rows but the last, which has no outcome yet, make a batch."""
        return rollout.rows > self.config.rollout_steps

    def learn(self, rollout: Rollout, tally: Tally) -> None:
        """Learn from all rows but the last, whose value stands for what comes after them."""
        c = self.config
        rows = rollout.rows - 1
        advantages, targets = np.zeros((rows, c.envs), np.float32), np.zeros((rows, c.envs), np.float32)
        ppo.advantages_of(
            rollout.rewards[:rows], rollout.ended[:rows], rollout.values[: rows + 1], c.gamma, c.gae_lambda,
            advantages, targets,
        )  # fmt: skip
        mean, deviation = advantages.mean(dtype=np.float64), advantages.std(dtype=np.float64)
        standardised = ((advantages - mean) / (deviation + 1e-8)).astype(np.float32).reshape(-1)
        left = max(c.schedule_floor, 1.0 - tally.steps / c.schedule_steps)
        # Keyed by the number of updates, so that a resumed run draws the same minibatches.
        rng = np.random.default_rng([stream_key(c.seed, SHUFFLE), self.updates])
        sums = np.zeros(4)
        for _ in range(c.epochs):
            order = rng.permutation(advantages.size)
            for start in range(0, len(order), c.minibatch):
                self._step(
                    rollout, standardised, targets.reshape(-1), order[start : start + c.minibatch],
                    left * c.learning_rate, left * c.entropy, sums,
                )  # fmt: skip
        sums /= c.epochs * advantages.size
        spread = float(targets.var(dtype=np.float64))
        self.statistics = {
            "entropy": float(sums[0]),
            "kl": float(sums[1]),
            "clipped": float(sums[2]),
            "explained": 1.0 - float(sums[3]) / spread if spread > 0 else 0.0,
            "learning_rate": left * c.learning_rate,
        }
        rollout.begins[:] = rows

    def _step(
        self,
        rollout: Rollout,
        advantages: npt.NDArray[np.float32],
        targets: npt.NDArray[np.float32],
        samples: npt.NDArray[np.int64],
        learning_rate: float,
        entropy: float,
        sums: npt.NDArray[np.float64],
    ) -> None:
        """Take one step of the optimiser for a minibatch (int64 (m,) indices)."""
        c, policy = self.config, self.policy
        self.updates += 1
        grad_w1, grad_w2 = split(c, self.gradient)
        count = ppo.clipped_gradient(
            rollout.changes, rollout.starts.reshape(-1), rollout.lengths.reshape(-1), rollout.actions.reshape(-1),
            rollout.log_probs.reshape(-1), advantages, targets, samples, policy.w1, policy.w2,
            c.clip, entropy, c.value_weight, grad_w1, grad_w2, self._marks, self.updates, self._touched, sums,
        )  # fmt: skip
        mean_w1, mean_w2 = split(c, self.mean)
        square_w1, square_w2 = split(c, self.square)
        every = np.arange(len(policy.w2))
        for weights, gradient, mean, square, rows, number in (
            (policy.w1, grad_w1, mean_w1, square_w1, self._touched, count),
            (policy.w2, grad_w2, mean_w2, square_w2, every, len(every)),
        ):
            optimiser.adam_rows(
                weights, gradient, mean, square, rows, number,
                learning_rate, c.adam_beta_1, c.adam_beta_2, c.adam_epsilon, self.updates,
            )  # fmt: skip

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        spare = PPO(self.config, Policy(self.config))
        rollout = Rollout(self.config)
        rollout.rows = 2
        spare.learn(rollout, Tally(self.config.envs, 0.0))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        return {"mean": self.mean, "square": self.square, "updates": np.array(self.updates)}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.mean[:], self.square[:] = arrays["mean"], arrays["square"]
        self.updates = int(arrays["updates"])
        self._marks[:] = 0
