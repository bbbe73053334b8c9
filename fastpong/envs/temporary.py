"""The folder in which multiprocessing keeps the socket of its fork server, made so that a later start can delete it.

multiprocessing deletes its ``pymp-*`` when the process ends, but not if that is killed, and then nobody knows whose it
was. One inside a locked ``fastpong-socket-*`` is ours, and is left over as soon as that lock is free.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from multiprocessing import util
from pathlib import Path

PREFIX = "fastpong-socket-"

_OLD_SECONDS = 60.0
"""A folder is locked long before it is so old."""

_LONGEST = 107 - len("/pymp-12345678/listener-12345678")
"""Linux takes no longer name of a socket."""


def make_temporary_folder() -> None:
    """Let multiprocessing make its temporary folder inside one of ours, if it has none yet; delete those left over."""
    _sweep()
    before, ours = tempfile.tempdir, Path(tempfile.mkdtemp(prefix=PREFIX))
    if len(str(ours)) <= _LONGEST:
        tempfile.tempdir = str(ours)
    try:
        theirs = Path(util.get_temp_dir())
    finally:
        tempfile.tempdir = before
    if theirs.parent != ours:
        ours.rmdir()
        return
    with contextlib.suppress(OSError):  # a file system without locks, where nothing is swept either
        fcntl.flock(os.open(ours, os.O_RDONLY), fcntl.LOCK_EX)  # until this process ends
    util.Finalize(None, _delete, args=(ours,), exitpriority=-101)  # after multiprocessing's, of -100


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _OLD_SECONDS:
                file = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _delete(folder)
                finally:
                    os.close(file)


def _delete(folder: Path) -> None:
    """Delete such a folder, and nothing but what multiprocessing puts into it."""
    with contextlib.suppress(OSError):
        for socket in folder.glob("pymp-*/listener-*"):
            socket.unlink()
        for inner in folder.glob("pymp-*"):
            inner.rmdir()
        folder.rmdir()
