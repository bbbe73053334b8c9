"""Arrays to a file and back: written whole or not at all, and refused unless they are exactly what was written.

A file is an ``.npz``, a zip archive of ``.npy`` members, with a digest of all its other bytes as the archive's comment.
A stranger's file may have a right digest: sizes are compared before anything is allocated, nothing is unpickled, and
what is unpacked is bounded.
"""

import errno
import io
import json
import math
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


class CheckpointError(FastpongError):
    """A checkpoint is missing, damaged or cannot be written, perhaps because the disk is full."""

    is_disk_full = False


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
    try:
        files.write(path, _sealed(buffer.getbuffer()))
    except OSError as error:
        failed = CheckpointError(f"cannot save {path}: {error.strerror or error}")
        failed.is_disk_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise failed from None


def load(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read a file that `save` wrote.

    Raises `CheckpointError` if it is missing, damaged or of another version, or if weights in it are no numbers.
    """
    try:
        if path.stat().st_size > _MAX_FILE:
            raise ValueError("it is larger than 1 GiB")
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.comment and archive.comment != digest(data[:-DIGEST]):
                raise ValueError("its digest is another one")
            arrays = _members(archive)
            about: dict[str, Any] = json.loads(str(arrays.pop("about")))
            if about["format"] != FORMAT:
                version = ascii(str(about.get("fastpong", "0.1")))[1:-1]
                raise CheckpointError(
                    f"{path} is of fastpong {version:.20}, which reads it; this is fastpong {__version__}"
                )
            if not archive.comment:
                raise ValueError("it has no digest")
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}") from None
    except CheckpointError:
        raise
    except Exception as error:  # whatever a damaged archive makes of zipfile, NumPy and json
        raise CheckpointError(f"{path} is damaged or not a checkpoint of fastpong ({str(error)!a:.120})") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name.startswith("policy.") and not np.isfinite(array).all():
            raise CheckpointError(f"{path} is damaged: {name} holds NaN or infinity")
    return arrays, about


def _sealed(archive: "memoryview[int]") -> bytes:
    """Return a zip archive that has no comment with the digest of all that is before it as its comment."""
    data = bytes(archive[:-2]) + DIGEST.to_bytes(2, "little")
    return data + digest(data)


def _members(archive: zipfile.ZipFile) -> Arrays:
    """Read the arrays of an archive by name; raises `ValueError` unless each is exactly as large as its header says."""
    members = archive.infolist()
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    if not stored and sum(member.file_size for member in members) > _MAX_UNPACKED:
        raise ValueError("too much is compressed in it")
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
