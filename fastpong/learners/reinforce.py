"""REINFORCE with RMSProp: the reference programs' learner."""

import time
from collections import deque

import numpy as np

from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.kernels import mlp, optimiser
from fastpong.kernels.structs import Mlp
from fastpong.parallel.comm import Communicator
from fastpong.policy import Policy
from fastpong.rollout.buffer import Rollout
from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.rollout.finished import finished_batch

UNKNOWN = 1 << 30
"""Steps until a game or a window ends: it may be any."""

WINDOWS = 100
"""How many of the latest windows are looked at."""


class Windows:
    """The rewards of windows of wall-clock time, as ppg-pong reports them.

    The reward of a window is what all envs won and lost in it, per env: ppg-pong had one env a rank. `running` is the
    running mean of the rewards, with the first one as its start.
    """

    def __init__(self, config: Config):
        self._config = config
        self._rewards: deque[float] = deque(maxlen=WINDOWS)
        self._began: float | None = None
        self._net = 0
        self.running: float | None = None

    def is_over(self, points: int) -> bool:
        """Whether the present window has lasted long enough; the first one begins once some points have ended."""
        if self._began is None and points:
            self._began = time.perf_counter()
        return self._began is not None and time.perf_counter() - self._began >= self._config.window_seconds

    def reached(self, target: float) -> bool:
        """Whether the running mean, of a hundred windows or more, is at the target."""
        return self.running is not None and len(self._rewards) == WINDOWS and self.running >= target

    def add(self, net_points: int) -> dict[str, float]:
        """Close a window, at a total of `net_points` points won minus lost, and return what there is to report."""
        reward = (net_points - self._net) / self._config.num_envs
        self._net, self._began = net_points, time.perf_counter()
        self._rewards.append(reward)
        keep = self._config.running_reward_decay
        self.running = reward if self.running is None else keep * self.running + (1 - keep) * reward
        return {"window_reward": reward, "running_reward": self.running, "per_kup": self.per_kup()}

    def per_kup(self) -> float:
        """Reward gained per 1000 updates: newer minus older half of the last 100 windows, over half their number."""
        rewards = list(self._rewards)
        half = len(rewards) // 2
        if not half:
            return 0.0
        return 1000.0 * (sum(rewards[-half:]) - sum(rewards[:half])) / half / half

    def state(self) -> Arrays:
        """Everything, as arrays by name."""
        running = np.nan if self.running is None else self.running
        return {"window_rewards": np.array(self._rewards), "window_numbers": np.array([running, self._net])}

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""
        self._rewards.extend(arrays["window_rewards"].tolist())
        running, net = arrays["window_numbers"].tolist()
        self.running, self._net = None if np.isnan(running) else running, int(net)


DECAY, EPSILON = 0.99, 1e-5
"""RMSProp's constants in the reference programs."""


class Reinforce:
    """Changes the weights once for every `batch_games` games that have ended, or every `window_seconds`. See `Learner`.

    It takes the settings, the policy whose weights to change, who learns together, and the envs of this rank.
    """

    synchronise_every = 1  # it waits for a number of games
    SLOW_KERNELS = ()

    def __init__(self, config: Config, policy: Policy, comm: Communicator, envs: range):
        self.config, self.policy, self._comm = config, policy, comm
        self._gradient, self._cache = np.zeros_like(policy.weights.flat), np.zeros_like(policy.weights.flat)
        self._gradients, self._weights = (
            Mlp(**policy.weights.split(flat)) for flat in (self._gradient, policy.weights.flat)
        )
        self.updates = 0
        self.statistics: dict[str, float | str | None] = {}
        self.windows = Windows(config) if config.window_seconds else None
        self.ends_by_games = not config.window_seconds
        self.log_each_batch = bool(config.window_seconds) or config.batch_unit == "game"
        self._began: float | None = None  # when the first step of the batch was taken

    def due(self, rollout: Rollout, stats: EpisodeStats) -> bool:
        """Whether enough games have ended, or the window is over by the clock of rank 0."""
        self._began = self._began or time.perf_counter()
        if self.windows:
            return bool(self._comm.broadcast(self.windows.is_over(stats.won + stats.lost)))
        return stats.batch_games >= self.config.batch_games

    def steps_until_due(self, rollout: Rollout) -> int:
        """See `Learner`: unknown."""
        return UNKNOWN

    def learn(self, rollout: Rollout, stats: EpisodeStats) -> None:
        """Learn from the finished points (or games) of all rows but the last, which has no outcome yet."""
        c = self.config
        batch = finished_batch(rollout, rollout.rows - 1, c.batch_unit, c.gamma)
        entropy = mlp.policy_gradient(rollout.inputs, batch.samples, batch.advantages, self._weights, self._gradients)
        self._comm.allreduce(self._gradient)
        sums = np.array([entropy, len(batch.samples)])
        self._comm.allreduce(sums)
        self.statistics = {"entropy": float(sums[0] / max(1.0, sums[1])), "learning_rate": c.learning_rate}
        if self.windows:
            self._gradient /= c.num_envs
            self.statistics |= self.windows.add(stats.net_points)
        elif self.log_each_batch:
            now = time.perf_counter()
            self.statistics |= {"batch_games": stats.batch_games, "batch_s": round(now - (self._began or now), 3)}
        optimiser.rmsprop(self.policy.weights.flat, self._gradient, self._cache, c.learning_rate, DECAY, EPSILON)
        self.updates += 1
        self._began = None
        rollout.release(batch.ends)
        stats.begin_batch()

    def reached(self, target: float, stats: EpisodeStats) -> bool:
        """Whether the score, or the running reward of windows, is at the target."""
        if self.windows:
            return self.windows.reached(target)
        return stats.reached(target)

    def begin_late_phase(self, steps: int) -> None:
        """No-op: there is none."""

    def close(self) -> None:
        """No-op: there are no threads."""

    def state(self) -> Arrays:
        """See `Learner`."""
        windows = self.windows.state() if self.windows else {}
        return {"cache": self._cache, "updates": np.array(self.updates), **windows}

    def load_state(self, arrays: Arrays) -> None:
        """See `Learner`."""
        self._cache[:] = arrays["cache"]
        self.updates = int(arrays["updates"])
        if self.windows:
            self.windows.load_state(arrays)
