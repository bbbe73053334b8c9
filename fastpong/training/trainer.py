"""Stepping all envs, and learning from them: the core of training, evaluation and play, without files."""

import subprocess
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.envs.base import LAYOUT as ENV_LAYOUT
from fastpong.envs.base import Envs
from fastpong.errors import UsageError
from fastpong.kernels.preprocess import Observation, as_words
from fastpong.learners.base import make_agent
from fastpong.parallel.comm import Communicator, Serial, check_same_weights
from fastpong.parallel.sharding import Layout, cut, join
from fastpong.policy import Policy
from fastpong.rollout.buffer import LAYOUT as ROLLOUT_LAYOUT
from fastpong.rollout.buffer import join_states
from fastpong.rollout.episode_stats import LAYOUT as STATS_LAYOUT
from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.training.kernels import load_kernels

CHECK_EVERY = 8
"""Batches after which ranks make sure that they still have the same weights."""

LAYOUTS: dict[str, Layout] = {"rollout": ROLLOUT_LAYOUT, "stats": STATS_LAYOUT, "envs": ENV_LAYOUT}

STAGES = ("env_wait", "preprocess", "act", "env_send", "record", "update")


class Actor:
    """Steps all envs together with one policy.

    `envs` are those of the run or, with several ranks, of this one; they are not started yet: call `start`. `rollout`
    holds the transitions, `stats` counts games and points, `steps_taken` counts the steps of each env, and `seconds`
    the time spent in each of `STAGES`.
    """

    def __init__(self, config: Config, envs: Envs, policy: Policy):
        self.config, self.envs, self.policy = config, envs, policy
        mine = range(envs.env_offset, envs.env_offset + envs.env_count)
        self.rollout = policy.make_rollout(envs.env_count)
        self.stats = EpisodeStats(config.num_envs, config.running_reward_decay, mine)
        self.steps_taken = 0
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._observation = Observation(as_words(envs.screens), envs.rewards, envs.ended)
        self._rows = [envs.rows[members] for members in envs.groups]

    def start(self) -> None:
        """Reset all envs."""
        self.envs.reset()

    def step(self, greedy: bool = False, exploring_starts: float = 0.0) -> None:
        """Take one step of every env, and count the outcomes of the step before; arguments as for `Policy.act`."""
        envs, rollout, clock, seconds = self.envs, self.rollout, time.perf_counter, self.seconds
        row = rollout.new_row()
        with envs.rotation:
            for group, (members, rows) in enumerate(zip(envs.groups, self._rows, strict=True)):
                t0 = clock()
                envs.recv(group)
                t1 = clock()
                rollout.record(row, self._observation, rows, members)
                t2 = clock()
                actions = self.policy.act(
                    rollout.inputs, row * rollout.num_envs, members, self.steps_taken, greedy, exploring_starts
                )
                t3 = clock()
                envs.send(group, actions)
                for stage, spent in zip(STAGES, (t1 - t0, t2 - t1, t3 - t2, clock() - t3), strict=False):
                    seconds[stage] += spent
        self.steps_taken += 1
        if row:
            t0 = clock()
            self.stats.add(rollout.arrays.rewards[row - 1], rollout.arrays.ended[row - 1])
            seconds["record"] += clock() - t0


class Trainer(Actor):
    """Steps, and learns.

    The order of things is the same for any number of ranks, workers and groups: all envs take step t, then the weights
    may change, then all envs take step t + 1. An update learns from outcomes up to step t − 1 while the emulators are
    busy with step t.
    """

    def __init__(self, config: Config, envs: Envs, comm: Communicator | None = None):
        self.comm = comm or Serial()
        self._mine = range(envs.env_offset, envs.env_offset + envs.env_count)
        policy, self.learner = make_agent(config, self.comm, self._mine)
        super().__init__(config, envs, policy)
        self._batches = self._synchronised_at = 0
        self._compiling: subprocess.Popen[bytes] | None = None

    def step(self, greedy: bool = False, exploring_starts: float = 0.0) -> None:
        """See `Actor.step`, with the learner's exploring starts; now and then ranks also `synchronise`."""
        super().step(greedy, self.learner.exploring_starts(self.steps_taken * self.config.num_envs))
        if self.steps_taken % self.learner.synchronise_every == 0:
            self.synchronise()

    def synchronise(self) -> None:
        """Exchange the statistics of finished games with the other ranks, once a step."""
        if not self.synchronised:
            self.stats.synchronise(self.comm)
            self._synchronised_at = self.steps_taken

    @property
    def synchronised(self) -> bool:
        """Whether all ranks have the same statistics, of all steps but the last."""
        return self._synchronised_at == self.steps_taken

    def reached_target(self) -> bool:
        """Whether the agent is as good as the target score asks for; the same on all ranks."""
        return self.learner.reached(self.config.target_score, self.stats)

    def load_kernels(self) -> bool:
        """Compile or load the kernels; return whether a subprocess still compiles those of the first update."""
        self._compiling = load_kernels(self.config, self.comm.size)
        return self._compiling is not None

    def learn_if_due(self) -> bool:
        """Update the weights if the learner has enough to learn from."""
        if not self.learner.due(self.rollout, self.stats):
            return False
        if self._compiling and self._compiling.stdout:
            self._compiling.stdout.readline()  # if it has failed, the kernels are compiled here
            self._compiling = None
        t0 = time.perf_counter()
        self.learner.learn(self.rollout, self.stats)
        self._batches += 1
        if self._batches % CHECK_EVERY == 0:
            check_same_weights(self.comm, self.policy.weights.flat)
        self.seconds["update"] += time.perf_counter() - t0
        return True

    def close(self) -> None:
        """Stop the learner's threads; a subprocess that still compiles fills the cache and ends by itself."""
        self.learner.close()
        if self._compiling and self._compiling.stdout:
            self._compiling.stdout.close()

    def metrics(self) -> dict[str, Any]:
        """Return a line of metrics without time and speed; see `fastpong.training.metrics`."""
        stats = self.stats
        return {
            "games": stats.games,
            "score": stats.score,
            "point_rate": stats.point_rate(),
            "game_length": stats.game_length,
            "running_reward": stats.running_reward,
            "updates": self.learner.updates,
            **self.learner.statistics,
            "world_size": self.comm.size,
            "comm_s": round(self.comm.seconds, 3),
        }

    def state(self) -> Arrays:
        """Everything that a run is, as arrays by name, of all ranks; waits for the steps in flight.

        All ranks have to call it; only rank 0 gets the arrays, the others none.
        """
        self.synchronise()
        mine = {"rollout": self.rollout.state(), "stats": self.stats.state(), "envs": self.envs.snapshot()}
        shares = self.comm.gather(mine)
        if shares is None:
            return {}
        parts = {
            "rollout": join_states([share["rollout"] for share in shares]),
            "stats": join([share["stats"] for share in shares], STATS_LAYOUT),
            "envs": join([share["envs"] for share in shares], ENV_LAYOUT),
        }
        parts |= {"policy": self.policy.weights.arrays, "learner": self.learner.state()}
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return arrays | {"step": np.array(self.steps_taken)}

    def load_state(self, arrays: Mapping[str, Any]) -> None:
        """Continue from a `state` in place of `start`, bit for bit, with any number of ranks and workers.

        Raises `UsageError` if it is of another version, which keeps other things.
        """
        parts: dict[str, Arrays] = {}
        for key, array in arrays.items():
            part, _, name = key.partition(".")
            parts.setdefault(part, {})[name] = array
        try:
            for name, layout in LAYOUTS.items():
                parts[name] = cut(parts[name], layout, self._mine)
            self.policy.weights.load(parts["policy"])
            self.learner.load_state(parts["learner"])
        except (KeyError, ValueError) as error:
            raise UsageError(f"the run is of another version of fastpong ({error}): begin a new one") from None
        self.rollout.load_state(parts["rollout"])
        self.stats.load_state(parts["stats"])
        self.envs.restore(parts["envs"])
        self.steps_taken = int(arrays["step"])
