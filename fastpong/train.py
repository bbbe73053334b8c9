"""The training loop, top to bottom: step, learn, log, save, stop."""

import dataclasses
import platform
import signal
import time
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from types import FrameType
from typing import Any, Literal

import fastpong
from fastpong.checkpoint import CheckpointError, RunFolder, save
from fastpong.config import Config
from fastpong.cores import usable_cores
from fastpong.games import Games, check_workers
from fastpong.ranks import Alone, Ranks, check_equal, share_of
from fastpong.report import Report
from fastpong.selection import CANDIDATES, choose_best
from fastpong.shards import Arrays
from fastpong.trainer import Trainer

Reason = Literal["target", "steps", "minutes", "interrupted"]


@dataclass(frozen=True)
class Result:
    """How a run ended: why it stopped, the last line of its metrics, and how its best weights play (or None)."""

    reason: Reason
    metrics: dict[str, Any]
    best: dict[str, Any] | None


class Interrupts:
    """Turns ctrl-C and SIGTERM into a flag, so that a run ends at a whole step; a second ctrl-C ends it at once."""

    def __enter__(self) -> "Interrupts":
        self.seen = False
        self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True


def train(
    config: Config,
    run: RunFolder,
    report: Report,
    *,
    ranks: Ranks | None = None,
    workers: int | None = None,
    resume: bool = False,
    max_steps: int | None = None,
    max_minutes: float | None = None,
    started: float | None = None,
) -> Result:
    """Train until the target, a limit or an interruption; the run folder then holds a checkpoint of the end.

    Every rank calls this with the same arguments. Rank 0 reports and writes, and returns the result of all.

    Parameters
    ----------
    config : Config
        The settings, as `run` holds them (a resumed run may have another target).
    run : RunFolder
        Existing, with or without checkpoints. Only rank 0 looks into it.
    report : Report
        Where progress is shown, by rank 0.
    ranks : Ranks, optional
        Who trains together.
    workers : int, optional
        Game subprocesses of each rank; by default one per usable core, divided among the ranks of a machine. It
        changes nothing but the speed.
    resume : bool
        Go on from the newest checkpoint.
    max_steps : int, optional
        Stop at this many steps over all games, counted from the beginning of the run.
    max_minutes : float, optional
        Stop after this many minutes of this call.
    started : float, optional
        `time.perf_counter()` when the command began, to be counted in the wall-clock time.

    Raises
    ------
    GamesError, CheckpointError, RanksError
        The last checkpoint is then intact.
    """
    began = time.perf_counter() if started is None else started
    ranks = ranks or Alone()
    first = ranks.rank == 0
    mine = share_of(config.envs, ranks.rank, ranks.size)
    workers = check_workers(len(mine), workers, ranks.neighbours)
    with Interrupts() as interrupts, Games(
        len(mine), workers, config.seed, config.frame_skip, config.sticky, config.actions, first=mine.start
    ) as games, run.lock() if first else nullcontext():  # fmt: skip
        trainer = Trainer(config, games, ranks)
        tally = trainer.tally
        facts: dict[str, Any] = {"wall_s": 0.0, "best_score": None}
        if resume:
            arrays, facts, complaints = ranks.from_first(run.newest() if first else None)
            trainer.load_state(arrays)
            if first:
                run.cut_metrics(tally.steps)
            for complaint in complaints:
                report.note(f"{complaint}: going on from an older one")
            report.note(f"going on from {tally.steps:,} steps")
        else:
            trainer.start()
        trainer.policy.weights[:] = ranks.from_first(trainer.policy.weights)
        check_equal(ranks, trainer.policy.weights)
        report.note("loading the kernels (compiling them takes about ten seconds, once)")
        if not first:
            ranks.wait()  # rank 0 fills the cache of compiled kernels, which is safe, but slow, to fill twice
        trainer.warm_up(meanwhile=ranks.size == 1)
        if trainer.compiling:
            report.note("a subprocess compiles what learns: the first batch is played meanwhile, and then waits for it")
        if first:
            ranks.wait()
        of_ranks = "" if ranks.size == 1 else f" of rank 0 of {ranks.size}, {ranks.neighbours} to these cores"
        report.note(f"playing {config.envs} games, {len(mine)} of them in {games.workers} subprocesses{of_ranks}")

        earlier = facts["wall_s"]  # of the sessions before this one
        best_score: float | None = facts["best_score"]
        logged_steps, logged_at = tally.steps, time.perf_counter()
        reason: Reason | None = None
        while not reason:
            trainer.advance()
            learned = trainer.learn_if_due()

            full = max_steps is not None and tally.steps >= max_steps
            log_due = tally.steps // config.log_steps > logged_steps // config.log_steps
            if config.window_seconds:
                log_due = learned
            if full or log_due:
                trainer.talk()
            elif trainer.talked_at != trainer.step:
                continue
            now = time.perf_counter()
            late = max_minutes is not None and now - began >= 60 * max_minutes
            reason = _why_stop(trainer.reached_target(), full, ranks.share((late, interrupts.seen)))
            if reason or log_due:
                line = {
                    "wall_s": round(earlier + now - began, 3),
                    "steps": tally.steps,
                    "steps_per_s": round((tally.steps - logged_steps) / (now - logged_at), 1),
                    "games": tally.games,
                    "score": tally.score,
                    "point_rate": tally.point_rate(),
                    "running_mean": tally.running,
                    "mean_steps": tally.mean_steps,
                    "updates": trainer.learner.updates,
                    **trainer.learner.statistics,
                    "ranks": ranks.size,
                    "ranks_s": round(ranks.seconds, 3),
                }
                save_due = reason or tally.steps // config.checkpoint_steps > logged_steps // config.checkpoint_steps
                logged_steps, logged_at = tally.steps, now
                arrays = trainer.state() if save_due else {}
                if not first:
                    continue
                report.metrics(line)
                try:
                    run.log(line)
                    if save_due:
                        best_score = save_all(run, trainer, arrays, line["wall_s"], best_score)
                        logged_at = time.perf_counter()  # saving is not playing
                except CheckpointError as error:
                    if reason:
                        raise
                    report.note(f"{error}; training goes on")
        run.close()
    best = choose_best(config, run, None, report.note) if first and reason != "interrupted" else None
    ranks.wait()
    return Result(reason, line, best)


def _why_stop(target: bool, steps: bool, flags: list[tuple[bool, bool]]) -> Reason | None:
    """Say why to stop, the same on all ranks; `flags` holds (time is up, interrupted) of each."""
    if target:
        return "target"
    if steps:
        return "steps"
    if flags[0][0]:  # rank 0 has the clock
        return "minutes"
    return "interrupted" if any(interrupted for _, interrupted in flags) else None


def save_all(run: RunFolder, trainer: Trainer, state: Arrays, wall_s: float, best_score: float | None) -> float | None:
    """Save a checkpoint, and ``best.npz`` if the score is the best so far; returns the best score.

    Raises `CheckpointError`.
    """
    config, score = trainer.config, trainer.tally.score
    about: dict[str, Any] = {
        "config": dataclasses.asdict(config),
        "steps": trainer.tally.steps,
        "wall_s": wall_s,
        "score": score,
    }
    weights = {f"policy.{name}": array for name, array in trainer.policy.state().items()}
    if not run.best.exists() or (score is not None and (best_score is None or score > best_score)):
        save(run.best, weights, about)  # until the candidates have played for it
        best_score = score
    run.add_candidate(trainer.tally.steps, CANDIDATES, weights, about)
    about["best_score"] = best_score
    run.save_checkpoint(trainer.tally.steps, config.keep_checkpoints, state, about)
    return best_score


def versions() -> dict[str, str | int]:
    """Tell what a run ran with, for its ``config.toml``."""
    packages = {name.replace("-", "_"): version(name) for name in ("numpy", "numba", "gymnasium", "ale-py")}
    return {
        "fastpong": fastpong.__version__,
        "python": platform.python_version(),
        **packages,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": usable_cores(),
    }
