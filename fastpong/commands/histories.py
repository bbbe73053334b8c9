"""What ``fastpong plot`` reads: run folders, folders of runs, ``metrics.jsonl`` files, and files of ``bench/runs``."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fastpong import files
from fastpong.errors import UsageError
from fastpong.rollout.episode_stats import RECENT
from fastpong.runs.facts import MAX_METRICS, checked_line, read_metrics
from fastpong.runs.folder import RunFolder
from fastpong.show.groups import Group, Run

Lines = list[dict[str, Any]]

_TOLD = ("wall_s", "steps", "games", "score")
"""What is read of a stored run."""

_ABSENT = {"wall_s": 0, "steps_per_s": 0, "updates": 0, "point_rate": None}
"""What else a line has, and no curve needs."""


class X(NamedTuple):
    """The x axis: a key of a line of metrics, and the factor to the axis' unit."""

    key: str
    factor: float


def read_groups(
    paths: Sequence[Path], by: Sequence[str], x: X, levels: Sequence[float]
) -> tuple[list[Group], list[str]]:
    """Read groups of runs, and complaints about what is left out.

    A folder of run folders is a group, an arm of a stored file is one, and any other run stands alone. With `by`, names
    of settings, all runs that have folders are grouped by their values instead. `levels` are scores. Raises
    `UsageError` if nothing is left.
    """
    groups: dict[tuple[int, str], Group] = {}
    complaints: list[str] = []
    paths = list(dict.fromkeys(paths))
    for number, (path, name) in enumerate(zip(paths, names_of(paths), strict=True)):
        for run in _runs_in(path):
            try:
                source, title = number, name
                if by and os.path.isdir(run):
                    config = RunFolder(run).config()
                    source, title = -1, ", ".join(f"{key} {getattr(config, key)}" for key in by)
                for arm, one in list(_read(run, x, levels)):  # all of a file, or none
                    full = f"{title}, {arm}" if arm and len(paths) > 1 else arm or title
                    groups.setdefault((source, full), Group(full, [])).runs.append(one)
            except UsageError as error:
                complaints.append(str(error))
    if not groups:
        raise UsageError("; ".join(complaints))
    return list(groups.values()), complaints


def _runs_in(path: Path) -> list[Path]:
    """Return a run, or those of a folder of runs."""
    inside: list[Path] = []
    if os.path.isdir(path) and not os.path.exists(path / "metrics.jsonl"):
        inside = sorted(one.parent for one in path.glob("*/metrics.jsonl"))
    return inside or [path]


def _read(path: Path, x: X, levels: Sequence[float]) -> Iterator[tuple[str, Run]]:
    """Yield the run of a folder or a file, or all runs of a stored file, with the name of its arm if it has several."""
    file = path / "metrics.jsonl" if os.path.isdir(path) else path
    try:
        for arm, lines in _stored(file) if file.suffix == ".json" else [("", read_metrics(file))]:
            yield arm, _run(file, lines, x, levels)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(f"{file} is not a metrics.jsonl of fastpong") from None


def _run(file: Path, lines: Lines, x: X, levels: Sequence[float]) -> Run:
    if lines and x.key not in lines[0]:
        raise UsageError(f"{file} has no times: take --x steps")
    points = sorted((line[x.key] * x.factor, float(line["score"])) for line in lines if line["score"] is not None)
    if not points:
        raise UsageError(f"{file} has no score yet")
    # An agent that begins anew has no score at first.
    told = [line for line in lines if line["score"] is not None and line["games"] >= RECENT]
    means = [(line[x.key] * x.factor, line["score"]) for line in told]
    reached = {level: next((at for at, score in means if score >= level), None) for level in levels}
    return Run(points, {level: at for level, at in reached.items() if at is not None})


def _stored(path: Path) -> Iterator[tuple[str, Lines]]:
    """Yield the lines of each run of a file of ``bench/runs``, with its arm's name if there are several."""
    try:
        stored = json.loads(files.read(path, MAX_METRICS))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON") from None
    if "arms" in stored:
        arms = {arm: [*runs["seeds"].values()] for arm, runs in stored["arms"].items()}
    else:
        arms = {"": [run["lines"] for run in stored["seeds"].values()]}
    for arm, runs in arms.items():
        for rows in runs:
            lines = [dict(zip(stored["columns"], row, strict=True)) for row in rows]
            told = [{key: line[key] for key in _TOLD if key in line} for line in lines]
            for line in told:
                checked_line({**_ABSENT, **line})
            yield arm if len(arms) > 1 else "", told


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
