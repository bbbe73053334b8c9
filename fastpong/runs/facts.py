"""What the files of a run say, checked: here strangers' bytes become facts, weights and lines of metrics, or an error.

Who plays, draws, shows, chooses or goes on takes what these functions return, and nothing else of a file.
`fastpong.files.read` bounds the bytes and `fastpong.runs.checkpoint` the arrays; `fastpong.config` checks settings,
and `fastpong.runs.schema` the arrays that only training needs.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fastpong import files
from fastpong.arrays import Arrays
from fastpong.config import Config, make_config, settings
from fastpong.envs.engine import ENGINES
from fastpong.errors import UsageError
from fastpong.policy import checked_weights
from fastpong.pong import WINNING
from fastpong.runs.checkpoint import DamagedError, load
from fastpong.runs.metrics import METRICS

_MOST = 1 << 53
"""No number in a file is larger; JSON's are exact up to here."""

MAX_METRICS = 1 << 28
"""Bytes of a ``metrics.jsonl``: some half a million lines."""

_NEEDED = ("wall_s", "steps", "steps_per_s", "games", "score", "point_rate", "updates")
_NEEDED_WITH = {
    "batch_games": ("batch_s", "running_reward"),
    "window_reward": ("running_reward", "per_kup", "learning_rate"),
}
_COUNTS = ("steps", "games", "updates", "batch_games", "world_size", "replaced")
_MAYBE_NULL = ("score", "point_rate", "game_length", "running_reward", "entropy")


@dataclass(frozen=True)
class Facts:
    """What a checkpoint, a candidate or ``best.npz`` says beside its arrays.

    Attributes
    ----------
    config : Config
        The settings of its run. Those that it does not name, because they are newer, have their default; those that
        there are no longer are left out.
    steps, wall_s
        How far the run was.
    score, best_score : float, optional
        The score then, and the best one until then; None before the first game that counts.
    best_steps : int, optional
        The steps of the weights that were in ``best.npz`` then.
    engine : str
        What stepped the games.
    line : dict, optional
        The line of metrics that was written with it.
    chosen_from : tuple of int
        Of the best weights of a run that has ended: the steps of the candidates that played for it.
    newer : tuple of str
        Settings that it does not name.
    """

    config: Config
    steps: int
    wall_s: float = 0.0
    score: float | None = None
    best_score: float | None = None
    best_steps: int | None = None
    engine: str = "ale"  # before it was named, there was no other
    line: Mapping[str, Any] | None = None
    chosen_from: tuple[int, ...] = ()
    newer: tuple[str, ...] = ()

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "Facts":
        """Check what was read; raises `ValueError`, or `UsageError` for an impossible setting."""
        line, chosen_from = about.get("line"), about.get("chosen_from", [])
        if not isinstance(chosen_from, list):
            raise ValueError("chosen_from is no list")
        if (engine := about.get("engine", "ale")) not in ENGINES:
            raise ValueError("there is no such engine")
        return cls(
            _config(about),
            _count(about, "steps"),
            _number(about, "wall_s", 0.0, _MOST),
            _score(about, "score"),
            _score(about, "best_score"),
            None if about.get("best_steps") is None else _count(about, "best_steps"),
            engine,
            None if line is None else checked_line(line),
            tuple(_count({"chosen_from": steps}, "chosen_from") for steps in chosen_from),
            tuple(name for name in settings() if name not in about["config"]),
        )

    def about(self) -> dict[str, Any]:
        """Return what `of` reads, as JSON has it."""
        return {name: value for name, value in asdict(self).items() if name != "newer"}


def _config(about: Mapping[str, Any]) -> Config:
    saved = about.get("config")
    if not isinstance(saved, dict):
        raise ValueError("it does not tell its settings")
    known = {name: saved[name] for name in settings() if name in saved}
    return make_config(str(known.pop("preset", "")), known)


def load_facts(path: Path) -> tuple[Arrays, Facts]:
    """Read a file that a run has saved: its arrays, and what it says of itself. Raises `CheckpointError`."""
    arrays, about = load(path)
    try:
        return arrays, Facts.of(about)
    except (ValueError, UsageError) as error:
        raise DamagedError(f"{path} is not a checkpoint of this fastpong ({error})") from None


def load_policy(path: Path) -> tuple[Config, Arrays]:
    """Read what it takes to play, of a file that may say nothing else: settings, and weights float32 by name.

    Raises `CheckpointError`.
    """
    arrays, about = load(path)
    try:
        config = _config(about)
    except (ValueError, UsageError) as error:
        raise DamagedError(f"{path} is not a checkpoint of this fastpong ({error})") from None
    return config, policy_weights(path, arrays, config)


def policy_weights(path: Path, arrays: Arrays, config: Config) -> Arrays:
    """Return the weights of the policy, float32 by name, from the arrays of a file; raises `CheckpointError`."""
    weights = {name.removeprefix("policy."): array for name, array in arrays.items() if name.startswith("policy.")}
    try:
        return checked_weights(config, weights)
    except ValueError as error:
        raise DamagedError(f"{path} is damaged: {error}") from None


def parse_metrics(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Read a ``metrics.jsonl``: its lines, and the numbers of damaged ones. Raises `UsageError` if it cannot be read.

    A last line that a crash cut short is neither.
    """
    try:
        texts = files.read(path, MAX_METRICS).splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    lines, bad = [], []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            if number == len(texts):
                break
            line = None
        try:
            lines.append(checked_line(line))
        except ValueError:
            bad.append(number)
    return lines, bad


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Lines of a ``metrics.jsonl``; raises `UsageError` also if one is damaged."""
    lines, bad = parse_metrics(path)
    if bad:
        raise UsageError(f"{path} is not a metrics.jsonl of fastpong: see line {bad[0]}")
    return lines


def checked_line(line: object) -> dict[str, Any]:
    """Return a line of metrics if all that is known in it is what `METRICS` says; raises `ValueError`."""
    if not isinstance(line, dict):
        raise ValueError("a line is no object")
    more = {name for key, names in _NEEDED_WITH.items() if key in line for name in names}
    for name in {*_NEEDED, *more, *(METRICS.keys() & line.keys())}:
        if name in line and line[name] is None and name in _MAYBE_NULL and name not in more:
            continue
        if name == "phase":
            if line[name] not in ("early", "late"):
                raise ValueError("there is no such phase")
        elif name in _COUNTS:
            _count(line, name, low=name == "steps")
        else:
            _number(line, name, -_MOST, _MOST)
    return line


def _score(values: Mapping[str, Any], name: str) -> float | None:
    return None if values.get(name) is None else _number(values, name, -WINNING, WINNING)


def _number(values: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:  # nor is NaN
        raise ValueError(f"{name} is no number from {low:g} to {high:g}")
    return value


def _count(values: Mapping[str, Any], name: str, low: int = 0) -> int:
    if not isinstance(values.get(name), int):
        raise ValueError(f"{name} is no count")
    return int(_number(values, name, low, _MOST))
