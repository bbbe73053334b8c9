"""Checkpoints and run folders: written whole or not at all, and checked when they are read.

A run folder holds ``config.toml`` (all settings and the versions they ran with), ``metrics.jsonl``,
``checkpoints/``, ``candidates/`` (weights that may turn out to be the best) and ``best.npz``.
"""

import contextlib
import fcntl
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config, make_config, read_toml, settings, to_toml
from fastpong.errors import FastpongError, UsageError

Arrays = dict[str, npt.NDArray[Any]]
FORMAT = 1
SHIPPED = Path(__file__).parent / "agent.npz"
"""The trained agent that ships with the package; ``bench/ship_agent.py`` makes it."""


class CheckpointError(FastpongError):
    """A checkpoint is missing, damaged or cannot be written."""


def save(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays and facts about them to an ``.npz`` file, atomically.

    The file appears under its name only when all of it is on the disk. Raises `CheckpointError`; whatever stood
    at `path` before is then still there.
    """
    text = json.dumps({"format": FORMAT, **about})
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, about=np.array(text), **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise CheckpointError(
            f"cannot save {path}: {error.strerror or error}; what was saved before is intact"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def load(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save` wrote; raises `CheckpointError` if it is missing, damaged or not ours."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}  # reading an array checks its CRC
        about: dict[str, Any] = json.loads(str(arrays.pop("about")))
        if about["format"] != FORMAT:
            raise CheckpointError(f"{path} has format {about['format']}; this fastpong reads format {FORMAT}")
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}") from None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(f"{path} is damaged or not a checkpoint of fastpong ({error})") from None
    return arrays, about


def load_weights(path: Path | None) -> tuple[Config, Arrays]:
    """Load settings and weights for playing: from a checkpoint, ``best.npz``, or a run folder (its best).

    Without a path it is the agent that ships with the package.
    """
    path = path or SHIPPED
    if path.is_dir():
        run = RunFolder(path)
        path = run.best if run.best.exists() else next(iter(run.checkpoints()), run.best)
    arrays, about = load(path)
    try:
        weights = {name.removeprefix("policy."): array for name, array in arrays.items() if name.startswith("policy.")}
        known = settings()  # those of another version may be gone: what they did to training is done
        changes = {name: value for name, value in about["config"].items() if name in known}
        return make_config(changes.pop("preset"), changes), weights
    except (KeyError, TypeError, UsageError) as error:
        raise CheckpointError(f"{path} is not a checkpoint of this fastpong ({error})") from None


class RunFolder:
    """The files of one run.

    Parameters
    ----------
    path : Path
        The folder; `create` makes it.
    """

    def __init__(self, path: Path):
        self.path = path
        self.best = path / "best.npz"
        self.metrics = path / "metrics.jsonl"
        self._config = path / "config.toml"
        self._checkpoints = path / "checkpoints"
        self._candidates = path / "candidates"
        self._metrics_file: IO[str] | None = None

    def exists(self) -> bool:
        """Whether a run was started here."""
        return self._config.exists()

    def create(self, config: Config, about: Mapping[str, object]) -> None:
        """Make the folder and write its ``config.toml``; raises `UsageError` where there is a run already."""
        if self.exists():
            raise UsageError(f"{self.path} holds a run already: continue it with --resume, or choose another --run")
        try:
            self._checkpoints.mkdir(parents=True, exist_ok=True)
            self._config.write_text(to_toml(config, about))
        except OSError as error:
            raise UsageError(f"cannot make the run folder {self.path}: {error.strerror}") from None

    def config(self) -> Config:
        """Read the settings back; raises `UsageError` where there is no run."""
        if not self.exists():
            raise UsageError(f"there is no run in {self.path}: start one without --resume")
        changes, _ = read_toml(self._config)
        return make_config(str(changes.pop("preset", "fast")), changes)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other trainings out of this folder; raises `UsageError` if one is under way."""
        with self._config.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"another fastpong is training in {self.path}: stop it, or choose another --run"
                ) from None
            yield

    def checkpoints(self) -> list[Path]:
        """Checkpoints, newest first."""
        return sorted(self._checkpoints.glob("step_*.npz"), reverse=True)

    def save_checkpoint(self, steps: int, keep: int, arrays: Arrays, about: Mapping[str, Any]) -> Path:
        """Save a checkpoint and delete the oldest ones beyond `keep`; raises `CheckpointError`."""
        path = self._checkpoints / f"step_{steps:012d}.npz"
        save(path, arrays, about)
        for old in self.checkpoints()[keep:]:
            old.unlink(missing_ok=True)
        return path

    def candidates(self) -> list[Path]:
        """Weights that may be the best of the run, in the order of their steps."""
        return sorted(self._candidates.glob("step_*.npz"))

    def add_candidate(self, steps: int, keep: int, arrays: Arrays, about: Mapping[str, Any]) -> None:
        """Keep weights as a candidate: the newest always, and of the others the `keep` with the best score.

        ``about["score"]`` is the score (None: the worst). Raises `CheckpointError`.
        """
        self._candidates.mkdir(exist_ok=True)
        save(self._candidates / f"step_{steps:012d}.npz", arrays, about)
        scores: dict[Path, float] = {}
        for path in self.candidates()[:-1]:
            try:
                score = load(path)[1]["score"]
            except CheckpointError:
                score = None  # it lost its chance
            scores[path] = -22.0 if score is None else score
        for path in sorted(scores, key=lambda path: scores[path])[: max(0, len(scores) - keep)]:
            path.unlink(missing_ok=True)

    def newest(self) -> tuple[Arrays, dict[str, Any], list[str]]:
        """Load the newest good checkpoint.

        Returns
        -------
        (arrays, about, complaints)
            The complaints say which newer ones were damaged.

        Raises
        ------
        CheckpointError
            If none can be read.
        """
        complaints: list[str] = []
        for path in self.checkpoints():
            try:
                return *load(path), complaints
            except CheckpointError as error:
                complaints.append(str(error))
        detail = f" ({'; '.join(complaints)})" if complaints else ""
        raise CheckpointError(f"{self.path} has no checkpoint to continue from{detail}: start a new run")

    def cut_metrics(self, steps: int) -> None:
        """Forget the lines of ``metrics.jsonl`` that are later than the checkpoint to continue from."""
        if self.metrics.exists():
            kept = [line for line in read_metrics(self.metrics) if line["steps"] <= steps]
            temporary = self.metrics.with_suffix(".tmp")
            temporary.write_text("".join(json.dumps(line) + "\n" for line in kept))
            temporary.replace(self.metrics)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``; raises `CheckpointError`."""
        try:
            if self._metrics_file is None:
                self._metrics_file = self.metrics.open("a")
            self._metrics_file.write(json.dumps(line) + "\n")
            self._metrics_file.flush()
        except OSError as error:
            raise CheckpointError(f"cannot write {self.metrics}: {error.strerror}") from None

    def close(self) -> None:
        """Close ``metrics.jsonl``."""
        if self._metrics_file is not None:
            with contextlib.suppress(OSError):
                self._metrics_file.close()
            self._metrics_file = None


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Lines of a ``metrics.jsonl``; a last line that a crash cut short is left out. Raises `UsageError`."""
    try:
        texts = path.read_text().splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            if number < len(texts):
                raise UsageError(f"{path}, line {number}, is not JSON") from None
    return lines
