"""Training without files: stepping all envs, and learning from them."""

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.envs.base import layout as env_layout
from fastpong.learners.base import make_learner
from fastpong.parallel.comm import Communicator, Serial, check_same_weights
from fastpong.parallel.sharding import Layout, cut, join
from fastpong.rollout.buffer import LAYOUT as ROLLOUT_LAYOUT
from fastpong.rollout.buffer import join_states
from fastpong.rollout.episode_stats import LAYOUT as STATS_LAYOUT
from fastpong.runs.checkpoint import DamagedError
from fastpong.runs.schema import check_state
from fastpong.training.actor import Sampler
from fastpong.training.warm_up import Compiling

CHECK_EVERY = 8
"""Batches after which ranks make sure that they still have the same weights."""


class Trainer:
    """Steps, and learns.

    The order of things is the same for any number of ranks, workers, groups and Ray actors: all envs take step t, then
    the weights may change, then all envs take step t + 1. An update learns from outcomes up to step t − 1 while the
    emulators are busy with step t.

    `sampler` has the envs of the run or, with several ranks, of this one; they are not started yet: call `start`. The
    first update waits for kernels that are still `compiling`.
    """

    def __init__(
        self, config: Config, sampler: Sampler, comm: Communicator | None = None, compiling: Compiling | None = None
    ):
        self.config, self.sampler, self.comm = config, sampler, comm or Serial()
        self.policy, self.rollout, self.stats = sampler.policy, sampler.rollout, sampler.stats
        self.learner = make_learner(config, self.policy, self.comm, sampler.mine)
        self._layouts: dict[str, Layout] = {
            "rollout": ROLLOUT_LAYOUT, "stats": STATS_LAYOUT, "envs": env_layout(config)
        }  # fmt: skip
        self._batches = self._synchronised_at = 0
        self._compiling = compiling

    def start(self) -> None:
        """Reset all envs."""
        self.sampler.start()

    def step(self, count: int = 1) -> None:
        """Take steps of every env, at most `steps_until` something; now and then ranks also `synchronise`."""
        self.sampler.play(count, self._stop if count > 1 and self.learner.ends_by_games else None)
        if self.sampler.steps_taken % self.learner.synchronise_every == 0:
            self.synchronise()

    def steps_until(self, steps: float) -> int:
        """Return how many steps each env takes until there are `steps` in all, an exchange or a batch is due."""
        left = (steps - self.stats.steps) / self.config.num_envs
        exchange = self.learner.synchronise_every - self.sampler.steps_taken % self.learner.synchronise_every
        exchange = max(exchange, self.sampler.ahead() if self.learner.synchronise_every == 1 else 1)
        return max(1, math.ceil(min(left, exchange, self.learner.steps_until_due(self.rollout))))

    def _stop(self) -> bool:
        """Whether a step has ended a batch, or the run."""
        self.synchronise()
        return self.learner.due(self.rollout, self.stats) or self.reached_target()

    def synchronise(self) -> None:
        """Exchange the statistics of finished games with the other ranks, once a step."""
        if not self.synchronised:
            self.stats.synchronise(self.comm)
            self._synchronised_at = self.sampler.steps_taken

    @property
    def synchronised(self) -> bool:
        """Whether all ranks have the same statistics, of all steps but the last."""
        return self._synchronised_at == self.sampler.steps_taken

    def reached_target(self) -> bool:
        """Whether the agent is as good as the target score asks for; the same on all ranks."""
        return self.learner.reached(self.config.target_score, self.stats)

    def learn_if_due(self) -> bool:
        """Update the weights if the learner has enough to learn from."""
        if not self.learner.due(self.rollout, self.stats):
            return False
        if self._compiling:
            self._compiling.wait()
        t0 = time.perf_counter()
        with self.sampler.learning():
            self.learner.learn(self.rollout, self.stats)
        self._batches += 1
        if self._batches % CHECK_EVERY == 0:
            check_same_weights(self.comm, self.policy.weights.flat)
        self.sampler.seconds["update"] += time.perf_counter() - t0
        return True

    def close(self) -> None:
        """Stop the learner's threads."""
        self.learner.close()

    def metrics(self) -> dict[str, Any]:
        """Return a line of metrics without time and speed; see `fastpong.runs.metrics`."""
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
            "replaced": self.sampler.losses.count,
        }

    def state(self) -> Arrays:
        """Everything that a run is, as arrays by name, of all ranks; waits for the steps in flight.

        All ranks have to call it; only rank 0 gets the arrays, the others none.
        """
        self.synchronise()
        shares = self.comm.gather(self.sampler.snapshot())
        if shares is None:
            return {}
        parts = {
            "rollout": join_states([share["rollout"] for share in shares]),
            **{name: join([share[name] for share in shares], self._layouts[name]) for name in ("stats", "envs")},
        }
        parts |= {"policy": self.policy.weights.arrays, "learner": self.learner.state()}
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return arrays | {"step": np.array(self.sampler.steps_taken)}

    def check(self, arrays: Mapping[str, Any]) -> None:
        """Raise `DamagedError` if no run with these settings could have saved these arrays as its `state`."""
        own = {"policy": self.policy.weights.arrays, "learner": self.learner.state()}
        fresh = {f"{part}.{name}": array for part, state in own.items() for name, array in state.items()}
        try:
            check_state(arrays, self.config, self.sampler.engine, self.rollout.encoding, self.rollout.history, fresh)
        except ValueError as error:
            raise DamagedError(f"no run with these settings saved this checkpoint: {error}") from None

    def load_state(self, arrays: Mapping[str, Any]) -> None:
        """Continue from a `state` in place of `start`, bit for bit, with any number of ranks and workers.

        Changes nothing and raises what `check` does, if it does.
        """
        self.check(arrays)
        parts: dict[str, Arrays] = {}
        for key, array in arrays.items():
            part, _, name = key.partition(".")
            parts.setdefault(part, {})[name] = array
        for name, layout in self._layouts.items():
            parts[name] = cut(parts[name], layout, self.sampler.mine)
        self.policy.weights.load(parts["policy"])
        self.learner.load_state(parts["learner"])
        self.sampler.restore(parts, int(arrays["step"]))
