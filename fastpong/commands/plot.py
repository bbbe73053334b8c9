"""Learning curves as a picture (extra ``plot``)."""

from collections.abc import Sequence
from pathlib import Path

from fastpong.errors import FastpongError, UsageError
from fastpong.training.run_folder import read_metrics


def plot(runs: Sequence[Path], out: Path) -> None:
    """Draw score against steps, a line for each run folder or ``metrics.jsonl`` file.

    Raises `UsageError` if a run has no metrics, or `out` has an unknown ending; `FastpongError` without matplotlib.
    """
    curves = []
    for run in runs:
        path = run / "metrics.jsonl" if run.is_dir() else run
        points = [(line["steps"] / 1e6, line["score"]) for line in read_metrics(path) if line["score"] is not None]
        if not points:
            raise UsageError(f"{path} has no finished game yet")
        name = run.name if run.is_dir() else run.stem if run.stem != "metrics" else run.parent.name
        curves.append((name, points))
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FastpongError("plotting needs matplotlib: pip install 'fastpong[plot]'") from None
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, points in curves:
        axes.plot(*zip(*points, strict=True), label=name, linewidth=1.5)
    axes.set_xlabel("million steps (4 frames each)")
    axes.set_ylabel("mean score of the last 100 games")
    axes.set_title("fastpong learning Pong")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    try:
        figure.savefig(out, dpi=150)
    except (ValueError, OSError) as error:
        raise UsageError(f"cannot write {out}: {error}") from None
