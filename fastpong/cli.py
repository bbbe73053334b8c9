"""The commands and their options; there is no arithmetic here. `fastpong.main` runs them."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

STARTED = time.perf_counter()  # before the slow imports, which belong to the time a user waits

import typer

from fastpong import __version__, config
from fastpong import options as opt
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import FastpongError, UsageError, tell
from fastpong.limits import Limits
from fastpong.parallel.machine import launched

F = TypeVar("F", bound=Callable[..., None])

app = typer.Typer(
    help="Learn Atari Pong from pixels with PPO, on one ordinary computer.",
    epilog=opt.epilog("fastpong train --minutes 10", "fastpong play --terminal"),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _command(name: str, *examples: str, more: Sequence[str] = ()) -> Callable[[F], F]:
    """Make a function a command, whose help ends with more lines, and these examples."""
    return app.command(name, cls=opt.Command, epilog=opt.epilog(*examples, more=more))


def _show_version(value: bool) -> None:
    if value:
        tell(f"fastpong {__version__}", result=True)
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    if launched()[1] > 1 and context.invoked_subcommand not in ("train", "doctor"):
        raise UsageError(f"{context.invoked_subcommand} runs in one process: start it without mpiexec")


@_command(
    "train", "fastpong train --minutes 10", "fastpong train --run runs/fast-1 --resume",
    more=(
        "Settings for --set (docs/settings.md, fastpong settings), and for variables of the environment, as "
        "FASTPONG_GAMMA=0.9, which stand between options and files:",
        *opt.SETTINGS,
    ),
)  # fmt: skip
def train(
    preset: opt.Preset = None,
    envs: opt.Envs = None,
    seed: opt.Seed = None,
    seeds: opt.Seeds = None,
    sticky: opt.TrainSticky = None,
    batch_games: opt.BatchGames = None,
    window_seconds: opt.WindowSeconds = None,
    config_file: opt.ConfigFile = None,
    set_: opt.Set = None,
    run: opt.Run = None,
    resume: opt.Resume = False,
    target: opt.Target = None,
    steps: opt.Steps = None,
    minutes: opt.Minutes = None,
    workers: opt.Workers = None,
    engine: opt.Engine = DEFAULT_ENGINE,
    progress: opt.Progress = None,
    log: opt.Log = None,
    mpi: opt.Mpi = True,
    ray: opt.Ray = False,
    ray_address: opt.RayAddress = None,
    actors: opt.Actors = None,
    actor_cpus: opt.ActorCpus = 1.0,
    placement: opt.Placement = "pack",
    ray_ship: opt.RayShip = False,
    show_config: opt.PrintConfig = False,
    as_json: opt.AsJson = False,
) -> None:
    """Train an agent in a run folder.

    It gets settings, metrics and checkpoints. Under mpiexec all ranks train together; with --ray actors play.
    """
    from fastpong.commands.settings import changes_of, print_config
    from fastpong.parallel.ray import placing_of

    flags = {
        "preset": preset, "num_envs": envs, "seed": seed, "repeat_action_probability": sticky,
        "batch_games": batch_games, "window_seconds": window_seconds, "target_score": target,
    }  # fmt: skip
    changes = changes_of(flags, set_ or [], config_file, resume)
    placing = placing_of(ray, ray_address, actors, actor_cpus, placement, ray_ship)
    if seeds is not None and (seed is not None or show_config):
        raise UsageError(f"choose one of --seeds and {'--print-config' if show_config else '--seed'}")
    if show_config:
        print_config(changes)
        return
    if seeds is None and not placing:
        from fastpong.envs.verify import load_early

        load_early(engine)  # on another core, during the slow imports
    from fastpong.commands import seeds as many
    from fastpong.commands import train as one
    from fastpong.training.session import Request

    limits = Limits(steps, minutes, STARTED)
    request = Request(changes, run, resume, workers, engine, mpi, placing, limits, sys.argv[1:])
    display = progress, log, as_json
    raise typer.Exit(one.run(request, *display) if seeds is None else many.run(seeds, request, *display))


@_command("play", "fastpong play --terminal", "fastpong play runs/fast-1 --out game.html")
def play(
    checkpoint: opt.Checkpoint = None,
    out: Annotated[
        Path | None, opt.option("Write a .gif or .mp4, a .png sheet, or an .html page to explore.", metavar="FILE")
    ] = None,
    terminal: Annotated[bool, opt.option("Show the game in this terminal.", "--terminal")] = False,
    versus: Annotated[bool, opt.option("Play against it, in a page that your browser shows.", "--versus")] = False,
    follow: Annotated[
        bool, opt.option("Play the newest weights of a run that is training, point by point.", "--follow")
    ] = False,
    speed: Annotated[
        float, opt.option("Times the speed of the real game.", default=1, low=0.01, high=100, metavar="X")
    ] = 1.0,
    max_steps: Annotated[
        int | None, opt.option("Stop after this many steps of 4 frames.", "--steps", low=1, metavar="N")
    ] = None,
    sticky: opt.Sticky = None,
    sample: opt.Sample = False,
    seed: opt.PlaySeed = 0,
    engine: opt.Engine = DEFAULT_ENGINE,
    as_json: opt.AsJson = False,
) -> None:
    """Watch a trained agent, or play against it."""
    if follow:
        from fastpong.commands.follow import run as run_following

        if versus or out is not None:
            raise UsageError("--follow shows a run as it learns: leave out --versus and --out")
        run_following(checkpoint, terminal, max_steps, speed, as_json, sticky, sample, seed, engine)
        return
    from fastpong.agent import load

    agent = load(checkpoint, sticky=sticky, sample=sample)
    if versus:
        from fastpong.commands.versus import run as run_versus

        if terminal or max_steps is not None:
            raise UsageError("--versus is a page with whole games: leave out --terminal and --steps")
        run_versus(agent, out, speed, as_json)
        return
    from fastpong.commands.play import run

    run(agent, seed, out, terminal, max_steps, speed, as_json, engine, checkpoint)


@_command("eval", "fastpong eval --games 200", "fastpong eval runs/fast-1 --seed 3 --json")
def evaluate(
    checkpoint: opt.Checkpoint = None,
    games: Annotated[int, opt.option("Whole games to play.", default=100, low=1, metavar="N")] = 100,
    sticky: opt.Sticky = None,
    sample: opt.Sample = False,
    seed: opt.PlaySeed = 0,
    workers: opt.Workers = None,
    engine: opt.Engine = DEFAULT_ENGINE,
    as_json: opt.AsJson = False,
) -> None:
    """Play whole games with a trained agent: its mean score."""
    from fastpong.agent import load
    from fastpong.commands.evaluate import run

    run(load(checkpoint, sticky=sticky, sample=sample), seed, games, workers, engine, as_json)


@_command("bench", "fastpong bench --envs 64", "fastpong bench --seconds 0.5 --rounds 1")
def bench(
    envs: opt.Envs = None,
    preset: opt.Preset = None,
    seconds: Annotated[float, opt.option("Length of each measurement.", default=3, low=0.1, metavar="S")] = 3.0,
    rounds: Annotated[int, opt.option("Rounds; medians are reported.", default=5, low=1, metavar="N")] = 5,
    workers: opt.Workers = None,
    engine: opt.Engine = DEFAULT_ENGINE,
    as_json: opt.AsJson = False,
) -> None:
    """Measure steps/s: emulators alone, training, other envs."""
    from fastpong.commands.bench import bench as run_bench
    from fastpong.commands.bench import table

    settings = config.make_config(preset or "fast", {} if envs is None else {"num_envs": envs})
    results = run_bench(settings, workers, seconds, rounds, engine=engine)
    tell(*([json.dumps(results)] if as_json else table(results)), result=True)


@_command("export", "fastpong export --to onnx", "fastpong export runs/fast-1 --to safetensors --out agent.safetensors")
def export(
    checkpoint: opt.Checkpoint = None,
    to: Annotated[str, opt.option("onnx or safetensors.", "--to", default="onnx", metavar="KIND")] = "onnx",
    out: Annotated[
        Path | None, opt.option("The file.", default="agent.onnx, agent.safetensors", metavar="FILE")
    ] = None,
) -> None:
    """Write an agent's network for other programs."""
    from fastpong.agent import load
    from fastpong.commands.export import run

    tell(f"written to {run(load(checkpoint), to, out)}", result=True)


@_command("plot", "fastpong plot runs/fast-1", "fastpong plot runs/* --by gamma --to 0,10,17 --out curves.svg")
def plot(runs: opt.Runs, by: opt.By = None, x: opt.XAxis = "steps", to: opt.To = None, out: opt.Picture = None) -> None:
    """Draw learning curves; print them without --out."""
    from fastpong.commands.plot import run

    run(runs, by, x, to, out)


@_command("settings", "fastpong settings", "fastpong settings gamma")
def list_settings(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One of them. [default: all]",
            metavar="NAME",
            show_default=False,
            autocompletion=lambda: [*config.settings()],
        ),
    ] = None,
) -> None:
    """List the settings for --set and --config."""
    from fastpong.commands.settings import describe_settings

    tell(*describe_settings(name), result=True)


@_command("presets", "fastpong presets", "fastpong train --preset karpathy --envs 10")
def list_presets() -> None:
    """List the presets, and what each changes."""
    from fastpong.commands.settings import describe_presets

    tell(*describe_presets(), result=True)


@_command("doctor", "fastpong doctor", "mpiexec -n 2 fastpong doctor")
def doctor(as_json: opt.AsJson = False) -> None:
    """Tell what a bug report needs; fail if something is wrong."""
    from fastpong.commands.doctor import examine
    from fastpong.commands.doctor import table as facts_table
    from fastpong.parallel.mpi import connect

    comm = connect()
    facts = examine(comm)
    if comm.rank:
        return
    tell(*([json.dumps(facts)] if as_json else facts_table(facts)), result=True)
    if facts["problems"]:
        raise FastpongError(facts["problems"][0])
