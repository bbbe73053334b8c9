"""Experience from a Ray cluster: actors that each own some of the envs, and the sampler that puts their work together.

Images are sparse, so a batch of steps is smaller than its gradients: experience travels, gradients do not. Noise is
keyed by (seed, env, step), so who steps an env changes no bit.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fastpong.arrays import F32, Arrays
from fastpong.config import Config
from fastpong.envs.base import LocalEnvs
from fastpong.envs.base import layout as env_layout
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import EnvError
from fastpong.parallel.comm import env_range
from fastpong.parallel.ray import Cluster, versions
from fastpong.parallel.replaced import Losses
from fastpong.parallel.sharding import cut, join
from fastpong.policy import make_policy
from fastpong.rollout.buffer import LAYOUT as ROLLOUT_LAYOUT
from fastpong.rollout.buffer import TAIL
from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.training.actor import Actor

_LAST = ("last_pixels", "last_counts")  # of a rollout's state: only the actors have them


class RayActor:
    """Body of a Ray actor: some envs of a run, in a process of its own."""

    _before: dict[str, Arrays] | None = None  # the state before tentative steps, after `_steps_before` of each env
    _steps_before = 0

    def versions(self) -> dict[str, str]:
        """See `fastpong.parallel.ray.versions`."""
        return versions()

    def begin(
        self, config: Config, envs: range, engine: str, state: dict[str, Arrays] | None, steps_taken: int
    ) -> None:
        """Begin a run with these envs, or go on with one from a `snapshot` after so many steps."""
        local = LocalEnvs.of(config, envs, engine)
        if local.engine != engine:
            raise EnvError(f"this machine of the cluster cannot use the {engine}: add --engine ale")
        self._actor, self._before = Actor(config, local), None
        if state:
            self._restore(state, steps_taken)
        else:
            self._actor.start()

    def play(self, policy: tuple[F32, int], count: int, tentative: bool, again: bool = False) -> tuple[Arrays, float]:
        """Take steps as `Sampler.play` does; return their `Rollout.tail`, and the seconds it took.

        `policy` has the weights, and after how many steps of all envs they were drawn. With `again` the steps take the
        place of the last ones, which were `tentative`.
        """
        began, actor = time.perf_counter(), self._actor
        if again and self._before:
            self._restore(self._before, self._steps_before)
        self._before, self._steps_before = self.snapshot() if tentative else None, actor.steps_taken
        actor.policy.weights.flat[:], actor.policy.began = policy
        actor.play(count)
        actor.stats.take_finished()
        part = actor.rollout.tail(count)
        actor.rollout.release(actor.rollout.rows - 1)
        return part, time.perf_counter() - began

    def _restore(self, state: dict[str, Arrays], steps_taken: int) -> None:
        self._actor.rollout.load_state(state["rollout"])
        self._actor.envs.restore(state["envs"])
        self._actor.steps_taken = steps_taken

    def snapshot(self) -> dict[str, Arrays]:
        """State of the rollout and the envs, after waiting for the step in flight."""
        return {"rollout": self._actor.rollout.state(), "envs": self._actor.envs.snapshot()}


class RaySampler:
    """Experience of all envs from the actors of a cluster. See `Sampler`.

    An actor that is lost is replaced: the new one goes on from the state at the beginning of the batch, and repeats
    what was asked for since; `losses` is told. `seconds` has the time in which actors played ("play"), in which their
    work was on its way ("travel"), and "update".
    """

    def __init__(self, config: Config, cluster: Cluster, losses: Losses, engine: str = DEFAULT_ENGINE):
        self.config, self._cluster, self.losses, self.engine = config, cluster, losses, engine
        self.policy = make_policy(config)
        self.rollout = self.policy.make_rollout(config.num_envs)
        self.stats = EpisodeStats(config.num_envs, config.running_reward_decay)
        self.mine = range(config.num_envs)
        self.steps_taken = 0
        self.seconds = dict.fromkeys(("play", "travel", "update"), 0.0)
        self._parts = [env_range(config.num_envs, i, cluster.count) for i in range(cluster.count)]
        self._states: list[dict[str, Arrays] | None] = [None] * cluster.count  # of the actors, when the batch began
        self._states_at = 0  # steps of each env then
        self._since = 0  # steps of each env since then
        self._weights: Any = None  # where the actors find those of the policy, and since when it has them

    def start(self) -> None:
        """See `Sampler`."""
        for index in range(self._cluster.count):
            self._begin(index)

    def ahead(self) -> int:
        """See `Sampler`. To ask takes time, and steps beyond the end of a batch are in vain: the root balances both.

        To ask for one step at a time is several times slower.
        """
        return math.isqrt(1 + self.steps_taken - self._states_at)

    def play(self, count: int, stop: Callable[[], bool] | None = None) -> None:
        """See `Sampler`. The actors take all steps; if `stop` ends them sooner, they go back and take those alone."""
        if self._weights is None:
            self._weights = self._cluster.put((self.policy.weights.flat, self.policy.began))
        tentative = stop is not None
        parts = self._collect(lambda actor: actor.play.remote(self._weights, count, tentative))
        first = self.rollout.rows
        self.rollout.extend(join(parts, TAIL))
        taken = self._count(first, stop)
        if taken < count:
            self.rollout.rows = first + taken
            self._collect(lambda actor: actor.play.remote(self._weights, taken, False, again=True))
        self._since += taken

    def _count(self, first: int, stop: Callable[[], bool] | None) -> int:
        """Count the outcomes of the rows from `first` on, until `stop`; return how many rows these are."""
        arrays = self.rollout.arrays
        for row in range(first, self.rollout.rows):
            self.steps_taken += 1
            if row:
                self.stats.add(arrays.rewards[row - 1], arrays.ended[row - 1])
            if stop and stop():
                return row + 1 - first
        return self.rollout.rows - first

    def _collect(self, call: Callable[[Any], Any]) -> list[Arrays]:
        """Let all actors play, and return what they did."""
        began = time.perf_counter()
        answers = self._ask(call)
        longest = max(seconds for _, seconds in answers)
        self.seconds["play"] += longest
        self.seconds["travel"] += time.perf_counter() - began - longest
        return [part for part, _ in answers]

    @contextlib.contextmanager
    def learning(self) -> Iterator[None]:
        """See `Sampler`: meanwhile the actors take the step in flight, and tell their state."""
        actors = self._cluster.members
        early = [actor.snapshot.remote() for actor in actors]
        yield
        self._keep(self._ask(lambda actor: actor.snapshot.remote(), early))
        self._weights = None

    def snapshot(self) -> dict[str, Arrays]:
        """See `Sampler`."""
        states = self._ask(lambda actor: actor.snapshot.remote())
        self._keep(states)
        last = join([state["rollout"] for state in states], {name: ROLLOUT_LAYOUT[name] for name in _LAST})
        envs = join([state["envs"] for state in states], env_layout(self.config))
        return {"rollout": {**self.rollout.state(), **last}, "stats": self.stats.state(), "envs": envs}

    def restore(self, parts: dict[str, Arrays], steps_taken: int) -> None:
        """See `Sampler`."""
        self.rollout.load_state(parts["rollout"])
        self.stats.load_state(parts["stats"])
        self.steps_taken = self._states_at = steps_taken
        layouts = {"rollout": ROLLOUT_LAYOUT, "envs": env_layout(self.config)}
        self._states = [
            {name: cut(parts[name], layout, envs) for name, layout in layouts.items()} for envs in self._parts
        ]
        self.start()

    def _keep(self, states: list[dict[str, Arrays]]) -> None:
        """From now on a lost actor goes on from its state of now."""
        self._states, self._states_at, self._since = [*states], self.steps_taken, 0

    def _begin(self, index: int) -> None:
        actor = self._cluster.members[index]
        actor.begin.remote(self.config, self._parts[index], self.engine, self._states[index], self._states_at)
        if self._since:
            actor.play.remote(self._weights, self._since, False)

    def _ask(self, call: Callable[[Any], Any], early: Sequence[Any] = ()) -> list[Any]:
        """Return the answers of all actors to a call, which some may have got `early`."""
        references = [*early] or [call(actor) for actor in self._cluster.members]
        answers = []
        for index, reference in enumerate(references):
            while True:
                try:
                    answers.append(self._cluster.result(reference))
                    break
                except LookupError:
                    self._replace(index)
                    reference = call(self._cluster.members[index])
        return answers

    def _replace(self, index: int) -> None:
        self.losses.add(f"Ray actor {index}", "was lost")
        self._cluster.replace(index)
        self._begin(index)
