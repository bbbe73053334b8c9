"""The files of a run: each change to them happens whole or not at all, and what is read is a bounded regular file.

The first holds if the power fails as well, as far as fsync does what it promises. Every function raises OSError. No
link is followed to what is written.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path


def read(path: Path, most: int, *, only_regular: bool = True) -> bytes:
    """Read a file of at most so many bytes.

    A device or a pipe may have no end, or nobody at its other end: unless somebody has named one, it is an error.
    """
    file = os.open(path, os.O_RDONLY | (os.O_NONBLOCK if only_regular else 0))
    try:
        facts = os.fstat(file)
        if only_regular and not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if facts.st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most:,} bytes")
        parts, size = [], 0
        while size <= most and (part := os.read(file, min(1 << 20, most + 1 - size))):
            parts.append(part)
            size += len(part)
        if size > most:
            raise OSError(errno.EFBIG, f"larger than {most:,} bytes")
        return b"".join(parts)
    finally:
        os.close(file)


def exists(path: Path) -> bool:
    """Return whether there is such a file. `Path.exists` takes every error for a no, from Python 3.14 on."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def room(path: Path) -> int:
    """Return how many bytes can still be written to the disk of a folder."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def write(path: Path, data: "bytes | memoryview[int]") -> None:
    """Write a file, in the place of one that may be there; if that fails, nothing has changed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
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
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
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


def rename(path: Path, new: Path) -> None:
    """Give a file another name if that is possible; one of that name is replaced."""
    with contextlib.suppress(OSError):
        os.replace(path, new)
        _sync_names(path.parent)


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
