"""Arrays to a file and back: written whole or not at all, and refused unless they are exactly what was written.

A file is an ``.npz``, a zip archive of ``.npy`` members, with a digest of all its other bytes as the archive's comment.
A stranger's file may have a right digest: sizes are compared before anything is allocated, nothing is unpickled, and
what is unpacked is bounded.
"""

import errno
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from fastpong import __version__, files
from fastpong.arrays import DIGEST, Arrays, digest
from fastpong.errors import FastpongError

FORMAT = 3

_MAX_FILE = 1 << 30
_MAX_UNPACKED = 1 << 25  # bytes of all members, if one is compressed, as those of the shipped agent are
_KINDS = "biufU"  # numbers and text, no objects

_SAVED = re.compile(r"step_(\d{12})\.npz")
"""Names of checkpoints, candidates and weights of the history, with their steps."""


def file_name(steps: int) -> str:
    """Return the name of what is saved after so many steps."""
    return f"step_{steps:012d}.npz"


def steps_of(path: Path) -> int:
    """Return the steps in such a name."""
    match = _SAVED.fullmatch(path.name)
    assert match
    return int(match[1])


def saved_in(folder: Path) -> list[Path]:
    """Return the files of such names in a folder, in the order of their steps."""
    return sorted(path for path in folder.glob("step_*.npz") if _SAVED.fullmatch(path.name))


class CheckpointError(FastpongError):
    """A file of a run is missing, damaged or cannot be written."""


class DamagedError(CheckpointError):
    """A file was read, and is not what a run of this version has written."""


class DiskFullError(CheckpointError):
    """A file of so many bytes, `size`, does not fit on the disk, or into what the user may have of it."""

    size = 0


class NoCheckpointError(CheckpointError):
    """A run has no good checkpoint to go on from."""


def save(path: Path, arrays: Arrays, about: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write arrays and facts about them to an ``.npz`` file, atomically.

    The file appears under its name only when all of it is on the disk. Raises `CheckpointError`; whatever stood
    at `path` before is then still there.
    """
    text = json.dumps({**about, "format": FORMAT, "fastpong": __version__})
    write = np.savez_compressed if compressed else np.savez
    buffer = io.BytesIO()
    write(buffer, about=np.array(text), **arrays)  # type: ignore[arg-type]
    data = _sealed(buffer.getbuffer())
    try:
        files.write(path, data)
    except OSError as error:
        message = f"cannot save {path}: {error.strerror or error}"
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise CheckpointError(message) from None
        full = DiskFullError(message)
        full.size = len(data)
        raise full from None


def load(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read a file that `save` wrote.

    Raises `CheckpointError` if it is missing or of another version, `DamagedError` if it is damaged.
    """
    try:
        data = files.read(path, _MAX_FILE)
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.comment and archive.comment != digest(data[:-DIGEST]):
                raise ValueError("its digest is another one")
            arrays = _members(archive, len(data))
            about: dict[str, Any] = json.loads(str(arrays.pop("about")))
            if about["format"] != FORMAT:
                version = ascii(str(about.get("fastpong", "0.1")))[1:-1]
                raise CheckpointError(
                    f"{path} is of fastpong {version:.20}, which reads it; this is fastpong {__version__}"
                )
            if not archive.comment:
                raise ValueError("it has no digest")
    except CheckpointError:
        raise
    except Exception as error:  # whatever a damaged archive makes of zipfile, NumPy and json
        raise DamagedError(f"{path} is damaged or not a checkpoint of fastpong ({str(error)!a:.120})") from None
    return arrays, about


def _sealed(archive: "memoryview[int]") -> bytes:
    """Return a zip archive that has no comment with the digest of all that is before it as its comment."""
    data = bytes(archive[:-2]) + DIGEST.to_bytes(2, "little")
    return data + digest(data)


def _members(archive: zipfile.ZipFile, size: int) -> Arrays:
    """Read the arrays of an archive by name; raises `ValueError` unless each is exactly as large as its header says.

    Members that are stored as they are may not take more than the `size` of the archive: none lies inside another.
    """
    members = archive.infolist()
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    if sum(member.file_size for member in members) > (size if stored else _MAX_UNPACKED):
        raise ValueError("its parts overlap" if stored else "too much is compressed in it")
    arrays: Arrays = {}
    for member in members:
        data = archive.read(member)
        file = io.BytesIO(data)
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename} is of another version of NumPy's format")
        shape, fortran, dtype = npy.read_array_header_1_0(file)
        begin = file.tell()
        fits = min(shape, default=0) >= 0 and math.prod(shape) * dtype.itemsize == len(data) - begin
        if dtype.kind not in _KINDS or not fits:
            raise ValueError(f"{member.filename} is no array of {shape} {dtype}")
        array = np.frombuffer(data, dtype, offset=begin).reshape(shape, order="F" if fortran else "C").copy()
        arrays[member.filename.removesuffix(".npy")] = array
    if len(arrays) < len(members):
        raise ValueError("it has two members of one name")
    return arrays
