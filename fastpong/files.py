"""All changes to the files of a run: each happens whole or not at all.

That holds if the power fails as well, as far as fsync does what it promises. Every function raises OSError.
"""

import contextlib
import os
from pathlib import Path


def write(path: Path, data: "bytes | memoryview[int]") -> None:
    """Write a file, in the place of one that may be there; if that fails, nothing has changed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            _write(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(temporary, path)
    finally:
        delete(temporary)
    _sync_names(path.parent)


def append(path: Path, data: bytes) -> None:
    """Write at the end of a file; if that fails, nothing of it is written. After a crash any part may be missing."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        size = os.fstat(file).st_size
        try:
            _write(file, data)
        except OSError:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)


def delete(path: Path) -> None:
    """Delete a file if that is possible; one that stays does no harm."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it; it may be there already."""
    os.makedirs(path, exist_ok=True)
    _sync_names(path.parent)


def _write(file: int, data: "bytes | memoryview[int]") -> None:
    rest = memoryview(data)
    while len(rest):
        rest = rest[os.write(file, rest) :]


def _sync_names(folder: Path) -> None:
    """Bring the names of a folder's files to the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
