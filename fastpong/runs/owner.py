"""Which process trains in a folder: one, and only as long as it is the same folder."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fastpong.errors import UsageError
from fastpong.runs.checkpoint import CheckpointError


class Owner:
    """The file ``lock`` of a run's folder, locked by the process that trains there.

    Nobody else opens it: an editor puts another ``config.toml`` in the place of ours. It is opened for writing, because
    NFS grants an exclusive lock for nothing else.
    """

    def __init__(self, folder: Path):
        self._folder, self._lock = folder, folder / "lock"
        self._owned: os.stat_result | None = None

    @contextlib.contextmanager
    def hold(self, note: Callable[[str], object]) -> Iterator[None]:
        """Keep other trainings out; raises `UsageError` if one is under way.

        Where the file system has no locks `note` is told, and training goes on.
        """
        try:
            file = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise UsageError(f"cannot write {self._lock}: {error.strerror}") from None
        try:
            try:
                _lock(file)
            except BlockingIOError:
                raise UsageError(
                    f"another fastpong is training in {self._folder}: stop it, or choose another --run"
                ) from None
            except OSError as error:
                note(f"no lock for {self._folder} ({error.strerror}): no other fastpong may train there meanwhile")
            self._owned = os.fstat(file)
            yield
        finally:
            self._owned = None
            os.close(file)

    def is_held(self) -> bool:
        """Whether a process trains there, or may: where the file system has no locks nobody knows."""
        try:
            file = os.open(self._lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
        return False

    def is_ours(self) -> bool:
        """Whether the folder is the one that is held, neither moved nor deleted nor replaced; or none is held."""
        with contextlib.suppress(OSError):
            return self._owned is None or os.path.samestat(self._owned, os.stat(self._lock))
        return False

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Raise `CheckpointError` if it is not: before anything is written, and in the place of what that raises."""
        self._check()
        try:
            yield
        except CheckpointError:
            self._check()
            raise

    def _check(self) -> None:
        if not self.is_ours():
            raise CheckpointError(f"{self._folder} was moved, deleted or replaced while a run was writing there")


def _lock(file: int) -> None:
    """Lock a file; raises BlockingIOError if another process keeps it, and does not only look as in `Owner.is_held`."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    time.sleep(0.1)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
