"""REINFORCE with RMSProp: the learner of the seeds."""

import time
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.kernels import network, optimiser
from fastpong.policy import Policy, shapes, views
from fastpong.ranks import Alone, Ranks
from fastpong.rollout import Rollout
from fastpong.tally import Tally


class Windows:
    """The rewards of windows of wall-clock time, as ppg-pong reports them.

    The reward of a window is what all games won and lost in it, per game: ppg-pong played one game a rank.

    Attributes
    ----------
    running : float or None
        Running mean of the rewards, with the first one as its start.
    """

    def __init__(self, config: Config):
        self._config = config
        self._rewards: deque[float] = deque(maxlen=100)
        self._began: float | None = None
        self._net = 0
        self.running: float | None = None

    def over(self) -> bool:
        """Whether the present window has lasted long enough; the first one begins with the first call."""
        if self._began is None:
            self._began = time.perf_counter()
        return time.perf_counter() - self._began >= self._config.window_seconds

    def add(self, net: int) -> dict[str, float]:
        """Close a window, at a total of `net` points won minus lost, and return what there is to report."""
        reward = (net - self._net) / self._config.envs
        self._net, self._began = net, time.perf_counter()
        self._rewards.append(reward)
        keep = self._config.running_mean
        self.running = reward if self.running is None else keep * self.running + (1 - keep) * reward
        return {"window_reward": reward, "running_reward": self.running, "per_kup": self.per_kup()}

    def per_kup(self) -> float:
        """Reward gained per 1000 updates: newer minus older half of the last 100 windows, over half their number."""
        rewards = list(self._rewards)
        half = len(rewards) // 2
        if not half:
            return 0.0
        return 1000.0 * (sum(rewards[-half:]) - sum(rewards[:half])) / half / half

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays by name."""
        running = np.nan if self.running is None else self.running
        return {"window_rewards": np.array(self._rewards), "window_numbers": np.array([running, self._net])}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self._rewards.extend(arrays["window_rewards"].tolist())
        running, net = arrays["window_numbers"].tolist()
        self.running, self._net = None if np.isnan(running) else running, int(net)


class Reinforce:
    """Changes the weights once for every `batch_games` games that have ended, or every `window_seconds`.

    Parameters
    ----------
    config : Config
        Uses `batch_games`, `window_seconds`, `running_mean`, `learning_rate` and the ``rmsprop_*`` settings.
    policy : Policy
        The weights to change.
    ranks : Ranks
        Who learns together.

    Attributes
    ----------
    updates : int
        Steps of the optimiser so far.
    statistics : dict of str to float
        ``entropy``: mean entropy of the policy over the last batch, in nats; and of `windows`, if these are used.
    windows : Windows or None
        The windows so far.
    """

    def __init__(self, config: Config, policy: Policy, ranks: Ranks | None = None):
        self.config, self.policy, self.ranks = config, policy, ranks or Alone()
        self.gradient = np.zeros_like(policy.weights)
        self.cache = np.zeros_like(policy.weights)
        self.gradients = views(shapes(config), self.gradient)
        self.updates = 0
        self.statistics: dict[str, float] = {}
        self.windows = Windows(config) if config.window_seconds else None

    def due(self, rollout: Rollout, tally: Tally) -> bool:
        """Whether enough games have ended, or the window is over by the clock of rank 0."""
        if self.windows:
            return bool(self.ranks.from_first(self.windows.over()))
        return tally.batch_games >= self.config.batch_games

    def learn(self, rollout: Rollout, tally: Tally) -> None:
        """Learn from the finished points (or games) of all rows but the last, which has no outcome yet."""
        batch = rollout.cut_batch(rollout.rows - 1, self.ranks)
        entropy = network.policy_gradient(
            rollout.items, rollout.starts.reshape(-1), rollout.lengths.reshape(-1), rollout.actions.reshape(-1),
            batch.samples, batch.advantages, self.policy.arrays["w1"], self.policy.arrays["w2"],
            self.gradients["w1"], self.gradients["w2"],
        )  # fmt: skip
        self.ranks.sum(self.gradient, self.config.wire)
        sums = np.array([entropy, len(batch.samples)])
        self.ranks.sum(sums)
        self.statistics["entropy"] = float(sums[0] / max(1.0, sums[1]))
        c = self.config
        if self.windows:
            self.gradient /= c.envs
            self.statistics |= {"learning_rate": c.learning_rate, **self.windows.add(tally.net)}
        optimiser.rmsprop(
            self.policy.weights, self.gradient, self.cache, c.learning_rate, c.rmsprop_decay, c.rmsprop_epsilon
        )
        self.updates += 1
        tally.batch_games = 0

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        spare = Rollout(self.config, 1)
        spare.rewards[0], spare.ended[0] = 1, 1
        spare.rows = 1
        batch = spare.cut_batch(1, Alone())
        network.policy_gradient(
            spare.items, spare.starts.reshape(-1), spare.lengths.reshape(-1), spare.actions.reshape(-1),
            batch.samples[:0], batch.advantages[:0], self.policy.arrays["w1"], self.policy.arrays["w2"],
            self.gradients["w1"], self.gradients["w2"],
        )  # fmt: skip
        one = np.zeros(1, np.float32)
        optimiser.rmsprop(one, one.copy(), one.copy(), 0.0, 0.5, 1.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        windows = self.windows.state() if self.windows else {}
        return {"cache": self.cache, "updates": np.array(self.updates), **windows}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.cache[:] = arrays["cache"]
        self.updates = int(arrays["updates"])
        if self.windows:
            self.windows.load_state(arrays)
