"""One session of a run, from its settings to its result: alone, with MPI ranks, or with Ray actors."""

import contextlib
import shlex
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, cast

from fastpong import files
from fastpong.config import Config, at_least, new_config
from fastpong.envs.division import check_workers
from fastpong.envs.engine import DEFAULT_ENGINE, check_engine
from fastpong.errors import DivergedError, FastpongError, LostError, RanksError, UsageError, explain, tell
from fastpong.limits import Limits
from fastpong.parallel.comm import Communicator, env_range
from fastpong.parallel.machine import versions
from fastpong.parallel.mpi import connect
from fastpong.parallel.ray import Cluster, Placing
from fastpong.runs.checkpoint import NoCheckpointError
from fastpong.runs.facts import parse_metrics
from fastpong.runs.find import create_run, resumed_run
from fastpong.runs.folder import RunFolder
from fastpong.show.display import Display
from fastpong.training import loop
from fastpong.training.evaluate import choose_best
from fastpong.training.loop import Result
from fastpong.training.remote import RayActor

T = TypeVar("T")


@dataclass
class Request:
    """What a session is asked for: `changes` to the settings of a new run, or of the one that goes on.

    `folder` is that of the run, None: a new one in ``runs/``, or the one that was begun last. `placing` asks for Ray
    actors, `mpi` looks for ranks. The words of `command` are written into ``config.toml``; with ``--debug`` among them
    a rank that ends the others shows its traceback. Raises `UsageError`.
    """

    changes: Mapping[str, object]
    folder: Path | None = None
    resume: bool = False
    workers: int | None = None
    engine: str = DEFAULT_ENGINE
    mpi: bool = True
    placing: Placing | None = None
    limits: Limits = field(default_factory=Limits)
    command: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_engine(self.engine)
        if self.workers is not None:
            at_least("workers", self.workers, 1, whole=True)


def train(request: Request, display: Display) -> Result:
    """Train as requested, and let the candidates of a run that was not interrupted play for its ``best.npz``.

    Only rank 0 begins the display, and knows how the best weights played. Raises what `fastpong.training.loop.train`
    does, and what a callback of the display has raised; several ranks end together.
    """
    comm = connect(request.mpi)
    config, resumed = _on_root(comm, lambda: _prepare(request, comm))
    placing = request.placing
    if placing and (comm.size > 1 or request.workers):
        instead = "--workers" if request.workers else "mpiexec"
        raise UsageError(f"with --ray the actors step the envs: leave out {instead}")
    with _ends_together(comm, request), contextlib.ExitStack() as owner:  # until best.npz is written
        with Cluster(RayActor, placing, config.num_envs) if placing else contextlib.nullcontext() as cluster:
            folder = _on_root(comm, lambda: resumed or create_run(request.folder, config, _about(request)))
            _on_root(comm, lambda: owner.enter_context(folder.lock(tell)))
            if comm.rank == 0:
                past = parse_metrics(folder.metrics)[0] if request.resume and files.exists(folder.metrics) else []
                display.begin(config, folder.path, past, request.limits)
            try:
                result = loop.train(
                    config, folder, display, comm=comm, workers=request.workers, cluster=cluster,
                    resume=request.resume, limits=request.limits, engine=request.engine,
                )  # fmt: skip
            except FastpongError as error:
                raise _with_hint(error, folder, request.engine) from error.__cause__
            finally:
                display.close()
        if display.failure:
            raise display.failure
        if comm.rank == 0:
            display.after(_how_it_ended(result), result=True)
            with contextlib.suppress(KeyboardInterrupt):  # best.npz is then that of the best score in training
                if result.reason != "interrupted":
                    best = choose_best(config, folder, request.workers, display.after, request.engine)
                    result = replace(result, evaluation=best)
        comm.barrier()
    return result


@contextlib.contextmanager
def _ends_together(comm: Communicator, request: Request) -> Iterator[None]:
    """End all ranks if this one fails: they wait for it."""
    try:
        yield
    except BaseException as error:
        if comm.size > 1:
            if isinstance(error, UsageError | RanksError | DivergedError | LostError) and comm.rank:
                time.sleep(5.0)  # every rank has the same error: rank 0 tells it
            if "--debug" in request.command:
                traceback.print_exc()
            comm.abort(explain(error, f"rank {comm.rank}: "))
        raise


def _prepare(request: Request, comm: Communicator) -> tuple[Config, RunFolder | None]:
    """Return the settings and, if it is there already, the folder."""
    folder = None
    if request.resume:
        config, folder = resumed_run(request.folder, request.changes, tell)
    else:
        config = new_config(request.changes)
    if config.num_envs < comm.size:
        raise UsageError(f"{comm.size} ranks have too little to do with {config.num_envs} envs: use fewer ranks")
    check_workers(len(env_range(config.num_envs, 0, comm.size)), request.workers, comm.local_size)
    return config, folder


def _about(request: Request) -> dict[str, str | int]:
    return {"command": " ".join(request.command), "engine": request.engine, **versions()}


def _how_it_ended(result: Result) -> str:
    why = {
        "target": f"the target of {result.config.target_score:g} is reached",
        "steps": "the limit of steps is reached",
        "minutes": "the time is up",
        "callback": "the callback says so",
        "interrupted": "interrupted",
    }[result.reason]
    how = "stopped" if result.changed else "nothing to do"
    score, steps = result.metrics["score"], result.metrics["steps"]
    told = "no score yet" if score is None else f"score {score:.2f}"
    return f"{how}, {why}: {told} after {steps:,} steps; all is saved in {result.path}"


def to_go_on(path: Path, engine: str) -> str:
    """Return the command with which a run goes on, as a shell reads it."""
    chosen = "" if engine == DEFAULT_ENGINE else f" --engine {engine}"
    return f"fastpong train --run {shlex.quote(str(path))} --resume{chosen}"


def what_next(result: Result, engine: str) -> list[str]:
    """Return a line each: how a run goes on, unless it has reached its target, and how to see it play."""
    go_on = [] if result.reason == "target" else [f"go on:        {to_go_on(result.path, engine)}"]
    how = "--out game.html" if result.config.algorithm == "ppo" else "--terminal"
    return [*go_on, f"see it play:  fastpong play {shlex.quote(str(result.path))} {how}"]


def _with_hint(error: FastpongError, folder: RunFolder, engine: str) -> FastpongError:
    """Return the error; if the run can go on, it says how."""
    if isinstance(error, UsageError | DivergedError | NoCheckpointError) or not folder.checkpoints():
        return error
    return type(error)(f"{error}; go on with: {to_go_on(folder.path, engine)}")


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
