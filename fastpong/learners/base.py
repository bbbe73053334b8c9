"""What a learner is to the trainer, and which one a run has."""

from typing import Any, Protocol

from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.learners.ppo import PPO
from fastpong.learners.reinforce import Reinforce
from fastpong.parallel.comm import Communicator, Serial
from fastpong.policy import Policy
from fastpong.rollout.buffer import Rollout
from fastpong.rollout.episode_stats import EpisodeStats


class Learner(Protocol):
    """Changes the weights of a policy."""

    SLOW_KERNELS: tuple[Any, ...]  # those that take long to compile

    updates: int  # steps of the optimiser so far
    statistics: dict[str, float | str | None]  # of the last batch, by the names of the metrics
    synchronise_every: int  # steps of all envs after which ranks synchronise their episode statistics
    ends_by_games: bool  # a batch ends with a game, so that nobody knows before with which step
    log_each_batch: bool  # a line of metrics for each batch, besides one every `log_interval` steps

    def due(self, rollout: Rollout, stats: EpisodeStats) -> bool:
        """Whether there is enough to learn from; the same on all ranks."""

    def steps_until_due(self, rollout: Rollout) -> int:
        """Return the steps of every env before which there cannot be enough to learn from."""

    def learn(self, rollout: Rollout, stats: EpisodeStats) -> None:
        """Change the weights, and release the rows that were learned from."""

    def reached(self, target: float, stats: EpisodeStats) -> bool:
        """Whether the agent is as good as the target score asks for; the same on all ranks."""

    def begin_late_phase(self, steps: int) -> None:
        """Begin the late phase, if there is one, as if the agent had come to win most points after so many steps."""

    def close(self) -> None:
        """Stop the threads."""

    def state(self) -> Arrays:
        """Everything but the weights, by name."""

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""


LEARNERS: dict[str, Any] = {"ppo": PPO, "reinforce": Reinforce}
"""The learner of each algorithm; it takes the policy of `POLICIES`."""


def make_learner(
    config: Config, policy: Policy, comm: Communicator | None = None, envs: range | None = None
) -> Learner:
    """Return what changes the weights of a run's policy, for a rank with these envs (all by default)."""
    envs = range(config.num_envs) if envs is None else envs
    learner: Learner = LEARNERS[config.algorithm](config, policy, comm or Serial(), envs)
    return learner
