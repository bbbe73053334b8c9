"""A disk that fails, or loses its power, at any one of the operations of `fastpong.files`."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastpong import files

CHANGES = ("open", "write", "fsync", "replace", "unlink", "makedirs", "ftruncate")


class Crash(BaseException):
    """The power is gone."""


class Disk:
    """Stands for the module `os` in `fastpong.files`, and lets the operation with the number `at` fail.

    `fault` is an errno, for this operation or, if it `stays`, for all that follow. None: the process ends there;
    `lose_power` then leaves of files, and of names, what was synced.
    """

    def __init__(self, at: int, fault: int | None, stays: bool = False):
        self.at, self.fault, self.stays, self.count = at, fault, stays, 0
        self.names: list[str] = []  # of the operations so far
        self._durable: dict[str, dict[str, bytes]] = {}  # of each folder that was synced, its names and their contents
        self._contents: dict[str, bytes] = {}  # by path, as they were synced
        self._paths: dict[int, str] = {}  # of open files

    def __getattr__(self, name: str) -> Any:
        if name not in CHANGES:
            return getattr(os, name)
        self.names.append(name)
        return getattr(self, f"_{name}")

    def _step(self) -> None:
        self.count += 1
        if self.fault is None and self.count == self.at:
            raise Crash
        if self.fault is not None and (self.count == self.at or self.stays and self.count > self.at):
            raise OSError(self.fault, os.strerror(self.fault))

    def _open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        self._step()
        file = os.open(path, flags, mode)
        self._paths[file] = str(path)
        return file

    def _write(self, file: int, data: Any) -> int:
        self._step()
        return os.write(file, data[: max(1, len(data) // 2)])  # a write may write less than it was asked for

    def _fsync(self, file: int) -> None:
        self._step()
        path = Path(self._paths[file])
        if path.is_dir():
            self._durable[str(path)] = {
                entry.name: self._contents.get(str(entry), b"") for entry in path.iterdir() if entry.is_file()
            }
        else:
            self._contents[str(path)] = path.read_bytes()

    def _replace(self, path: Path, new: Path) -> None:
        self._step()
        os.replace(path, new)
        self._contents[str(new)] = self._contents.pop(str(path), b"")

    def _unlink(self, path: Path) -> None:
        self._step()
        os.unlink(path)
        self._contents.pop(str(path), None)

    def _makedirs(self, path: Path, exist_ok: bool) -> None:
        self._step()
        self._durable |= {str(folder): {} for folder in (path, *path.parents) if not folder.exists()}
        os.makedirs(path, exist_ok=exist_ok)

    def _ftruncate(self, file: int, size: int) -> None:
        self._step()
        os.ftruncate(file, size)

    def lose_power(self) -> None:
        """Take from the disk what was not synced."""
        for folder, names in self._durable.items():
            for entry in Path(folder).iterdir():
                if entry.is_file():
                    entry.unlink()
            for name, content in names.items():
                (Path(folder) / name).write_bytes(content)


@contextmanager
def disk(at: int, fault: int | None, stays: bool = False) -> Iterator[Disk]:
    """Let `fastpong.files` work on such a disk."""
    with pytest.MonkeyPatch.context() as patch:
        faulty = Disk(at, fault, stays)
        patch.setattr(files, "os", faulty)
        yield faulty


class FullDisk:
    """Stands for the module `os` in `fastpong.files`: a disk on which `folder`, as it is, leaves so many bytes free."""

    def __init__(self, folder: Path, left: int, quota: bool):
        self._folder, self._quota = folder, quota
        self._most = self._used() + left

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _used(self) -> int:
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def write(self, file: int, data: Any) -> int:
        """Write as much as there is room for."""
        if not (room := max(0, self._most - self._used())):
            raise OSError(errno.EDQUOT if self._quota else errno.ENOSPC, "No space left on device")
        return os.write(file, data[:room])

    def statvfs(self, path: Path) -> Any:
        """Tell how much is free on the disk, of which a quota says nothing."""
        free = 10**9 if self._quota else max(0, self._most - self._used())
        return SimpleNamespace(f_bavail=free, f_frsize=1)


@contextmanager
def full_disk(folder: Path, left: int, quota: bool = False) -> Iterator[None]:
    """Let `fastpong.files` work on such a disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "os", FullDisk(folder, left, quota))
        yield


def fault(what: str, times: int) -> pytest.MarkDecorator:
    """Mark a test of what may happen to a run: ``pytest -m fault --faults`` tries it so many times, see conftest.py."""
    return pytest.mark.fault(what, times)
