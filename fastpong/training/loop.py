"""The training loop, top to bottom: step, learn, log, save, stop."""

import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fastpong import files
from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.envs.division import acting_workers
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.vector_env import VectorEnv
from fastpong.envs.verify import usable
from fastpong.errors import DivergedError, EnvError, LostError, UsageError, tell
from fastpong.limits import Limits
from fastpong.parallel.comm import Communicator, Serial, check_same_weights, env_range
from fastpong.parallel.ray import Cluster
from fastpong.parallel.replaced import Losses
from fastpong.runs.checkpoint import CheckpointError
from fastpong.runs.facts import Facts
from fastpong.runs.folder import Newest, RunFolder
from fastpong.show.progress import Progress
from fastpong.signals import Interrupts
from fastpong.training.actor import Actor, Sampler
from fastpong.training.remote import RaySampler
from fastpong.training.trainer import Trainer
from fastpong.training.warm_up import compiled

Reason = Literal["target", "steps", "minutes", "callback", "interrupted", "losses"]

FIRST_LINE = 5_000
"""Steps of the first line of metrics, so that there is something to see soon."""


@dataclass(frozen=True)
class Result:
    """How a run, in the folder `path`, ended: why it stopped, and the last line of its metrics.

    `changed` is false if it was resumed where it ends, and did nothing. `evaluation` is how its best weights played, if
    they did: see `fastpong.training.evaluate.choose_best`.
    """

    config: Config
    path: Path
    reason: Reason
    metrics: dict[str, Any]
    changed: bool = True
    evaluation: dict[str, Any] | None = None


def train(
    config: Config, run: RunFolder, progress: Progress, *, comm: Communicator | None = None, workers: int | None = None,
    cluster: Cluster | None = None, resume: bool = False, limits: Limits | None = None, engine: str = DEFAULT_ENGINE,
) -> Result:  # fmt: skip
    """Train until the target, a limit or an interruption; the run folder then holds a checkpoint of the end.

    Every rank calls this with the same arguments. Rank 0 shows progress, alone reads and writes the run folder, which
    exists, and returns the result of all. `workers` are the env subprocesses of each rank, see `acting_workers`:
    they and the `engine` change nothing but the speed. With a `cluster` its `fastpong.training.remote.RayActor` step
    the envs. With `resume` the run goes on from its newest checkpoint. Raises `UsageError`, `EnvError`, `LostError`,
    `CheckpointError`, `DivergedError` or `RanksError`; the last checkpoint is then intact.
    """
    comm, limits = comm or Serial(), limits or Limits()
    with (
        Interrupts() as interrupts,
        closing(compiled(config, comm, engine, progress.busy)) as compiling,
        _sampler(config, comm, workers, cluster, engine, progress) as (sampler, division),
        closing(Trainer(config, sampler, comm, compiling)) as trainer,
    ):
        log = _Log(config, run, progress, limits, trainer)
        if resume:
            log.restore()
        else:
            trainer.start()
        weights = trainer.policy.weights.flat
        weights[:] = comm.broadcast(weights)
        check_same_weights(comm, weights)
        most = limits.steps or math.inf
        ended = reason = _why_stop(trainer.reached_target(), trainer.stats.steps >= most) if resume else None
        if not ended:
            progress.busy(f"{config.num_envs} envs, {division}")
        log.begin()
        while not reason:
            trainer.step(trainer.steps_until(min(most, log.line_due_at())))
            learned = trainer.learn_if_due()
            if learned:
                progress.learned(trainer.stats.steps, trainer.learner.statistics)
                log.tell_if_anew()
                log.keep_history()
            full = trainer.stats.steps >= most
            log_due = (learned and trainer.learner.log_each_batch) or trainer.stats.steps >= log.line_due_at()
            if full or log_due:
                trainer.synchronise()
            elif not trainer.synchronised:
                continue
            progress.played(trainer.stats)
            trainer.stats.forget_new()
            flags = comm.allgather((limits.time_is_up(), progress.stop, interrupts.seen, sampler.losses.reason))
            reason = _why_stop(trainer.reached_target(), full, *flags)
            if reason or log_due:
                log.write(reason, reason is not None or log.is_due(config.checkpoint_interval))
        if reason == "losses":
            raise LostError(next(loss for *_, loss in flags if loss))
    return Result(config, run.path, reason, log.line, changed=not ended)


class _Log:
    """What a run writes and shows on its way: lines of metrics, checkpoints, and the best weights so far.

    `line` is the last line of metrics.
    """

    def __init__(self, config: Config, run: RunFolder, progress: Progress, limits: Limits, trainer: Trainer):
        self._config, self._run, self._progress, self._limits = config, run, progress, limits
        self._trainer, self._is_root = trainer, trainer.comm.rank == 0
        self._earlier = 0.0  # seconds of the sessions before this one
        self._best_score: float | None = None
        self._best_steps: int | None = None  # of the weights in best.npz
        self._reinits: Any = 0  # that were told
        self.line: dict[str, Any] = {}

    def restore(self) -> None:
        """Continue from the newest good checkpoint; a run that ended before its first one begins again."""
        newest: Newest | None = None
        if self._is_root and self._run.checkpoints():
            newest = self._run.newest(self._check)
            self._run.go_on_from(newest)
        newest = self._trainer.comm.broadcast(newest)
        if newest is None:
            if self._is_root:
                self._run.cut_metrics(-1)
            self._progress.note("no checkpoint was saved: the run begins again, with the same settings and seed")
            self._trainer.start()
            return
        facts = newest.facts
        self._trainer.load_state(newest.arrays)
        stats = self._trainer.stats
        self._reinits = newest.arrays.get("learner.schedule_began", (0, 0))[1]
        if self._is_root:
            last, damage = self._run.cut_metrics(stats.steps, facts.line)
            self.line = last or {"steps": stats.steps, "score": stats.score}
            for complaint in damage:
                self._progress.note(complaint)
        for error in newest.complaints.values():
            self._progress.note(f"{error}: going on from an older one")
        if facts.newer:
            told = ", ".join(f"{name} = {getattr(facts.config, name)}" for name in facts.newer)
            self._progress.note(f"the run is older than some settings, which have their defaults: {told}")
        ends = [f"a score of {self._config.target_score:g}"]  # limits of the session before do not count any more
        ends += [f"{self._limits.steps:,} steps"] if self._limits.steps else []
        ends += [f"{self._limits.minutes:g} minutes"] if self._limits.minutes else []
        self._progress.note(f"going on from {stats.steps:,} steps until {' or '.join(ends)}")
        self._earlier, self._best_score, self._best_steps = facts.wall_s, facts.best_score, facts.best_steps

    def _check(self, arrays: Arrays, facts: Facts) -> None:
        """Make sure that a checkpoint is of this run, and of this engine: another one's states mean nothing to it."""
        if facts.engine != self._trainer.sampler.engine:
            raise UsageError(f"{self._run.path} was saved on the {facts.engine} engine: add --engine {facts.engine}")
        self._run.check_settings(self._config, facts.config)
        self._trainer.check(arrays)

    def begin(self) -> None:
        """Count speed from here on; the history of a new run begins."""
        self._steps, self._time = self._trainer.stats.steps, time.perf_counter()
        if not self._steps:
            self.keep_history()

    def keep_history(self) -> None:
        """Offer the weights to the history, as soon as they have changed: before a checkpoint, which comes after it."""
        if self._is_root:
            facts = Facts(self._config, self._trainer.stats.steps, engine=self._trainer.sampler.engine)
            self._run.history.add(self._trainer.policy.weights.arrays, facts)

    def tell_if_anew(self) -> None:
        """Say that the weights were drawn anew; the history begins again with them."""
        trainer, reinits = self._trainer, self._trainer.learner.statistics.get("reinits", 0)
        if reinits != self._reinits:
            self._progress.note(f"too few points are won after {trainer.stats.steps:,} steps: other weights begin")
            if self._is_root:
                self._run.history.drop_after(-1)
        self._reinits = reinits

    def due_at(self, interval: int) -> int:
        """Return the first multiple of this number of steps after the last line."""
        return (self._steps // interval + 1) * interval

    def line_due_at(self) -> int:
        """Return the steps of the next line; those that batches bring come besides."""
        due = self.due_at(self._config.log_interval)
        return due if self._steps or self._trainer.learner.log_each_batch else min(due, FIRST_LINE)

    def is_due(self, interval: int) -> bool:
        """Whether a multiple of this number of steps was passed since the last line."""
        return self._trainer.stats.steps >= self.due_at(interval)

    def write(self, reason: Reason | None, save_due: bool) -> None:
        """Write a line, and if due a checkpoint; a full disk does not end a run that goes on, but NaN does."""
        trainer, now = self._trainer, time.perf_counter()
        steps = trainer.stats.steps
        if not np.isfinite(trainer.policy.weights.flat).all():
            raise DivergedError(
                f"weights became NaN or infinite between {self._steps:,} and {steps:,} steps; nothing of it is saved: "
                "start a new run with a lower learning_rate or another seed"
            )
        self.line = {
            "wall_s": round(self._earlier + now - self._limits.began, 3),
            "steps": steps,
            "steps_per_s": round((steps - self._steps) / (now - self._time), 1),
            **trainer.metrics(),
        }
        self._steps, self._time = steps, now
        arrays = trainer.state() if save_due else {}
        if not self._is_root:
            return
        self._progress.metrics(self.line)
        failures = []
        try:
            if save_due:
                self._save(arrays)
        except CheckpointError as error:
            failures.append(error)
        try:
            self._run.log(self.line)
        except CheckpointError as error:
            failures.append(error)
        if save_due:
            self._time = time.perf_counter()  # saving is not playing
        if failures and (reason or not self._run.is_ours()):
            raise failures[0]
        if failures:
            kept = self._run.checkpoints()
            what = f"{kept[0].name} and what is older are intact" if kept else "nothing is saved yet"
            self._progress.note(f"{failures[0]}; {what}; training goes on")

    def _save(self, arrays: Arrays) -> None:
        """Save a checkpoint, then ``best.npz`` if the score is the best so far, and a candidate.

        The first comes first, also before the line of metrics, which is in it: whatever else is not written, if the
        process is killed or the disk is full, is written by the session that goes on from it.
        """
        run, trainer, steps = self._run, self._trainer, self._trainer.stats.steps
        score = trainer.stats.score
        best = self._best_score, self._best_steps
        if score is not None and (self._best_score is None or score > self._best_score):
            best = score, steps
        elif not files.exists(run.best):
            best = self._best_score, steps
        facts = Facts(self._config, steps, self.line["wall_s"], score, *best, trainer.sampler.engine, self.line)
        self._progress.saved(steps, run.save_checkpoint(arrays, facts))
        weights = {f"policy.{name}": array for name, array in trainer.policy.weights.arrays.items()}
        if facts.best_steps == steps:
            run.save_best(weights, facts)  # until the candidates have played for it
        self._best_score, self._best_steps = best
        run.add_candidate(weights, facts)


@contextmanager
def _sampler(
    config: Config, comm: Communicator, workers: int | None, cluster: Cluster | None, engine: str, progress: Progress
) -> Iterator[tuple[Sampler, str]]:
    """Give the envs of this rank to subprocesses here, or to the actors of a cluster, and say how they are divided.

    Rank 0 verifies the engine, so that all have the same one.
    """
    engine = comm.broadcast(usable(engine) if comm.rank == 0 else "")
    if cluster:
        yield RaySampler(config, cluster, Losses(progress.note), engine), f"{cluster.count} Ray actors"
        return
    mine = env_range(config.num_envs, comm.rank, comm.size)
    workers = acting_workers(len(mine), workers, engine, comm.local_size)
    losses = Losses(lambda text: tell(f"rank {comm.rank}: {text}") if comm.rank else progress.note(text))
    with VectorEnv.of(config, workers, mine, losses, engine) as envs:
        if envs.engine != engine:
            raise EnvError(f"rank {comm.rank} cannot use the {engine}: add --engine ale")
        subprocesses = "one subprocess" if envs.workers == 1 else f"{envs.workers} subprocesses"
        ranks = f"{comm.size} ranks, {subprocesses} each" if comm.size > 1 else f"{subprocesses} in all"
        yield Actor(config, envs), ranks


def _why_stop(target: bool, steps: bool, *flags: tuple[bool, bool, bool, str | None]) -> Reason | None:
    """Say why to stop, the same on all ranks.

    `flags` are those of each rank: time is up, the callback says so, interrupted, reason of its losses.
    """
    times, callbacks, interruptions, losses = zip(*flags, strict=True) if flags else [[False]] * 4
    reasons: dict[Reason, object] = {
        "target": target, "steps": steps, "minutes": times[0], "losses": any(losses),  # rank 0 has the clock
        "callback": any(callbacks), "interrupted": any(interruptions),
    }  # fmt: skip
    return next((reason for reason, holds in reasons.items() if holds), None)
