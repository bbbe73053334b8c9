"""REINFORCE with RMSProp: the learner of the seeds."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import network, optimiser
from fastpong.policy import Policy, views
from fastpong.rollout import Rollout
from fastpong.tally import Tally


class Reinforce:
    """Changes the weights once for every `batch_games` games that have ended.

    Parameters
    ----------
    config : Config
        Uses `batch_games`, `learning_rate` and the ``rmsprop_*`` settings.
    policy : Policy
        The weights to change.

    Attributes
    ----------
    updates : int
        Steps of the optimiser so far.
    statistics : dict of str to float
        ``entropy``: mean entropy of the policy over the last batch, in nats.
    """

    def __init__(self, config: Config, policy: Policy):
        self.config, self.policy = config, policy
        self.gradient = np.zeros_like(policy.weights)
        self.cache = np.zeros_like(policy.weights)
        self.gradients = views(config, self.gradient)
        self.updates = 0
        self.statistics: dict[str, float] = {}

    def due(self, rollout: Rollout, tally: Tally) -> bool:
        """Whether enough games have ended."""
        return tally.batch_games >= self.config.batch_games

    def learn(self, rollout: Rollout, tally: Tally) -> None:
        """Learn from the finished points (or games) of all rows but the last, which has no outcome yet."""
        batch = rollout.cut_batch(rollout.rows - 1)
        entropy = network.policy_gradient(
            rollout.items, rollout.starts.reshape(-1), rollout.lengths.reshape(-1), rollout.actions.reshape(-1),
            batch.samples, batch.advantages, self.policy.arrays["w1"], self.policy.arrays["w2"],
            self.gradients["w1"], self.gradients["w2"],
        )  # fmt: skip
        self.statistics["entropy"] = entropy / max(1, len(batch.samples))
        c = self.config
        optimiser.rmsprop(
            self.policy.weights, self.gradient, self.cache, c.learning_rate, c.rmsprop_decay, c.rmsprop_epsilon
        )
        self.updates += 1
        tally.batch_games = 0

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        spare = Rollout(self.config)
        spare.rewards[0], spare.ended[0] = 1, 1
        spare.rows = 1
        batch = spare.cut_batch(1)
        network.policy_gradient(
            spare.items, spare.starts.reshape(-1), spare.lengths.reshape(-1), spare.actions.reshape(-1),
            batch.samples[:0], batch.advantages[:0], self.policy.arrays["w1"], self.policy.arrays["w2"],
            self.gradients["w1"], self.gradients["w2"],
        )  # fmt: skip
        one = np.zeros(1, np.float32)
        optimiser.rmsprop(one, one.copy(), one.copy(), 0.0, 0.5, 1.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        return {"cache": self.cache, "updates": np.array(self.updates)}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.cache[:] = arrays["cache"]
        self.updates = int(arrays["updates"])
