"""``fastpong plot``: learning curves."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fastpong import files
from fastpong.config import Config
from fastpong.errors import UsageError, missing, printable, tell
from fastpong.training.facts import MAX_METRICS, read_metrics
from fastpong.training.run_folder import RunFolder

AXES: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
    "steps": ("million steps (4 frames each)", lambda line: line["steps"] / 1e6),
    "frames": ("million frames", lambda line: 4 * line["steps"] / 1e6),
    "minutes": ("minutes", lambda line: line["wall_s"] / 60),
}
"""What the x axis may show: its label, and the number of a line of metrics."""

Curve = tuple[str, list[tuple[float, float]]]
"""A name, and points: x and score."""

_INSIDE = 8  # curves that a legend inside the picture has room for
_NEVER = 22  # a target that no run reaches


def plot(runs: Sequence[Path], out: Path, x: str = "steps") -> None:
    """Draw score against one of `AXES`, a line for each run, and the runs' targets.

    `runs` are run folders, ``metrics.jsonl`` files, and JSON files of ``bench/runs`` that hold several runs. One
    without a curve is left out, which is told. Raises `UsageError` if none is left, or `out` has an unknown ending;
    `FastpongError` without matplotlib.
    """
    if x not in AXES:
        raise UsageError(f"--x is one of {', '.join(AXES)}, not '{x}'")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("plotting", "matplotlib", "plot") from None
    label, number = AXES[x]
    curves, targets = _curves(runs, number)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    lines = [axes.plot(*zip(*points, strict=True), linewidth=1.5)[0] for _, points in curves]
    for target in targets - {_NEVER}:
        axes.axhline(target, color="grey", linestyle=":", linewidth=1)
    axes.set_xlabel(label)
    axes.set_ylabel("mean score of the last 100 games")
    axes.set_title("fastpong learning Pong")
    axes.grid(alpha=0.3)
    numbers = [str(number) for number in range(len(lines))]
    if len(curves) > _INSIDE:
        more = {"loc": "outside right upper", "fontsize": "x-small", "ncols": -(-len(curves) // 24)}
        legend = figure.legend(lines, numbers, frameon=False, **more)
    else:
        legend = axes.legend(lines, numbers, frameon=False, loc="lower right")
    for text, (name, _) in zip(legend.get_texts(), curves, strict=True):
        text.set_parse_math(False)  # a name with $ is no formula, and one with _ at its begin is a name, too
        text.set_text(printable(name))
    try:
        figure.savefig(out, dpi=150)
    except (ValueError, OSError) as error:
        raise UsageError(f"cannot write {out}: {error}") from None


def _curves(runs: Sequence[Path], number: Callable[[dict[str, Any]], float]) -> tuple[list[Curve], set[float]]:
    """Return the curves of some runs, and their targets; tells what is left out."""
    curves: list[Curve] = []
    targets: set[float] = set()
    complaints = []
    for run, name in zip(runs, names_of(runs), strict=True):
        try:
            curves += list(_curves_of(run, name, len(runs) > 1, number))  # all of a file, or none
        except UsageError as error:
            complaints.append(str(error))
            continue
        with contextlib.suppress(UsageError):  # a run of another version has a curve, but no target that is known
            targets.add((RunFolder(run).config() if run.is_dir() else Config()).target_score)
    if not curves:
        raise UsageError("; ".join(complaints))
    for complaint in complaints:
        tell(f"{complaint}: left out")
    return curves, targets


def _curves_of(run: Path, name: str, named: bool, number: Callable[[dict[str, Any]], float]) -> Iterator[Curve]:
    """Yield the curve of a run, or those of a file with several, with the file's name where it is `named`."""
    try:
        path = run / "metrics.jsonl" if run.is_dir() else run
        if path.suffix == ".json":
            several = [(f"{name}, {one}" if named else one, lines) for one, lines in _several(path)]
        else:
            several = [(name, read_metrics(path))]
        for one, lines in several:
            points = [(float(number(line)), float(line["score"])) for line in lines if line["score"] is not None]
            if not points:
                raise UsageError(f"{path} has no finished game yet")
            yield one, points
    except OSError as error:
        raise UsageError(f"cannot read {run}: {error.strerror}") from None
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise UsageError(f"{path} is not a metrics.jsonl of fastpong") from None


def names_of(runs: Sequence[Path]) -> list[str]:
    """Return a name for each run: the shortest ending of its path that no other one has."""
    parts = []
    for path in (Path(os.path.abspath(run)) for run in runs):
        ending = path.suffix in (".json", ".jsonl")  # a folder keeps what only looks like one
        parts.append((path.parent if path.name == "metrics.jsonl" else path.with_suffix("") if ending else path).parts)
    names = []
    for one in parts:
        others = [other for other in parts if other != one]
        lengths = (length for length in range(1, len(one)) if all(one[-length:] != other[-length:] for other in others))
        names.append(str(Path(*one[-next(lengths, len(one)) :])))
    return names


def _several(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield name and lines of each run of a file of ``bench/runs``: columns, and rows by arm and seed."""
    try:
        stored = json.loads(files.read(path, MAX_METRICS))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON") from None
    for arm, runs in stored["arms"].items():
        for seed, rows in runs["seeds"].items():
            name = f"seed {seed}" if len(stored["arms"]) == 1 else f"{arm}, seed {seed}"
            yield name, [dict(zip(stored["columns"], row, strict=True)) for row in rows]
