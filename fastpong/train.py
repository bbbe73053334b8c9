"""The training loop, top to bottom: step, learn, log, save, stop."""

import dataclasses
import platform
import signal
import time
from dataclasses import dataclass
from importlib.metadata import version
from types import FrameType
from typing import Any, Literal

import fastpong
from fastpong.checkpoint import CheckpointError, RunFolder, save
from fastpong.config import Config
from fastpong.games import Games, usable_cores
from fastpong.report import Report
from fastpong.selection import CANDIDATES, choose_best
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
    workers: int | None = None,
    resume: bool = False,
    max_steps: int | None = None,
    max_minutes: float | None = None,
    started: float | None = None,
) -> Result:
    """Train until the target, a limit or an interruption; the run folder then holds a checkpoint of the end.

    Parameters
    ----------
    config : Config
        The settings, as `run` holds them (a resumed run may have another target).
    run : RunFolder
        Existing, with or without checkpoints.
    report : Report
        Where progress is shown.
    workers : int, optional
        Game subprocesses; one per usable core by default. It changes nothing but the speed.
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
    GamesError, CheckpointError
        The last checkpoint is then intact.
    """
    began = time.perf_counter() if started is None else started
    with Interrupts() as interrupts, Games(
        config.envs, workers, config.seed, config.frame_skip, config.sticky, config.actions
    ) as games, run.lock():  # fmt: skip
        trainer = Trainer(config, games)
        tally = trainer.tally
        facts: dict[str, Any] = {"wall_s": 0.0, "best_score": None}
        if resume:
            arrays, facts, complaints = run.newest()
            trainer.load_state(arrays)
            run.cut_metrics(tally.steps)
            for complaint in complaints:
                report.note(f"{complaint}: going on from an older one")
            report.note(f"going on from {tally.steps:,} steps")
        else:
            trainer.start()
        report.note("loading the kernels (compiling them takes about ten seconds, once)")
        trainer.warm_up()
        report.note(f"playing {config.envs} games in {games.workers} subprocesses")

        earlier = facts["wall_s"]  # of the sessions before this one
        best_score: float | None = facts["best_score"]
        logged_steps, logged_at = tally.steps, time.perf_counter()
        while True:
            trainer.advance()
            trainer.learn_if_due()

            now = time.perf_counter()
            reason: Reason | None = None
            if tally.reached(config.target):
                reason = "target"
            elif max_steps is not None and tally.steps >= max_steps:
                reason = "steps"
            elif max_minutes is not None and now - began >= 60 * max_minutes:
                reason = "minutes"
            elif interrupts.seen:
                reason = "interrupted"

            if reason or tally.steps // config.log_steps > logged_steps // config.log_steps:
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
                }
                save_due = reason or tally.steps // config.checkpoint_steps > logged_steps // config.checkpoint_steps
                logged_steps, logged_at = tally.steps, now
                report.metrics(line)
                try:
                    run.log(line)
                    if save_due:
                        best_score = save_all(run, trainer, line["wall_s"], best_score)
                        logged_at = time.perf_counter()  # saving is not playing
                except CheckpointError as error:
                    if reason:
                        raise
                    report.note(f"{error}; training goes on")
            if reason:
                run.close()
                break
        workers = games.workers
    if reason == "interrupted":
        return Result(reason, line, None)
    return Result(reason, line, choose_best(config, run, workers, report.note))


def save_all(run: RunFolder, trainer: Trainer, wall_s: float, best_score: float | None) -> float | None:
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
    run.save_checkpoint(trainer.tally.steps, config.keep_checkpoints, trainer.state(), about)
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
