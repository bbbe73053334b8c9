"""Clipped policy gradients (PPO) on sparse inputs, with a value output and Adam."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.games import usable_cores
from fastpong.kernels import optimiser, ppo
from fastpong.noise import SHUFFLE, stream_key
from fastpong.policy import Policy, input_count, split
from fastpong.rollout import Rollout
from fastpong.tally import Tally

HALVES = 2
"""Parts of a minibatch that are worked on at the same time, on any machine: so the sums are the same on all."""


class _Half:
    """What one half of a minibatch adds up: a gradient, the rows of `w1` it touches, and sums of statistics."""

    def __init__(self, config: Config, size: int):
        self.gradient = np.zeros(size, np.float32)
        self.grad_w1, self.grad_w2 = split(config, self.gradient)
        self.marks, self.touched = np.zeros(input_count(config), np.int64), np.zeros(input_count(config), np.int64)
        self.count = 0
        self.sums = np.zeros(4)


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
        self.mean, self.square = np.zeros_like(policy.weights), np.zeros_like(policy.weights)
        self._halves = [_Half(config, len(policy.weights)) for _ in range(HALVES)]
        self.gradient = self._halves[0].gradient  # where the halves are added up
        # The emulators wait while the weights change, so a second core is free for it.
        self._pool = ThreadPoolExecutor(min(HALVES, usable_cores()), "learner")
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
        for half in self._halves:
            half.sums[:] = 0.0
        for _ in range(c.epochs):
            order = rng.permutation(advantages.size)
            for start in range(0, len(order), c.minibatch):
                self._step(
                    rollout, standardised, targets.reshape(-1), order[start : start + c.minibatch],
                    left * c.learning_rate, left * c.entropy,
                )  # fmt: skip
        sums = np.sum([half.sums for half in self._halves], axis=0) / (c.epochs * advantages.size)
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
    ) -> None:
        """Take one step of the optimiser for a minibatch (int64 (m,) indices)."""
        c, policy, first = self.config, self.policy, self._halves[0]
        self.updates += 1

        def add_up(half: _Half, part: npt.NDArray[np.int64]) -> None:
            half.count = ppo.clipped_gradient(
                rollout.changes, rollout.starts.reshape(-1), rollout.lengths.reshape(-1),
                rollout.actions.reshape(-1), rollout.log_probs.reshape(-1), advantages, targets, part,
                policy.w1, policy.w2, c.clip, entropy, c.value_weight, 1.0 / len(samples),
                half.grad_w1, half.grad_w2, half.marks, self.updates, half.touched, half.sums,
            )  # fmt: skip

        self._both(add_up, self._halves, np.array_split(samples, HALVES))
        count = first.count
        for other in self._halves[1:]:
            count = ppo.merge_rows(
                first.grad_w1, first.marks, self.updates, first.touched, count,
                other.grad_w1, other.touched, other.count,
            )  # fmt: skip
            first.grad_w2 += other.grad_w2
            other.grad_w2[:] = 0.0

        def step(parts: tuple[Any, Any, Any, Any], rows: npt.NDArray[np.int64]) -> None:
            optimiser.adam_rows(
                *parts, rows, len(rows), learning_rate, c.adam_beta_1, c.adam_beta_2, c.adam_epsilon, self.updates
            )

        first_layer, second_layer = self._layers()
        self._both(step, [first_layer] * HALVES, np.array_split(first.touched[:count], HALVES))
        step(second_layer, np.arange(len(policy.w2)))

    def _layers(self) -> list[tuple[Any, Any, Any, Any]]:
        """Return weights, gradient, mean and mean square of `w1`, then of `w2`."""
        buffers = (self.policy.weights, self.gradient, self.mean, self.square)
        return list(zip(*(split(self.config, buffer) for buffer in buffers), strict=True))

    def _both(self, work: Any, *arguments: Any) -> None:
        """Call `work` with each set of arguments, on as many cores as there are."""
        for _ in self._pool.map(work, *arguments):
            pass

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        spare = PPO(self.config, Policy(self.config))
        rollout = Rollout(self.config)
        rollout.rows = 2
        spare.learn(rollout, Tally(self.config.envs, 0.0))
        spare.close()

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        return {"mean": self.mean, "square": self.square, "updates": np.array(self.updates)}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.mean[:], self.square[:] = arrays["mean"], arrays["square"]
        self.updates = int(arrays["updates"])
        for half in self._halves:
            half.marks[:] = 0
