"""Which run, and whose weights, a command means."""

import contextlib
import os
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

from fastpong import files
from fastpong.arrays import Arrays
from fastpong.config import Config, changed, check
from fastpong.errors import UsageError
from fastpong.runs.checkpoint import CheckpointError
from fastpong.runs.facts import load_policy
from fastpong.runs.folder import CHANGEABLE, RunFolder

SHIPPED = Path(str(resources.files("fastpong") / "agent.npz"))
"""The trained agent that ships with the package; ``bench/research/ship_agent.py`` makes it."""


def weights_file(path: Path | None) -> Path:
    """Return the file with the weights that a path means: of a run folder its best; without a path the shipped ones."""
    if path is None or not path.is_dir():
        return path or SHIPPED
    run = RunFolder(path)
    return run.best if files.exists(run.best) else next(iter(run.checkpoints()), run.best)


def load_weights(path: Path | None) -> tuple[Config, Arrays]:
    """Load settings, and weights float32 by name, for playing: from a checkpoint, ``best.npz``, or a run folder.

    Of a run it is its best. Without a path it is the agent that ships with the package. Raises `CheckpointError`.
    """
    return load_policy(weights_file(path))


def newest_weights(run: RunFolder, after: int = -1) -> tuple[int, Config, Arrays] | None:
    """Load the newest weights of a run that trains, if they are of more steps than `after`: steps, settings, weights.

    Those that are damaged, or deleted meanwhile, are passed over.
    """
    for steps, path in run.weights():
        if steps <= after:
            break
        with contextlib.suppress(CheckpointError):
            return steps, *load_policy(path)
    return None


def create_run(path: Path | None, config: Config, about: Mapping[str, object]) -> RunFolder:
    """Make the folder of a new run; raises `UsageError`.

    Without a path it is the first of ``runs/PRESET-1``, ``-2``, … that is not there. Of several processes that begin at
    once each gets another one.
    """
    run = RunFolder(_free_folder(config.preset) if path is None else path)
    run.create(config, about)
    return run


def _free_folder(preset: str) -> Path:
    """Make an empty folder, so that nobody else gets it."""
    number = 0
    while True:
        number += 1
        path = Path("runs") / f"{preset}-{number}"
        try:
            files.make_folder(path.parent)
            os.mkdir(path)
            return path
        except FileExistsError:
            pass
        except OSError as error:
            raise UsageError(f"cannot make the run folder {path}: {error.strerror}") from None


def resumed_run(
    path: Path | None, changes: Mapping[str, object], note: Callable[[str], object] = lambda text: None
) -> tuple[Config, RunFolder]:
    """Return the settings of a run that goes on, with those changes that it allows, and its folder.

    Without a path it is the run in ``runs/`` that was begun last. `note` is told of settings that there are no longer.
    Raises `UsageError` if there is none, or if a change is not one of `CHANGEABLE`.
    """
    folder = RunFolder(path or _newest_run())
    settings = folder.config(note)
    for name, value in changes.items():
        if check(name, value) != getattr(settings, name) and name not in CHANGEABLE:
            raise UsageError(f"{name} is {getattr(settings, name)} in {folder.path} and cannot change to {value}")
    return changed(settings, {name: value for name, value in changes.items() if name in CHANGEABLE}), folder


def _newest_run() -> Path:
    configs = sorted(Path("runs").glob("*/config.toml"), key=lambda path: path.stat().st_mtime)
    if not configs:
        raise UsageError("there is no run in runs/: name one with --run DIR")
    return configs[-1].parent
