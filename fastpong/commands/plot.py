"""``fastpong plot``: learning curves."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fastpong.config import Config
from fastpong.errors import UsageError, missing
from fastpong.training.facts import read_metrics
from fastpong.training.run_folder import RunFolder

AXES: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
    "steps": ("million steps (4 frames each)", lambda line: line["steps"] / 1e6),
    "frames": ("million frames", lambda line: 4 * line["steps"] / 1e6),
    "minutes": ("minutes", lambda line: line["wall_s"] / 60),
}
"""What the x axis may show: its label, and the number of a line of metrics."""

_INSIDE = 8  # curves that a legend inside the picture has room for
_NEVER = 22  # a target that no run reaches


def plot(runs: Sequence[Path], out: Path, x: str = "steps") -> None:
    """Draw score against one of `AXES`, a line for each run, and the runs' targets.

    `runs` are run folders, ``metrics.jsonl`` files, and JSON files of ``bench/runs`` that hold several runs.
    Raises `UsageError` if a run has no metrics, or `out` has an unknown ending; `FastpongError` without matplotlib.
    """
    if x not in AXES:
        raise UsageError(f"--x is one of {', '.join(AXES)}, not '{x}'")
    label, number = AXES[x]
    curves, targets = [], set()
    for run in runs:
        path = run / "metrics.jsonl" if run.is_dir() else run
        try:
            for name, lines in _several(path) if path.suffix == ".json" else [(_name(run), read_metrics(path))]:
                points = [(number(line), line["score"]) for line in lines if line["score"] is not None]
                if not points:
                    raise UsageError(f"{path} has no finished game yet")
                curves.append((name, points))
        except (KeyError, TypeError, AttributeError):
            raise UsageError(f"{path} is not a metrics.jsonl of fastpong") from None
        targets.add((RunFolder(run).config() if run.is_dir() else Config()).target_score)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("plotting", "matplotlib", "plot") from None
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, points in curves:
        axes.plot(*zip(*points, strict=True), label=name, linewidth=1.5)
    for target in targets - {_NEVER}:
        axes.axhline(target, color="grey", linestyle=":", linewidth=1)
    axes.set_xlabel(label)
    axes.set_ylabel("mean score of the last 100 games")
    axes.set_title("fastpong learning Pong")
    axes.grid(alpha=0.3)
    if len(curves) > _INSIDE:
        columns = -(-len(curves) // 24)
        figure.legend(frameon=False, loc="outside right upper", fontsize="x-small", ncols=columns)
    else:
        axes.legend(frameon=False, loc="lower right")
    try:
        figure.savefig(out, dpi=150)
    except (ValueError, OSError) as error:
        raise UsageError(f"cannot write {out}: {error}") from None


def _name(run: Path) -> str:
    return run.name if run.is_dir() else run.stem if run.stem != "metrics" else run.parent.name


def _several(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield name and lines of each run of a file of ``bench/runs``: columns, and rows by arm and seed."""
    try:
        stored = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON") from None
    for arm, runs in stored["arms"].items():
        for seed, rows in runs["seeds"].items():
            name = f"seed {seed}" if len(stored["arms"]) == 1 else f"{arm}, seed {seed}"
            yield name, [dict(zip(stored["columns"], row, strict=True)) for row in rows]
