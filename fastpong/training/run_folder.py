"""A run's folder: which one a command means, its files, its lock, and the weights to play with.

It holds ``config.toml`` (all settings and the versions they ran with), ``metrics.jsonl``, ``checkpoints/``,
``candidates/`` (weights that may turn out to be the best) and ``best.npz``.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from fastpong import files
from fastpong.arrays import Arrays
from fastpong.config import Config, changed, check, make_config
from fastpong.config_sources import read_toml, to_toml
from fastpong.errors import UsageError
from fastpong.training.checkpoint import CheckpointError, NoCheckpointError, load, save
from fastpong.training.owner import Owner

SHIPPED = Path(str(resources.files("fastpong") / "agent.npz"))
"""The trained agent that ships with the package; ``bench/research/ship_agent.py`` makes it."""

CHANGEABLE = ("target_score", "log_interval", "checkpoint_interval", "eval_games")
"""What a resumed run may change: nothing that its results depend on."""

_LEFT = re.compile(r"\.(config\.toml|metrics(\.bad)?\.jsonl|best\.npz|step_\d+\.npz)\.\d+\.tmp")
"""Names of our own files that a killed process left half written, see `fastpong.files.write`."""

CANDIDATES, CHECKPOINTS = 3, 2
"""Weights kept of a run, beside those of its end; and checkpoints kept."""


class RunFolder:
    """The files of one run, in the folder `path`, which `create` makes."""

    def __init__(self, path: Path):
        self.path = path
        self.best = path / "best.npz"
        self.metrics = path / "metrics.jsonl"
        self._config = path / "config.toml"
        self._owner = Owner(path)
        self._checkpoints = path / "checkpoints"
        self._candidates = path / "candidates"

    def exists(self) -> bool:
        """Whether a run was started here."""
        return self._config.exists()

    def create(self, config: Config, about: Mapping[str, object]) -> None:
        """Make the folder and write its ``config.toml``; raises `UsageError` where there is a run or anything else."""
        if self.exists():
            raise UsageError(f"{self.path} holds a run already: continue it with --resume, or choose another --run")
        try:
            if self.path.exists() and (others := [one for one in self._others() if one != self._checkpoints]):
                raise UsageError(f"{self.path} holds other files, as {others[0].name!r}: choose a new --run")
            files.make_folder(self._checkpoints)
            files.write(self._config, to_toml(config, about).encode("utf-8", "replace"))
        except OSError as error:
            raise UsageError(f"cannot make the run folder {self.path}: {error.strerror}") from None

    def config(self) -> Config:
        """Read the settings back; raises `UsageError` where there is no run, or one of another version."""
        if not self.exists():
            raise UsageError(f"there is no run in {self.path}: start one without --resume")
        changes, _ = read_toml(self._config)
        return make_config(str(changes.pop("preset", "fast")), changes)

    @contextlib.contextmanager
    def lock(self, note: Callable[[str], object] = lambda text: None) -> Iterator[None]:
        """Keep other trainings out, see `Owner.hold`, and delete what a killed one left half written.

        From then on each method that writes raises `CheckpointError` once this is another folder than before.
        """
        with self._owner.hold(note):
            for folder in (self.path, self._checkpoints, self._candidates):
                if folder.is_dir() and not folder.is_symlink():
                    for left in folder.iterdir():
                        if _LEFT.fullmatch(left.name):
                            files.delete(left)
            yield

    def is_ours(self) -> bool:
        """Whether the folder is still there, and the one that was locked."""
        return self.path.exists() and self._owner.is_ours()

    def _others(self) -> list[Path]:
        """Return what is in the folder, but for what a killed process left half written."""
        return sorted(one for one in self.path.iterdir() if not _LEFT.fullmatch(one.name))

    def checkpoints(self) -> list[Path]:
        """Checkpoints, newest first."""
        return sorted(self._checkpoints.glob("step_*.npz"), reverse=True)

    def save_checkpoint(self, steps: int, arrays: Arrays, about: Mapping[str, Any]) -> Path:
        """Save a checkpoint and delete the oldest ones beyond `CHECKPOINTS`; raises `CheckpointError`.

        On a full disk candidates make room for it.
        """
        self._owner.check()
        path = self._checkpoints / f"step_{steps:012d}.npz"
        try:
            save(path, arrays, about)
        except CheckpointError as error:
            if not (error.is_disk_full and self.candidates()):
                raise
            for candidate in self.candidates():
                files.delete(candidate)
            save(path, arrays, about)
        for old in self.checkpoints()[CHECKPOINTS:]:
            files.delete(old)
        return path

    def save_best(self, arrays: Arrays, about: Mapping[str, Any]) -> None:
        """Write ``best.npz``; raises `CheckpointError`, and then the one of before is intact."""
        self._owner.check()
        save(self.best, arrays, about)

    def candidates(self) -> list[Path]:
        """Weights that may be the best of the run, in the order of their steps."""
        return sorted(self._candidates.glob("step_*.npz"))

    def add_candidate(self, steps: int, arrays: Arrays, about: Mapping[str, Any]) -> None:
        """Keep weights as a candidate: the newest always, and of the others the `CANDIDATES` with the best score.

        ``about["score"]`` is the score (None: the worst). Raises `CheckpointError`.
        """
        self._owner.check()
        with contextlib.suppress(OSError):  # then saving fails, too
            files.make_folder(self._candidates)
        save(self._candidates / f"step_{steps:012d}.npz", arrays, about)
        scores: dict[Path, float] = {}
        for path in self.candidates()[:-1]:
            try:
                score = load(path)[1]["score"]
            except CheckpointError:
                score = None  # the first to go
            scores[path] = -22.0 if score is None else score
        for path in sorted(scores, key=lambda path: scores[path])[: max(0, len(scores) - CANDIDATES)]:
            files.delete(path)

    def newest(
        self, check: Callable[[Arrays, dict[str, Any]], None] = lambda arrays, about: None
    ) -> tuple[Arrays, dict[str, Any], list[str]]:
        """Load the newest good checkpoint: arrays, facts, and complaints, which say what newer ones are damaged.

        `check` raises `CheckpointError` for one that cannot be used. Raises it if none is good.
        """
        complaints: list[str] = []
        for path in self.checkpoints():
            try:
                arrays, about = load(path)
                check(arrays, about)
                return arrays, about, complaints
            except CheckpointError as error:
                complaints.append(str(error))
        detail = f" ({'; '.join(complaints)})" if complaints else ""
        raise NoCheckpointError(f"{self.path} has no checkpoint to continue from{detail}: start a new run")

    def check_settings(self, config: Config, saved: Mapping[str, Any]) -> None:
        """Raise `UsageError` if settings are not those of a checkpoint: someone has edited ``config.toml``."""
        for name, value in asdict(config).items():
            if name not in CHANGEABLE and value != saved.get(name):
                raise UsageError(
                    f"{name} is {value} in {self._config}, but {saved.get(name)} in the run: write that there"
                )

    def cut_metrics(self, steps: int) -> tuple[dict[str, Any] | None, list[str]]:
        """Delete the lines of ``metrics.jsonl`` later than the checkpoint to continue from.

        Returns the last one that is left, and complaints: a damaged file is kept beside the mended one. Raises
        `CheckpointError`.
        """
        self._owner.check()
        if not self.metrics.exists():
            return None, []
        lines, bad = parse_metrics(self.metrics)
        kept = [line for line in lines if line["steps"] <= steps]
        complaints = []
        try:
            if bad:
                damaged = self.metrics.with_name("metrics.bad.jsonl")
                files.write(damaged, self.metrics.read_bytes())
                complaints = [
                    f"{self.metrics} has damaged lines ({len(bad)}): they are left out, and kept in {damaged.name}"
                ]
            files.write(self.metrics, "".join(json.dumps(line) + "\n" for line in kept).encode())
        except OSError as error:
            raise CheckpointError(f"cannot write {self.metrics}: {error.strerror}") from None
        return kept[-1] if kept else None, complaints

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``; raises `CheckpointError`."""
        self._owner.check()
        try:
            files.append(self.metrics, f"{json.dumps(line)}\n".encode())
        except OSError as error:
            raise CheckpointError(f"cannot write {self.metrics}: {error.strerror}") from None


def parse_metrics(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Read a ``metrics.jsonl``: its lines, and the numbers of damaged ones. Raises `UsageError` if it cannot be read.

    A last line that a crash cut short is neither.
    """
    try:
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
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
        if isinstance(line, dict) and isinstance(line.get("steps"), int):
            lines.append(line)
        else:
            bad.append(number)
    return lines, bad


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Lines of a ``metrics.jsonl``; raises `UsageError` also if one is damaged."""
    lines, bad = parse_metrics(path)
    if bad:
        raise UsageError(f"{path} is not a metrics.jsonl of fastpong: see line {bad[0]}")
    return lines


def policy_weights(arrays: Arrays) -> Arrays:
    """Return the weights of the policy, by name, from the arrays of a checkpoint."""
    return {name.removeprefix("policy."): array for name, array in arrays.items() if name.startswith("policy.")}


def load_weights(path: Path | None) -> tuple[Config, Arrays]:
    """Load settings and weights for playing: from a checkpoint, ``best.npz``, or a run folder (its best).

    Without a path it is the agent that ships with the package. Raises `CheckpointError`.
    """
    path = path or SHIPPED
    if path.is_dir():
        run = RunFolder(path)
        path = run.best if run.best.exists() else next(iter(run.checkpoints()), run.best)
    arrays, about = load(path)
    try:
        changes = dict(about["config"])
        return make_config(changes.pop("preset"), changes), policy_weights(arrays)
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise CheckpointError(f"{path} is not a checkpoint of this fastpong ({error})") from None


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
