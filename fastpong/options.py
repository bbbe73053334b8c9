"""Options that several commands have, and help that tells defaults and ranges in one style.

Each help text ends with ``[1 or more; default: 64]``.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fastpong.config import PRESETS, allowed, names_by_group, nearest, number, settings
from fastpong.envs.engine import DEFAULT_ENGINE, ENGINES, check_engine
from fastpong.errors import UsageError

SETTINGS = [f"[{group}] {', '.join(names)}" for group, names in names_by_group().items()]
"""The settings by groups, for the help of ``train``."""


def epilog(*examples: str, more: Sequence[str] = ()) -> str:
    """Return the end of a help text: more lines, and examples."""
    return "\n\n".join([*more, "\n  ".join(["\b\nExamples:", *examples])])  # \b: these lines stay as they are


def option(
    text: str, *names: str, default: object = None, low: float | None = None, high: float | None = None,
    metavar: str | None = None, group: str = "Options", **more: Any,
) -> Any:  # fmt: skip
    """Make an option; its help says `default`, and that the value is `low` … `high`, or `low` or more."""
    facts = [f"{low:g} or more" if high is None else f"{low:g} … {high:g}"] if low is not None else []
    facts += [f"default: {default}"] if default is not None else []
    told = f"{text} [{'; '.join(facts)}]" if facts else text
    if low is not None:
        more |= {"min": low, "max": high, "callback": _finite}
    return typer.Option(*names, help=told, metavar=metavar, show_default=False, rich_help_panel=group, **more)


def _finite(value: Any) -> Any:
    """Return a number, or None; inf and nan, which no range of click's keeps out, are no numbers of anything."""
    if isinstance(value, float) and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not finite.")
    return value


def setting(name: str, flag: str, metavar: str, default: object = None, group: str = "Options", **more: Any) -> Any:
    """Make an option for a setting: help, range and default are those of `fastpong.config`, which checks the value."""
    one = settings()[name]
    text = str(one.metadata["help"])
    told = f"{text[0].upper()}{text[1:]}. [{allowed(name)}; default: {default or number(one.default)}]"
    return typer.Option(flag, help=told, metavar=metavar, show_default=False, rich_help_panel=group, **more)


class Command(TyperCommand):
    """A command whose help has its options in groups, and which says what was meant in place of what it refuses."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raises `UsageError` for an empty one, and for a setting that is no option."""
        _refuse_empty(args)
        try:
            return super().parse_args(ctx, list(args))
        except Exception as error:  # click's NoSuchOption, whichever click typer brings along
            option = str(getattr(error, "option_name", ""))
            name = nearest(option.lstrip("-"), settings(), 0.75)
            if name and any("--set" in parameter.opts for parameter in self.get_params(ctx)):
                raise UsageError(f"there is no option {option}: {_instead(option, name, args)}") from None
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, in the order in which the options are declared."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            _, told = parameter.get_help_record(ctx) or ("", "")
            if parameter.param_type_name == "argument":
                group, name = "Arguments", str(parameter.metavar)
            else:
                group, told = (
                    getattr(parameter, "rich_help_panel", None) or "Options",
                    str(getattr(parameter, "help", "")),
                )
                name = " / ".join([", ".join(sorted(parameter.opts, key=len)), *parameter.secondary_opts])
                name += f" {parameter.metavar}" if parameter.metavar else ""
            groups.setdefault(group, []).append((name, told))
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def _refuse_empty(args: Sequence[str]) -> None:
    """Raise `UsageError` if an argument is empty: as a path it would be the current directory."""
    for before, argument in zip(["", *args], args, strict=False):
        name, equals, value = argument.partition("=")
        is_empty = not argument or (name.startswith("--") and equals and not value)
        if is_empty:
            what = name or (before if before.startswith("-") else "an argument")
            raise UsageError(f"{what} is empty: is a variable of the shell not set?")


def _instead(option: str, setting: str, args: Sequence[str]) -> str:
    """Say how a setting is given that has no option of its own, with the value that `option` has in `args`."""
    value = next((text for name, _, text in (one.partition("=") for one in args) if name == option and text), None)
    if value is None and option in args[:-1]:
        value = args[args.index(option) + 1]
    return f"use --set {setting}={value or 'VALUE'}"


Preset = Annotated[
    str | None, setting("preset", "--preset", "NAME", group="Settings", autocompletion=lambda: [*PRESETS])
]
Envs = Annotated[int | None, setting("num_envs", "--envs", "N", group="Settings")]
Seed = Annotated[int | None, setting("seed", "--seed", "N", group="Settings")]
TrainSticky = Annotated[float | None, setting("repeat_action_probability", "--sticky", "P", group="Settings")]
BatchGames = Annotated[int | None, setting("batch_games", "--batch-games", "N", group="Settings")]
WindowSeconds = Annotated[float | None, setting("window_seconds", "--window-seconds", "S", group="Settings")]
ConfigFile = Annotated[Path | None, option("Settings from a TOML file.", "--config", metavar="FILE", group="Settings")]
Set = Annotated[
    list[str] | None,
    option(
        "Any setting; can be given several times.", "--set", metavar="KEY=VALUE", group="Settings",
        autocompletion=lambda: [f"{name}=" for name in settings()],
    ),
]  # fmt: skip
Seeds = Annotated[
    str | None,
    option("A run for each, as 31-35 or 1,4,7, in folders DIR-seedN.", "--seeds", metavar="LIST", group="Run"),
]
Run = Annotated[Path | None, option("Run folder.", "--run", default="a new one in runs/", metavar="DIR", group="Run")]
Resume = Annotated[bool, option("Go on with --run, or with the latest run.", "--resume", group="Run")]
Target = Annotated[float | None, setting("target_score", "--target", "SCORE", group="Run")]
Steps = Annotated[
    int | None,
    option("Stop at this many steps of 4 frames, over all envs.", "--steps", low=1, metavar="N", group="Run"),
]
Minutes = Annotated[
    float | None,
    option(
        "Train for this many minutes; the choice of best.npz comes after them (--set eval_games=0: none).", "--minutes",
        low=0.001, metavar="X", group="Run",
    ),
]  # fmt: skip
Progress = Annotated[
    str | None, option("live, lines or none.", "--progress", default="live in a terminal, else lines", metavar="KIND")
]
Log = Annotated[str | None, option("Log for other programs, too: tensorboard.", "--log", metavar="KIND")]
Mpi = Annotated[bool, option("Under mpiexec: train together, over all ranks.", "--mpi/--no-mpi", default="--mpi")]
PrintConfig = Annotated[
    bool, option("Print the settings of such a run as a config.toml, and do nothing.", "--print-config")
]
Checkpoint = Annotated[
    Path | None,
    typer.Argument(
        help="A checkpoint, a best.npz or a run folder. [default: the shipped agent]", metavar="CHECKPOINT",
        show_default=False,
    ),
]  # fmt: skip
Workers = Annotated[int | None, option("Env subprocesses.", default="all cores but one", low=1, metavar="N")]
Engine = Annotated[
    str,
    option(
        f"What steps the games, to the same result: {' or '.join(ENGINES)}.",
        default=DEFAULT_ENGINE,
        metavar="NAME",
        callback=check_engine,
    ),
]
Sticky = Annotated[float | None, setting("repeat_action_probability", "--sticky", "P", default="as trained")]
Sample = Annotated[bool, option("Sample actions, as in training; greedy otherwise.", "--sample")]
PlaySeed = Annotated[
    int, option("Seed of the games, never those of training; play shows eval's first.", default=0, low=0, metavar="N")
]
Runs = Annotated[
    list[Path],
    typer.Argument(help="Run folders, folders of runs, metrics.jsonl files, or files of bench/runs.", metavar="RUN…"),
]
By = Annotated[str | None, option("Group the runs by these settings, as gamma,num_envs.", "--by", metavar="KEY,…")]
XAxis = Annotated[str, option("The x axis: steps, frames, minutes or seconds.", "--x", default="steps", metavar="AXIS")]
To = Annotated[
    str | None, option("Tell when these scores were reached.", "--to", default="0,10,17 in a table", metavar="SCORE,…")
]
Picture = Annotated[
    Path | None, option("A picture: .png, .svg or .pdf.", "--out", default="curve and table here", metavar="FILE")
]
AsJson = Annotated[bool, option("Print the result as one JSON object.", "--json")]
Ray = Annotated[bool, option("Step the envs in Ray actors, on a Ray of this machine.", "--ray", group="Ray")]
RayAddress = Annotated[
    str | None, option("The same on this Ray cluster.", "--ray-address", metavar="auto|HOST:PORT", group="Ray")
]
Actors = Annotated[int | None, option("Actors.", "--actors", default="as many as fit", low=1, metavar="N", group="Ray")]
ActorCpus = Annotated[
    float, option("Cores of each actor.", "--actor-cpus", default=1, low=0.1, metavar="X", group="Ray")
]
Placement = Annotated[
    str, option("Few machines: pack; many: spread.", "--placement", default="pack", metavar="KIND", group="Ray")
]
RayShip = Annotated[bool, option("Send this fastpong to the cluster.", "--ray-ship", group="Ray")]
