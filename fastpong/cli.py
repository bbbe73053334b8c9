"""The command line. Errors are one line on stderr and an exit code; there is no arithmetic here."""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

STARTED = time.perf_counter()  # before the slow imports, which belong to the time a user waits

import typer  # noqa: E402

from fastpong import __version__, config  # noqa: E402
from fastpong.errors import FastpongError, RanksError, UsageError  # noqa: E402
from fastpong.launcher import launched  # noqa: E402

if TYPE_CHECKING:
    from fastpong.ranks import Ranks

T = TypeVar("T")

app = typer.Typer(
    help="Learn Atari Pong from pixels with policy gradients, on one ordinary computer.",
    no_args_is_help=True,
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


@app.command()
def train(
    envs: Annotated[int | None, typer.Option(help="Games played side by side. [default: 64]")] = None,
    preset: Annotated[str | None, typer.Option(help=f"One of {', '.join(config.PRESETS)}. [default: fast]")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything. [default: 0]")] = None,
    workers: Annotated[int | None, typer.Option(help="Game subprocesses. [default: one per core]")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run folder. [default: a new one in runs/]", metavar="DIR")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run's newest checkpoint.")] = False,
    steps: Annotated[int | None, typer.Option(help="Stop at this many steps, over all games.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this many minutes.")] = None,
    target: Annotated[float | None, typer.Option(help="Stop at this mean score of 100 games. [default: 18]")] = None,
    batch_games: Annotated[
        int | None, typer.Option(help="REINFORCE: games that end before an update. [default: 10]")
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings from a TOML file.", metavar="FILE")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, see docs/settings.md.", metavar="KEY=VALUE")
    ] = None,
    window_seconds: Annotated[
        float | None, typer.Option(help="Preset ppg: seconds between updates. [default: 2]")
    ] = None,
    mpi: Annotated[bool, typer.Option("--mpi/--no-mpi", help="Under mpiexec: train together, over all ranks.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as a JSON object.")] = False,
) -> None:
    """Train, and write settings, metrics and checkpoints to a run folder. Under mpiexec all ranks train together."""
    from fastpong.checkpoint import RunFolder, read_metrics
    from fastpong.games import check_workers
    from fastpong.ranks import connect, share_of
    from fastpong.runs import new_run, resumed_run

    if steps is not None and steps < 1:
        raise UsageError(f"--steps must be 1 or more, not {steps}")
    if minutes is not None and not minutes > 0:
        raise UsageError(f"--minutes must be more than 0, not {minutes}")
    ranks = connect(mpi)

    def prepare() -> tuple[config.Config, RunFolder]:
        changes: dict[str, object] = {}
        if config_file is not None:
            changes |= config.read_toml(config_file)[0]
        changes |= config.parse_assignments(set_ or [])
        flags = {
            "envs": envs, "preset": preset, "seed": seed, "target": target,
            "batch_games": batch_games, "window_seconds": window_seconds,
        }  # fmt: skip
        changes |= {name: value for name, value in flags.items() if value is not None}
        settings, folder = resumed_run(run, changes) if resume else new_run(run, changes)
        if settings.envs < ranks.size:
            raise UsageError(f"{ranks.size} ranks have too little to do with {settings.envs} games: use fewer ranks")
        check_workers(len(share_of(settings.envs, 0, ranks.size)), workers, ranks.neighbours)
        if not resume:
            from fastpong.train import versions

            folder.create(settings, {"command": " ".join(sys.argv[1:]), **versions()})
        return settings, folder

    settings, folder = _on_first(ranks, prepare)
    try:
        from fastpong.report import NoReport, make_report
        from fastpong.train import train as run_training

        past = read_metrics(folder.metrics) if resume and folder.metrics.exists() else []
        title = f"fastpong {__version__} · preset {settings.preset} · run {folder.path}"
        report = make_report(title, past) if ranks.rank == 0 else NoReport()
        try:
            result = run_training(
                settings, folder, report, ranks=ranks, workers=workers, resume=resume,
                max_steps=steps, max_minutes=minutes, started=STARTED,
            )  # fmt: skip
        except FastpongError as error:
            goes_on = folder.checkpoints() and not isinstance(error, UsageError)
            hint = f"; go on with: fastpong train --run {folder.path} --resume" if goes_on else ""
            raise type(error)(f"{error}{hint}") from error.__cause__
        finally:
            report.close()
    except BaseException as error:
        if ranks.size > 1:  # the others wait for this rank: end them too
            if isinstance(error, RanksError) and ranks.rank:
                time.sleep(5.0)  # every rank has the same error: rank 0 tells it
            if "--debug" in sys.argv:
                traceback.print_exc()
            ranks.abort(_explain(error, f"rank {ranks.rank}: "))
        raise
    if ranks.rank:
        raise typer.Exit(130 if result.reason == "interrupted" else 0)
    summary: dict[str, Any] = {"reason": result.reason, "run": str(folder.path), **result.metrics, "best": result.best}
    if as_json:
        print(json.dumps(summary))
    else:
        why = {
            "target": f"the target of {settings.target:g} is reached",
            "steps": "the limit of steps is reached",
            "minutes": "the time is up",
            "interrupted": "interrupted",
        }[result.reason]
        score = "no game finished" if summary["score"] is None else f"score {summary['score']:.2f}"
        print(f"stopped, {why}: {score} after {summary['steps']:,} steps; all is saved in {folder.path}")
        if best := result.best:
            print(
                f"best.npz, the weights after {best['steps']:,} steps: mean score {best['mean']:.2f} "
                f"(95 % confidence {best['ci95_low']:.2f} … {best['ci95_high']:.2f}) over {best['games']} fresh games"
            )
    if result.reason == "interrupted":
        raise typer.Exit(130)


@app.command()
def play(
    checkpoint: Annotated[
        Path | None, typer.Argument(help="A checkpoint, a best.npz or a run folder. [default: the shipped agent]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write a .gif or .mp4 film, or a .png sheet of pictures.", metavar="FILE")
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Show the game in this terminal.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the game.", min=0)] = 1_000_000,
    max_steps: Annotated[int | None, typer.Option("--steps", help="Stop after this many steps.", min=1)] = None,
    sticky: Annotated[float, typer.Option(help="Probability of a sticky action.", min=0.0, max=0.99)] = 0.25,
    speed: Annotated[float, typer.Option(help="Times the speed of the real game.", min=0.01)] = 1.0,
) -> None:
    """Watch a trained agent: in a window, in the terminal, or as a file."""
    from fastpong.play import play as run_play

    score, steps = run_play(
        checkpoint, out=out, terminal=terminal, seed=seed, max_steps=max_steps, sticky=sticky, speed=speed
    )
    print(f"agent {score[0]}, opponent {score[1]}, after {steps:,} steps" + (f"; written to {out}" if out else ""))


@app.command("eval")
def evaluate(
    checkpoint: Annotated[
        Path | None, typer.Argument(help="A checkpoint, a best.npz or a run folder. [default: the shipped agent]")
    ] = None,
    games: Annotated[int, typer.Option(help="Whole games to play.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the games; never the same as in training.", min=0)] = 0,
    sticky: Annotated[
        float | None, typer.Option(help="Probability of a sticky action. [default: as trained]", min=0.0, max=0.99)
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Game subprocesses. [default: one per core]", min=1)] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw actions as in training; greedy otherwise.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play whole games with a trained agent and report the mean score."""
    from fastpong.checkpoint import load_weights
    from fastpong.evaluate import evaluate as run_evaluation

    settings, weights = load_weights(checkpoint)
    if sticky is not None:
        settings = config.changed(settings, {"sticky": sticky})
    if settings.sticky == 0 and not sample and games > 1:
        print("without sticky actions a greedy agent plays the same game every time: see --sample", file=sys.stderr)
    result = run_evaluation(settings, weights, games, seed, workers, greedy=not sample)
    if as_json:
        print(json.dumps(result.summary()))
    else:
        sure = "" if result.ci95_low is None else f" (95 % confidence {result.ci95_low:.2f} … {result.ci95_high:.2f})"
        print(
            f"mean score {result.mean:.2f}{sure} over {result.games} games, {result.wins} won, "
            f"{result.steps / result.games:,.0f} steps a game"
        )


@app.command()
def bench(
    envs: Annotated[int, typer.Option(help="Games played side by side.", min=1)] = 64,
    seconds: Annotated[float, typer.Option(help="Length of each measurement.", min=0.1)] = 3.0,
    rounds: Annotated[int, typer.Option(help="Rounds; medians are reported.", min=1)] = 5,
    workers: Annotated[int | None, typer.Option(help="Game subprocesses. [default: one per core]")] = None,
    preset: Annotated[str, typer.Option(help="Preset of the training loop.")] = "fast",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure steps per second: the emulator's limit, our games, training, and two other environments."""
    from fastpong.bench import bench as run_bench
    from fastpong.bench import table

    results = run_bench(config.make_config(preset, {"envs": envs}), workers, seconds, rounds)
    print(json.dumps(results) if as_json else table(results))


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or metrics.jsonl files.", metavar="RUN…")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.", metavar="FILE")] = Path("curve.png"),
) -> None:
    """Draw learning curves."""
    from fastpong.plot import plot as run_plot

    run_plot(runs, out)
    print(f"written to {out}")


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Tell what a bug report needs: versions, cores, threads, ROM, display, MPI, Ray. Fails if something is wrong."""
    from fastpong.doctor import examine
    from fastpong.doctor import table as facts_table
    from fastpong.ranks import connect

    ranks = connect()
    facts = examine(ranks)
    if ranks.rank:
        return
    print(json.dumps(facts) if as_json else facts_table(facts))
    if facts["problems"]:
        raise FastpongError(facts["problems"][0])


def _on_first(ranks: "Ranks", work: Callable[[], T]) -> T:
    """Let rank 0 do something, and give its result, or its error, to all ranks."""
    outcome: T | FastpongError | None = None
    if ranks.rank == 0:
        try:
            outcome = work()
        except FastpongError as error:
            outcome = error
    outcome = ranks.from_first(outcome)
    if isinstance(outcome, FastpongError):
        raise outcome
    return cast(T, outcome)


def _explain(error: BaseException, who: str = "") -> int:
    """Print what went wrong in one line, and return the exit code."""
    code, message = 1, str(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        code, message = 130, "interrupted"
    elif hasattr(error, "format_message"):  # click's own complaints, whichever click typer brings along
        code, message = 2, error.format_message().replace("\n", " ")
    elif isinstance(error, UsageError):
        code = 2
    elif not isinstance(error, FastpongError | OSError):
        message = f"{type(error).__name__}: {error} (a bug: --debug shows where)"
    print(f"fastpong: {who}{message}", file=sys.stderr, flush=True)
    return code


def main() -> None:
    """Run the command line and exit with its code: 0, 1 (failed), 2 (wrong usage) or 130 (interrupted)."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]  # allowed anywhere
    try:
        code = app(arguments, standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        if launched()[0]:  # all ranks of a launcher come here with the same error: rank 0 tells it
            sys.stderr = open(os.devnull, "w")
        code = _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
