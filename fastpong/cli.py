"""The command line. Errors are one line on stderr and an exit code; there is no arithmetic here."""

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated

STARTED = time.perf_counter()  # before the slow imports, which belong to the time a user waits

import typer  # noqa: E402

from fastpong import __version__, config  # noqa: E402
from fastpong.errors import FastpongError, UsageError, explain  # noqa: E402
from fastpong.parallel.machine import launched  # noqa: E402

SETTINGS = "\n\n".join(
    f"[{group}] {', '.join(name for name, one in config.settings().items() if one.metadata['group'] == group)}"
    for group in config.GROUPS
)
"""The settings by groups, for the help of ``train``."""

app = typer.Typer(
    help="Learn Atari Pong from pixels with PPO, on one ordinary computer.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        print(f"fastpong {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    if launched()[1] > 1 and context.invoked_subcommand not in ("train", "doctor"):
        raise UsageError(f"{context.invoked_subcommand} runs in one process: start it without mpiexec")


def _examples(*commands: str) -> str:
    return "\n\n".join(["Examples:", *commands])


@app.command(
    epilog=_examples("fastpong train --envs 64 --minutes 10", "fastpong train --run runs/fast-1 --resume")
    + f"\n\nSettings for --set (docs/settings.md, fastpong settings):\n\n{SETTINGS}"
)
def train(
    envs: Annotated[int | None, typer.Option(help="Emulators that are stepped side by side. [default: 64]")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(config.PRESETS)}. [default: fast]", autocompletion=lambda: [*config.PRESETS]
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything. [default: 0]")] = None,
    workers: Annotated[int | None, typer.Option(help="Env subprocesses. [default: one per core]")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run folder. [default: a new one in runs/]", metavar="DIR")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run's newest checkpoint.")] = False,
    steps: Annotated[int | None, typer.Option(help="Stop at this many steps of 4 frames, over all envs.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this many minutes.")] = None,
    target: Annotated[float | None, typer.Option(help="Stop at this mean score of 100 games. [default: 18]")] = None,
    batch_games: Annotated[
        int | None, typer.Option(help="REINFORCE: games that end before an update. [default: 10]")
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings from a TOML file.", metavar="FILE")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting, see docs/settings.md.",
            metavar="KEY=VALUE",
            autocompletion=lambda: [f"{name}=" for name in config.settings()],
        ),  # fmt: skip
    ] = None,
    window_seconds: Annotated[
        float | None, typer.Option(help="Preset ppg: seconds between updates. [default: 2]")
    ] = None,
    progress: Annotated[
        str | None, typer.Option(help="live, lines or none. [default: live in a terminal, else lines]", metavar="KIND")
    ] = None,
    mpi: Annotated[bool, typer.Option("--mpi/--no-mpi", help="Under mpiexec: train together, over all ranks.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as a JSON object.")] = False,
) -> None:
    """Train an agent in a run folder.

    The folder gets settings, metrics and checkpoints. Under mpiexec all ranks train together.
    """
    from fastpong.commands.train import run as run_training
    from fastpong.training.loop import Limits

    flags = {
        "num_envs": envs, "preset": preset, "seed": seed, "target_score": target,
        "batch_games": batch_games, "window_seconds": window_seconds,
    }  # fmt: skip
    code = run_training(
        run, flags, set_ or [], config_file, workers=workers, resume=resume, mpi=mpi,
        limits=Limits(steps, minutes, STARTED), show=progress, as_json=as_json,
    )  # fmt: skip
    if code:
        raise typer.Exit(code)


@app.command(epilog=_examples("fastpong play --terminal", "fastpong play runs/fast-1 --out game.gif"))
def play(
    checkpoint: Annotated[
        Path | None, typer.Argument(help="A checkpoint, a best.npz or a run folder. [default: the shipped agent]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write a .gif or .mp4 film, or a .png sheet of pictures.", metavar="FILE")
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Show the game in this terminal.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the game.", min=0)] = 1_000_000,
    max_steps: Annotated[
        int | None, typer.Option("--steps", help="Stop after this many steps of 4 frames.", min=1)
    ] = None,
    sticky: Annotated[float, typer.Option(help="Probability of a sticky action.", min=0.0, max=0.99)] = 0.25,
    speed: Annotated[float, typer.Option(help="Times the speed of the real game.", min=0.01)] = 1.0,
) -> None:
    """Watch a trained agent: in a window, the terminal or a file."""
    from fastpong.commands.play import play as run_play

    score, steps = run_play(
        checkpoint, out=out, terminal=terminal, seed=seed, max_steps=max_steps, sticky=sticky, speed=speed
    )
    print(f"agent {score[0]}, opponent {score[1]}, after {steps:,} steps" + (f"; written to {out}" if out else ""))


@app.command("eval", epilog=_examples("fastpong eval --games 200", "fastpong eval runs/fast-1 --seed 3 --json"))
def evaluate(
    checkpoint: Annotated[
        Path | None, typer.Argument(help="A checkpoint, a best.npz or a run folder. [default: the shipped agent]")
    ] = None,
    games: Annotated[int, typer.Option(help="Whole games to play.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the games; never the same as in training.", min=0)] = 0,
    sticky: Annotated[
        float | None, typer.Option(help="Probability of a sticky action. [default: as trained]", min=0.0, max=0.99)
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Env subprocesses. [default: one per core]", min=1)] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Sample actions as in training; greedy otherwise.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play whole games with a trained agent: its mean score."""
    from fastpong.training.evaluate import evaluate as run_evaluation
    from fastpong.training.run_folder import load_weights

    settings, weights = load_weights(checkpoint)
    if sticky is not None:
        settings = config.changed(settings, {"repeat_action_probability": sticky})
    if settings.repeat_action_probability == 0 and not sample and games > 1:
        print("without sticky actions a greedy agent plays the same game every time: use --sample", file=sys.stderr)

    def tell(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {games} games", end="\n" if done == games else "", file=sys.stderr, flush=True)

    result = run_evaluation(settings, weights, games, seed, workers, greedy=not sample, tell=tell)
    if as_json:
        print(json.dumps(result.summary()))
    else:
        sure = "" if result.ci95_low is None else f" (95 % confidence {result.ci95_low:.2f} … {result.ci95_high:.2f})"
        print(
            f"mean score {result.mean:.2f}{sure} over {result.games} games, {result.wins} won, "
            f"{result.steps / result.games:,.0f} steps a game\n{checkpoint or 'the shipped agent'}, "
            f"{'sampled' if sample else 'greedy'} actions, sticky {settings.repeat_action_probability:g}, seed {seed}"
        )


@app.command(epilog=_examples("fastpong bench --envs 64", "fastpong bench --seconds 0.5 --rounds 1"))
def bench(
    envs: Annotated[int, typer.Option(help="Emulators that are stepped side by side.", min=1)] = 64,
    seconds: Annotated[float, typer.Option(help="Length of each measurement.", min=0.1)] = 3.0,
    rounds: Annotated[int, typer.Option(help="Rounds; medians are reported.", min=1)] = 5,
    workers: Annotated[int | None, typer.Option(help="Env subprocesses. [default: one per core]")] = None,
    preset: Annotated[str, typer.Option(help="Preset of the training loop.")] = "fast",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure steps/s: emulators alone, training, other envs."""
    from fastpong.commands.bench import bench as run_bench
    from fastpong.commands.bench import table

    results = run_bench(config.make_config(preset, {"num_envs": envs}), workers, seconds, rounds)
    print(json.dumps(results) if as_json else table(results))


@app.command(epilog=_examples("fastpong plot runs/fast-1", "fastpong plot runs/* --x minutes --out curves.svg"))
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or metrics.jsonl files.", metavar="RUN…")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.", metavar="FILE")] = Path("curve.png"),
    x: Annotated[str, typer.Option(help="The x axis: steps, frames or minutes.", metavar="AXIS")] = "steps",
) -> None:
    """Draw learning curves."""
    from fastpong.commands.plot import plot as run_plot

    run_plot(runs, out, x)
    print(f"written to {out}")


@app.command("settings", epilog=_examples("fastpong settings", "fastpong settings gamma"))
def list_settings(
    name: Annotated[
        str | None, typer.Argument(help="One of them. [default: all]", autocompletion=lambda: [*config.settings()])
    ] = None,
) -> None:
    """List the settings for --set and --config."""
    from fastpong.commands.settings import describe_settings

    print(describe_settings(name))


@app.command("presets", epilog=_examples("fastpong presets", "fastpong train --preset karpathy --envs 10"))
def list_presets() -> None:
    """List the presets, and what each changes."""
    from fastpong.commands.settings import describe_presets

    print(describe_presets())


@app.command(epilog=_examples("fastpong doctor", "mpiexec -n 2 fastpong doctor"))
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Tell what a bug report needs; fail if something is wrong."""
    from fastpong.commands.doctor import examine
    from fastpong.commands.doctor import table as facts_table
    from fastpong.parallel.mpi import connect

    comm = connect()
    facts = examine(comm)
    if comm.rank:
        return
    print(json.dumps(facts) if as_json else facts_table(facts))
    if facts["problems"]:
        raise FastpongError(facts["problems"][0])


def main() -> None:
    """Run the command line and exit with its code: 0, 1 (failed), 2 (wrong usage) or 130 (interrupted)."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 shows ? for "…"
    sys.stdout = sys.stdout or sys.stderr  # closed: the result is not lost
    arguments = [argument for argument in arguments if argument != "--debug"]  # allowed anywhere
    try:
        code = app(arguments, standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        with contextlib.suppress(UsageError):
            if launched()[0]:  # all ranks of a launcher get here with the same error: rank 0 prints it
                sys.stderr = open(os.devnull, "w")
        code = explain(error)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
