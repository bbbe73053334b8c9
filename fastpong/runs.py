"""Which settings and which run folder a ``train`` command means."""

from collections.abc import Mapping
from pathlib import Path

from fastpong.checkpoint import RunFolder
from fastpong.config import Config, changed, check, make_config
from fastpong.errors import UsageError

CHANGEABLE = ("target", "log_steps", "checkpoint_steps", "keep_checkpoints", "eval_games")
"""What a resumed run may change: nothing that its results depend on."""


def new_run(path: Path | None, changes: Mapping[str, object]) -> tuple[Config, RunFolder]:
    """Return the settings of a new run, with changes to its preset, and its folder, which is not created yet.

    Without a path it is the first of ``runs/PRESET-1``, ``-2``, … that is not there. Raises `UsageError`.
    """
    settings = make_config(str(changes.get("preset", "fast")), {k: v for k, v in changes.items() if k != "preset"})
    number = 1
    while path is None and (Path("runs") / f"{settings.preset}-{number}").exists():
        number += 1
    return settings, RunFolder(path or Path("runs") / f"{settings.preset}-{number}")


def resumed_run(path: Path | None, changes: Mapping[str, object]) -> tuple[Config, RunFolder]:
    """Return the settings of a run that goes on, with those changes that it allows, and its folder.

    Without a path it is the run in ``runs/`` that was begun last. Raises `UsageError` if there is none, or if a change
    is not one of `CHANGEABLE`.
    """
    folder = RunFolder(path or _newest_run())
    settings = folder.config()
    for name, value in changes.items():
        if check(name, value) != getattr(settings, name) and name not in CHANGEABLE:
            raise UsageError(f"{name} is {getattr(settings, name)} in {folder.path} and cannot change to {value}")
    return changed(settings, {name: value for name, value in changes.items() if name in CHANGEABLE}), folder


def _newest_run() -> Path:
    configs = sorted(Path("runs").glob("*/config.toml"), key=lambda path: path.stat().st_mtime)
    if not configs:
        raise UsageError("there is no run in runs/: name one with --run DIR")
    return configs[-1].parent
