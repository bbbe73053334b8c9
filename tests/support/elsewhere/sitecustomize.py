"""Python runs this first in each process whose PYTHONPATH has this folder: it takes away what macOS has not."""

import builtins
import ctypes
import io
import os
import socket
from collections.abc import Callable
from typing import Any

GONE = ("/proc", "/dev/shm", "/sys")


def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function find nothing in these folders."""

    def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(path, int) and os.fspath(path).startswith(GONE):
            raise FileNotFoundError(2, "No such file or directory", path)
        return call(path, *arguments, **options)

    return refuse


def without_prctl(name: str | None, *arguments: Any, **options: Any) -> Any:
    """Load a library, but not the C library by no name, of which we need nothing else."""
    if name is None:
        raise OSError("no prctl")
    return library(name, *arguments, **options)


def plain_pairs(family: int = socket.AF_UNIX, type: int = socket.SOCK_STREAM, proto: int = 0) -> Any:
    """Make a pair of sockets, but not of datagrams in sequence."""
    if type == socket.SOCK_SEQPACKET:
        raise OSError(43, "Protocol not supported")
    return pair(family, type, proto)


library, pair = ctypes.CDLL, socket.socketpair
ctypes.CDLL, socket.socketpair = without_prctl, plain_pairs  # type: ignore[assignment, misc]
builtins.open = io.open = refusing(io.open)
os.stat = refusing(os.stat)
for name in ("memfd_create", "sched_getaffinity", "sched_setaffinity", "posix_fallocate", "pipe2"):
    delattr(os, name)
