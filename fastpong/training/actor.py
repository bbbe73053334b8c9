"""Acting: where experience comes from, and the actor that makes it with the envs of this process."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.envs.base import Envs
from fastpong.kernels.preprocess import observe
from fastpong.parallel.replaced import Losses
from fastpong.policy import Policy, make_policy
from fastpong.rollout.buffer import Rollout
from fastpong.rollout.episode_stats import EpisodeStats

STAGES = ("env_wait", "preprocess", "act", "env_send", "record", "update")


class Sampler(Protocol):
    """Where the experience of some consecutive envs comes from.

    Attributes
    ----------
    policy : Policy
        Whose weights act.
    rollout : Rollout
        The transitions that were made.
    stats : EpisodeStats
        Counts their games and points.
    mine : range
        Global indices of the envs.
    steps_taken : int
        Steps of each env since the run began.
    seconds : dict
        Time spent on each part of the work.
    engine : str
        What steps the envs, see `fastpong.envs.engine`.
    losses : Losses
        Processes that were lost and replaced.
    """

    policy: Policy
    rollout: Rollout
    stats: EpisodeStats
    mine: range
    steps_taken: int
    seconds: dict[str, float]
    engine: str
    losses: Losses

    def start(self) -> None:
        """Reset all envs."""

    def play(self, count: int, stop: Callable[[], bool] | None = None) -> None:
        """Take so many steps of every env, or fewer if there is a `stop`, asked after each of them, that says so."""

    def ahead(self) -> int:
        """Return how many steps had better be asked for at once, if any of them may end the batch."""

    def learning(self) -> AbstractContextManager[object]:
        """To be entered while the weights of the policy change."""

    def snapshot(self) -> dict[str, Arrays]:
        """State of ``rollout``, ``stats`` and ``envs``, after waiting for the steps in flight."""

    def restore(self, parts: dict[str, Arrays], steps_taken: int) -> None:
        """Go on from a `snapshot` after so many steps, in place of `start`."""


class Actor:
    """Steps all envs together with one policy, in this process. See `Sampler`.

    `envs` are those of the run or, with several ranks, of this one; they are not started yet: call `start`. `seconds`
    has the time spent in each of `STAGES`. Without a `policy` the run's own begins.
    """

    def __init__(self, config: Config, envs: Envs, policy: Policy | None = None):
        self.config, self.envs = config, envs
        self.policy = policy or make_policy(config, envs.env_offset)
        self.engine, self.losses = envs.engine, envs.losses
        self.mine = range(envs.env_offset, envs.env_offset + envs.env_count)
        self.rollout = self.policy.make_rollout(envs.env_count)
        self.stats = EpisodeStats(config.num_envs, config.running_reward_decay, self.mine)
        self.steps_taken = 0
        self.seconds = dict.fromkeys(STAGES, 0.0)
        if self.rollout.encoding.image not in envs.arrays:  # the kernels would read beyond what there is
            raise ValueError(f"this policy sees {self.rollout.encoding.image}, and these envs have none: ask for them")
        self._observation = observe(envs.arrays)

    def start(self) -> None:
        """See `Sampler`."""
        self.envs.reset()

    def play(self, count: int, stop: Callable[[], bool] | None = None) -> None:
        """See `Sampler`."""
        for _ in range(count):
            self.step()
            if stop and stop():
                break

    def step(self, greedy: bool = False) -> None:
        """Take one step of every env, and count the outcomes of the step before; `greedy` as for `Policy.act`."""
        envs, rollout, clock, seconds = self.envs, self.rollout, time.perf_counter, self.seconds
        row = rollout.new_row()
        for group, members in enumerate(envs.groups):
            t0 = clock()
            envs.recv(group)
            t1 = clock()
            rollout.record(row, self._observation, members, members)
            t2 = clock()
            actions = self.policy.act(rollout.inputs, row * rollout.num_envs, members, self.steps_taken, greedy)
            t3 = clock()
            envs.send(group, actions)
            for stage, spent in zip(STAGES, (t1 - t0, t2 - t1, t3 - t2, clock() - t3), strict=False):
                seconds[stage] += spent
        self.steps_taken += 1
        if row:
            t0 = clock()
            self.stats.add(rollout.arrays.rewards[row - 1], rollout.arrays.ended[row - 1])
            seconds["record"] += clock() - t0

    def ahead(self) -> int:
        """See `Sampler`: it looks after each step."""
        return 1

    def learning(self) -> AbstractContextManager[object]:
        """See `Sampler`: weights are where they are used."""
        return nullcontext()

    def snapshot(self) -> dict[str, Arrays]:
        """See `Sampler`."""
        return {"rollout": self.rollout.state(), "stats": self.stats.state(), "envs": self.envs.snapshot()}

    def restore(self, parts: dict[str, Arrays], steps_taken: int) -> None:
        """See `Sampler`."""
        self.rollout.load_state(parts["rollout"])
        self.stats.load_state(parts["stats"])
        self.envs.restore(parts["envs"])
        self.steps_taken = steps_taken
