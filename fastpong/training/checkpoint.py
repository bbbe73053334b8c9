"""Arrays to a file and back: written whole or not at all, and checked when they are read."""

import contextlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fastpong import __version__
from fastpong.arrays import Arrays
from fastpong.errors import FastpongError

FORMAT = 2


class CheckpointError(FastpongError):
    """A checkpoint is missing, damaged or cannot be written."""


def save(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays and facts about them to an ``.npz`` file, atomically.

    The file appears under its name only when all of it is on the disk. Raises `CheckpointError`; whatever stood
    at `path` before is then still there.
    """
    text = json.dumps({"format": FORMAT, "fastpong": __version__, **about})
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
    """Read a file that `save` wrote.

    Raises `CheckpointError` if it is missing, damaged or of another version, or if weights in it are no numbers.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}  # reading an array checks its CRC
        about: dict[str, Any] = json.loads(str(arrays.pop("about")))
        if about["format"] != FORMAT:
            version = about.get("fastpong", "0.1")
            raise CheckpointError(f"{path} is of fastpong {version}, which reads it; this is fastpong {__version__}")
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}") from None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(f"{path} is damaged or not a checkpoint of fastpong ({error})") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name.startswith("policy.") and not np.isfinite(array).all():
            raise CheckpointError(f"{path} is damaged: {name} holds NaN or infinity")
    return arrays, about
