"""A run's folder: its files, who may write them, and what of them is kept.

It holds ``config.toml`` (all settings and the versions they ran with), ``metrics.jsonl``, ``checkpoints/``,
``candidates/`` (weights that may turn out to be the best), ``history/`` (weights from the way) and ``best.npz``. A name
that is not ours is not touched.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fastpong import files
from fastpong.arrays import Arrays
from fastpong.config import Config, make_config, settings
from fastpong.config_sources import read_toml, to_toml
from fastpong.errors import UsageError
from fastpong.runs.checkpoint import (
    CheckpointError,
    DamagedError,
    DiskFullError,
    NoCheckpointError,
    file_name,
    load,
    save,
    saved_in,
    steps_of,
)
from fastpong.runs.facts import Facts, load_facts, parse_metrics
from fastpong.runs.history import History
from fastpong.runs.owner import Owner

CHANGEABLE = ("target_score", "log_interval", "checkpoint_interval", "eval_games")
"""What a resumed run may change: nothing that its results depend on."""

_LEFT = re.compile(r"\.(config\.toml|metrics(\.bad)?\.jsonl|best\.npz|step_\d+\.npz)\.\d+\.tmp")
"""Names of our own files that a killed process left half written, see `fastpong.files.write`."""

CANDIDATES, CHECKPOINTS = 3, 2
"""Weights kept of a run, beside those of its end; and checkpoints kept."""


class Newest(NamedTuple):
    """The newest good checkpoint of a run; of newer ones that are none, the complaint by path."""

    arrays: Arrays
    facts: Facts
    complaints: dict[Path, CheckpointError]


class RunFolder:
    """The files of one run, in the folder `path`, which `create` makes; those of its way are in `history`."""

    def __init__(self, path: Path):
        self.path = path
        self.best = path / "best.npz"
        self.metrics = path / "metrics.jsonl"
        self._config = path / "config.toml"
        self._owner = Owner(path)
        self._checkpoints = path / "checkpoints"
        self._candidates = path / "candidates"
        self.history = History(path / "history", self._owner)
        self._good: list[int] = []  # steps of the checkpoints that this process has read or written, newest first

    def exists(self) -> bool:
        """Whether a run was started here."""
        return files.exists(self._config)

    def create(self, config: Config, about: Mapping[str, object]) -> None:
        """Make the folder and write its ``config.toml``; raises `UsageError` where there is a run or anything else."""
        if self.exists():
            raise UsageError(f"{self.path} holds a run already: continue it with --resume, or choose another --run")
        try:
            if files.exists(self.path) and (others := [one for one in self._others() if one != self._checkpoints]):
                raise UsageError(f"{self.path} holds other files, as {others[0].name!r}: choose a new --run")
            files.make_folder(self._checkpoints)
            files.write(self._config, to_toml(config, about).encode("utf-8", "replace"))
        except OSError as error:
            raise UsageError(f"cannot make the run folder {self.path}: {error.strerror}") from None

    def config(self, note: Callable[[str], object] = lambda text: None) -> Config:
        """Read the settings back; `note` is told of those that there are no longer.

        Raises `UsageError` where there is no run, or one of another version.
        """
        if not self.exists():
            raise UsageError(f"there is no run in {self.path}: start one without --resume")
        changes, _ = read_toml(self._config, note)
        return make_config(str(changes.pop("preset", "fast")), changes)

    @contextlib.contextmanager
    def lock(self, note: Callable[[str], object] = lambda text: None) -> Iterator[None]:
        """Keep other trainings out, see `Owner.hold`, and delete what a killed one left half written.

        From then on each method that writes raises `CheckpointError` once this is another folder than before. Raises
        `UsageError` if part of it is somewhere else.
        """
        with self._owner.hold(note):
            for folder in (self.path, self._checkpoints, self._candidates, self.path / "history"):
                if folder != self.path and folder.is_symlink():
                    raise UsageError(f"{folder} is a link: a run writes into folders of its own only, so remove it")
                for left in folder.iterdir() if folder.is_dir() else ():
                    if _LEFT.fullmatch(left.name):
                        files.delete(left)
            yield

    def is_ours(self) -> bool:
        """Whether the folder is still there, and the one that was locked."""
        return files.exists(self.path) and self._owner.is_ours()

    def is_training(self) -> bool:
        """Whether a process trains here; also where it cannot be told, see `Owner.is_held`."""
        return self._owner.is_held()

    def _others(self) -> list[Path]:
        """Return what is in the folder, but for what a killed process left half written."""
        return sorted(one for one in self.path.iterdir() if not _LEFT.fullmatch(one.name))

    def checkpoints(self) -> list[Path]:
        """Checkpoints, newest first."""
        return saved_in(self._checkpoints)[::-1]

    def candidates(self) -> list[Path]:
        """Weights that may be the best of the run, in the order of their steps."""
        return saved_in(self._candidates)

    def weights(self) -> list[tuple[int, Path]]:
        """Return steps and file of all weights saved on the way, the newest first; a checkpoint is a larger file."""
        saved = [*self.history.paths(), *self.candidates(), *self.checkpoints()]
        return sorted(((steps_of(path), path) for path in saved), key=lambda one: one[0], reverse=True)

    def newest(self, check: Callable[[Arrays, Facts], None] = lambda arrays, facts: None) -> Newest:
        """Load the newest good checkpoint.

        `check` raises `CheckpointError` for one that cannot be used. Raises `NoCheckpointError` if none is good.
        """
        complaints: dict[Path, CheckpointError] = {}
        for path in self.checkpoints():
            try:
                arrays, facts = load_facts(path)
                check(arrays, facts)
                return Newest(arrays, facts, complaints)
            except CheckpointError as error:
                complaints[path] = error
        detail = f" ({'; '.join(map(str, complaints.values()))})" if complaints else ""
        raise NoCheckpointError(f"{self.path} has no checkpoint to continue from{detail}: start a new run")

    def go_on_from(self, newest: Newest) -> None:
        """Write what this checkpoint's session was killed before; damaged newer ones get another name.

        That keeps them, but they count no more. Later weights of the history go. Raises `CheckpointError`.
        """
        with self._owner.writing():
            for path, error in newest.complaints.items():
                if isinstance(error, DamagedError):
                    files.rename(path, path.with_name(f"{path.name}.damaged"))
            steps, facts = newest.facts.steps, newest.facts
            self._good = [steps]
            for older in self.checkpoints():
                if steps_of(older) < steps and len(self._good) < CHECKPOINTS:
                    with contextlib.suppress(CheckpointError):
                        load(older)
                        self._good.append(steps_of(older))
            self._delete_older()
            self.history.drop_after(steps)
            weights = {name: array for name, array in newest.arrays.items() if name.startswith("policy.")}
            if not files.exists(self.best) or (facts.best_steps == steps and not self._is_best_since(steps)):
                self.save_best(weights, facts)
            if self._candidates / file_name(steps) not in self.candidates():
                self.add_candidate(weights, facts)
            self._drop_candidates()

    def _is_best_since(self, steps: int) -> bool:
        with contextlib.suppress(CheckpointError):
            best = load_facts(self.best)[1]
            return best.steps == steps or steps in best.chosen_from
        return False

    def save_checkpoint(self, arrays: Arrays, facts: Facts) -> Path:
        """Save a checkpoint, and delete what is older than the `CHECKPOINTS` newest that are known to be good.

        On a full disk older ones, then the history, and then candidates are deleted before, if that makes room for it.
        Raises `CheckpointError`.
        """
        with self._owner.writing():
            path, spare = self._checkpoints / file_name(facts.steps), None
            while True:
                try:
                    save(path, arrays, facts.about())
                    break
                except DiskFullError as error:
                    spare = self._spare(error.size) if spare is None else spare
                    if not spare:
                        raise
                    files.delete(spare.pop(0))
            self._good = [facts.steps, *(steps for steps in self._good if steps != facts.steps)][:CHECKPOINTS]
            self._delete_older()
            return path

    def _delete_older(self) -> None:
        if len(self._good) == CHECKPOINTS:
            for path in self.checkpoints():
                if steps_of(path) < self._good[-1]:
                    files.delete(path)

    def _spare(self, size: int) -> list[Path]:
        """Return what could make room for a file of so many bytes, what matters least first; nothing if it cannot."""
        spare = [path for path in reversed(self.checkpoints()) if self._good and steps_of(path) < self._good[0]]
        spare += [*self.history.paths(), *self._worst_first(self.candidates())]
        free = files.room(self.path)
        free = free if free < size else 0  # it is a quota that is used up, and nobody tells how large it is
        return spare if free + sum(path.stat().st_size for path in spare) >= size else []

    def save_best(self, arrays: Arrays, facts: Facts, **more: Any) -> None:
        """Write ``best.npz``, with `more` facts; raises `CheckpointError`, and then the one of before is intact."""
        with self._owner.writing():
            save(self.best, arrays, {**replace(facts, line=None).about(), **more})

    def add_candidate(self, arrays: Arrays, facts: Facts) -> None:
        """Keep weights as a candidate: the newest always, and of the others the `CANDIDATES` with the best score.

        Raises `CheckpointError`.
        """
        with self._owner.writing():
            with contextlib.suppress(OSError):  # then saving fails, too
                files.make_folder(self._candidates)
            save(self._candidates / file_name(facts.steps), arrays, replace(facts, line=None).about())
            self._drop_candidates()

    def _drop_candidates(self) -> None:
        others = self.candidates()[:-1]
        for path in self._worst_first(others)[: max(0, len(others) - CANDIDATES)]:
            files.delete(path)

    @staticmethod
    def _worst_first(candidates: list[Path]) -> list[Path]:
        """Sort by score; without one, or damaged: the first to go."""
        scores: dict[Path, float] = {}
        for path in candidates:
            score = None
            with contextlib.suppress(CheckpointError):
                score = load_facts(path)[1].score
            scores[path] = -22.0 if score is None else score
        return sorted(candidates, key=lambda path: scores[path])

    def check_settings(self, config: Config, saved: Config) -> None:
        """Raise `UsageError` if settings are not those of a checkpoint: someone has edited ``config.toml``."""
        for name in settings():
            ours, theirs = getattr(config, name), getattr(saved, name)
            if name not in CHANGEABLE and ours != theirs:
                raise UsageError(f"{name} is {ours} in {self._config}, but {theirs} in the run: write that there")

    def cut_metrics(self, steps: int, last: Mapping[str, Any] | None = None) -> tuple[dict[str, Any] | None, list[str]]:
        """Delete the lines of ``metrics.jsonl`` later than the checkpoint to continue from, whose line is `last`.

        Returns the last one that is left, and complaints: a damaged file is kept beside the mended one. Raises
        `CheckpointError`.
        """
        with self._owner.writing():
            lines, bad = parse_metrics(self.metrics) if files.exists(self.metrics) else ([], [])
            kept = [line for line in lines if line["steps"] <= steps]
            if last and not any(line["steps"] == last["steps"] for line in kept):
                kept.append(dict(last))
            complaints = []
            try:
                if bad:
                    damaged = self.metrics.with_name("metrics.bad.jsonl")
                    files.write(damaged, self.metrics.read_bytes())
                    complaints = [
                        f"{self.metrics} has damaged lines ({len(bad)}): they are left out, and kept in {damaged.name}"
                    ]
                if kept or files.exists(self.metrics):
                    files.write(self.metrics, "".join(json.dumps(line) + "\n" for line in kept).encode())
            except OSError as error:
                raise CheckpointError(f"cannot write {self.metrics}: {error.strerror}") from None
            return kept[-1] if kept else None, complaints

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``; raises `CheckpointError`."""
        with self._owner.writing():
            try:
                files.append(self.metrics, f"{json.dumps(line)}\n".encode())
            except OSError as error:
                raise CheckpointError(f"cannot write {self.metrics}: {error.strerror}") from None
