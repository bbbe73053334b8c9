"""``fastpong train``: which run it means, the run itself, and how it ended."""

import contextlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from fastpong import __version__
from fastpong.config import Config, parse_assignments, read_toml
from fastpong.envs.division import check_workers
from fastpong.errors import DivergedError, FastpongError, LostError, RanksError, UsageError, explain
from fastpong.parallel.comm import Communicator, env_range
from fastpong.parallel.mpi import connect
from fastpong.parallel.ray import Cluster, Placing
from fastpong.training.evaluate import choose_best
from fastpong.training.loop import Limits, Result, train, versions
from fastpong.training.progress import KINDS, Progress, make_progress, tell
from fastpong.training.remote import RayActor
from fastpong.training.run_folder import RunFolder, new_run, parse_metrics, resumed_run

T = TypeVar("T")


def run(
    folder: Path | None, flags: Mapping[str, object], assignments: list[str], config_file: Path | None, *,
    workers: int | None, resume: bool, mpi: bool, placing: Placing | None, limits: Limits, show: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Train as the command line says, print the result, and return the exit code.

    `flags` are settings that have an option of their own (None: not given); they go before `assignments`, ``KEY=VALUE``
    texts, and these before `config_file`. `show` is one of `fastpong.training.progress.KINDS`. `placing` asks
    for Ray actors. The rest is as for `fastpong.training.loop.train`.
    """
    if show is not None and show not in KINDS:
        raise UsageError(f"--progress is one of {', '.join(KINDS)}, not '{show}'")
    comm = connect(mpi)

    def prepare() -> tuple[Config, RunFolder]:
        changes = read_toml(config_file)[0] if config_file is not None else {}
        changes |= parse_assignments(assignments)
        changes |= {name: value for name, value in flags.items() if value is not None}
        config, run_folder = resumed_run(folder, changes) if resume else new_run(folder, changes)
        if config.num_envs < comm.size:
            raise UsageError(f"{comm.size} ranks have too little to do with {config.num_envs} envs: use fewer ranks")
        check_workers(len(env_range(config.num_envs, 0, comm.size)), workers, comm.local_size)
        return config, run_folder

    def create() -> None:
        if not resume:
            run_folder.create(config, {"command": " ".join(sys.argv[1:]), **versions()})

    config, run_folder = _on_root(comm, prepare)
    if placing and (comm.size > 1 or workers):
        raise UsageError("with --ray the actors step the envs: leave out " + ("--workers" if workers else "mpiexec"))
    try:
        with Cluster(RayActor, placing, config.num_envs) if placing else contextlib.nullcontext() as cluster:
            _on_root(comm, create)
            result = _train(config, run_folder, comm, workers, cluster, resume, limits, show)
        if comm.rank == 0:
            _report(config, run_folder, result, workers, as_json)
        comm.barrier()
    except BaseException as error:
        if comm.size > 1:  # the others wait for this rank: end them too
            if isinstance(error, UsageError | RanksError | DivergedError | LostError) and comm.rank:
                time.sleep(5.0)  # every rank has the same error: rank 0 tells it
            if "--debug" in sys.argv:
                traceback.print_exc()
            comm.abort(explain(error, f"rank {comm.rank}: "))
        raise
    return 130 if result.reason == "interrupted" else 0


def _train(
    config: Config, folder: RunFolder, comm: Communicator, workers: int | None, cluster: Cluster | None, resume: bool,
    limits: Limits, show: str | None,
) -> Result:  # fmt: skip
    past = parse_metrics(folder.metrics)[0] if resume and folder.metrics.exists() else []
    title = f"fastpong {__version__} · preset {config.preset} · run {folder.path}"
    progress = make_progress(show, title, past, config.preset) if comm.rank == 0 else Progress()
    try:
        return train(
            config, folder, progress, comm=comm, workers=workers, cluster=cluster, resume=resume, limits=limits
        )
    except FastpongError as error:
        goes_on = folder.checkpoints() and not isinstance(error, UsageError | DivergedError)
        hint = f"; go on with: fastpong train --run {folder.path} --resume" if goes_on else ""
        raise type(error)(f"{error}{hint}") from error.__cause__
    finally:
        progress.close()


def _report(config: Config, folder: RunFolder, result: Result, workers: int | None, as_json: bool) -> None:
    """Print how the run ended; then let its candidates play, and print which is the best."""
    summary: dict[str, Any] = {"reason": result.reason, "run": str(folder.path), **result.metrics}
    why = {
        "target": f"the target of {config.target_score:g} is reached",
        "steps": "the limit of steps is reached",
        "minutes": "the time is up",
        "interrupted": "interrupted",
    }[result.reason]
    how = "stopped" if result.changed else "nothing to do"
    score = "no game finished" if summary["score"] is None else f"score {summary['score']:.2f}"
    if not as_json:
        text = f"{how}, {why}: {score} after {summary['steps']:,} steps; all is saved in {folder.path}"
        tell(text, result=True)
    best = None
    with contextlib.suppress(KeyboardInterrupt):  # best.npz is then that of the best score in training
        if result.changed and result.reason != "interrupted":
            best = choose_best(config, folder, workers, tell)
    if as_json:
        tell(json.dumps({**summary, "best": best}), result=True)
    elif best:
        tell(
            f"best.npz, the weights after {best['steps']:,} steps: mean score {best['mean']:.2f} "
            f"(95 % confidence {best['ci95_low']:.2f} … {best['ci95_high']:.2f}) over {best['games']} fresh games",
            result=True,
        )


def _on_root(comm: Communicator, work: Callable[[], T]) -> T:
    """Let rank 0 do something, and give its result, or its error, to all ranks."""
    outcome: T | FastpongError | None = None
    if comm.rank == 0:
        try:
            outcome = work()
        except FastpongError as error:
            outcome = error
    outcome = comm.broadcast(outcome)
    if isinstance(outcome, FastpongError):
        raise outcome
    return cast(T, outcome)
