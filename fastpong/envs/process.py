"""Env subprocesses, by a fork server of our own, which changes nothing in the user's process.

That of multiprocessing is the user's as well: signals, variables and modules that it is started with would be those of
his subprocesses. Ours is a child that gets its variables and its mask of signals as it starts, and is asked through a
socket that has no name. It has loaded the engine, but has no thread; its children use one BLAS thread, whatever the
user's environment says, and do not run the main module again, so that a script works without a guard. It hands no pipe
of one subprocess to another, so that each notices when the parent dies. It outlives the signals that end the main
process, which may still have to save, and ends when its socket is closed.
"""

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import context, spawn, util
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import fastpong
from fastpong.envs.forkserver import REQUEST_BYTES, Parcel, number
from fastpong.envs.patience import Patience
from fastpong.signals import ENDING, interrupted

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip

ENGINE_MODULES = {"console": "fastpong.envs.preload", "ale": "fastpong.envs.ale"}
"""What the fork server loads for each engine, once for all of its children."""

_LOAD_SECONDS, _LOAD_IDLE = 600.0, 30
"""Seconds of a processor that the server may use to load, and to compile; without any it may read from a slow disk."""


LEAVE_SECONDS = 5.0
"""How long a subprocess that is killed is waited for."""


class Process:
    """What gymnasium and we need of a `multiprocessing.Process`. Its `exitcode` is also None if nobody knows it.

    multiprocessing does not know of it: a daemonic process may start one, and the end of a program waits for none.
    `module` is loaded before it starts, by the server.
    """

    daemon = True

    def __init__(self, module: str, target: Callable[..., object], args: Sequence[Any] = (), name: str = ""):
        self._module, self._work, self.name = module, (target, tuple(args)), name
        self.pid = 0
        self.exitcode: int | None = None

    def start(self) -> None:
        """Start it; raises `EOFError` or `OSError` if the fork server fails."""
        self.pid, self._status = SERVER.fork(self._module, self._work)
        del self._work  # it may hold what should be collected

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        if self.exitcode is None and self._status.poll(timeout):
            with contextlib.suppress(EOFError):  # the server is gone
                self.exitcode = number(self._status)

    def is_alive(self) -> bool:
        """Whether it has not ended, as far as is known."""
        self.join(0.0)
        return self.exitcode is None and not self._status.poll(0.0)

    def kill(self) -> None:
        """End it, unless it is known to have ended."""
        self.join(0.0)
        if self.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    terminate = kill


def end_all(processes: Sequence[Process], seconds: float) -> None:
    """Wait for some seconds; end by force those that are left; and leave those that do not end even so."""
    for limit in (seconds, LEAVE_SECONDS):
        until = time.monotonic() + limit
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
        for process in processes:
            process.kill()


class _Context(context.BaseContext):
    """What gymnasium starts its subprocesses with."""

    def __init__(self, name: str, module: str):
        self._name: Any = name
        self.Process: Any = functools.partial(Process, module)

    def Queue(self, maxsize: int = 0) -> Any:  # noqa: N802
        """Return none: subprocesses answer with their errors; and its semaphores would have names."""


def start_method(engine: str) -> str:
    """Return the name of the way, for `multiprocessing.get_context`, in which to start what steps an engine."""
    name = f"fastpong-{engine}"
    contexts: dict[str, Any] = vars(context)["_concrete_contexts"]  # gymnasium takes the name of one only
    contexts.setdefault(name, _Context(name, ENGINE_MODULES[engine]))
    return name


class _Server:
    """The fork server as this process sees it. It is started when it is needed, also again."""

    _process: "subprocess.Popen[bytes] | None" = None
    _socket: socket.socket
    _has_forked = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """In a child that is forked: begin without a server, and keep that of the parent by no socket."""
        if self._process:
            self._socket.close()
            self._process.returncode = 0  # nobody waits for it here
        self._process, self._lock = None, threading.Lock()

    def ask(self, module: str, descriptors: Sequence[int] = ()) -> "subprocess.Popen[bytes]":
        """Let the server, which is returned, load a module and, if there are descriptors, fork."""
        with self._lock:
            server = self._process
            if not server or server.poll() is not None:
                server = self._start()
            self._has_forked |= bool(descriptors)
            socket.send_fds(self._socket, [module.encode().ljust(REQUEST_BYTES)], descriptors)
            return server

    def fork(self, module: str, work: tuple[Callable[..., object], Sequence[Any]]) -> tuple[int, Connection]:
        """Start a subprocess; return its id, and the pipe that will bring its exit code."""
        parcel = Parcel(work)
        ours, theirs = os.pipe()
        status = Connection(ours, writable=False)
        try:
            server = self.ask(module, [parcel.file, theirs, *parcel.descriptors])
            patience = Patience(server.pid, _LOAD_SECONDS, _LOAD_IDLE)
            while not status.poll(1.0):
                if interrupted():
                    raise KeyboardInterrupt
                if server.poll() is not None:
                    raise EOFError("the fork server has ended")
                if patience.is_over():
                    self._end()
                    raise EOFError("the fork server hangs")
        finally:  # only now: macOS may lose what is closed on its way
            os.close(theirs)
            os.close(parcel.file)
        return number(status), status

    def _start(self) -> "subprocess.Popen[bytes]":
        if self._process:
            self._socket.close()
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(_LOAD_IDLE)
        flags: list[str] = vars(subprocess)["_args_from_interpreter_flags"]()
        # It finds what this process finds, and first this package; -P and no "": no files of the current directory.
        found = [str(Path(fastpong.__file__).parent.parent), [entry for entry in sys.path if entry]]
        code = (
            "import importlib, sys, typing; sys.path.insert(0, {!r}); import fastpong; sys.path[:] = {!r}; "
            f"from fastpong.envs.forkserver import serve; serve({theirs.fileno()})"
        ).format(*found)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # of this thread; it inherits that
        try:
            self._process = subprocess.Popen(
                [spawn.get_executable(), *flags, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        util.Finalize(None, self._end, exitpriority=0)
        return self._process

    def _end(self) -> None:
        """End the server, by force if it hangs, or if it may still be loading and nobody ever needed it."""
        with self._lock:
            if self._process:
                self._socket.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(1.0 if self._has_forked else 0.0)
                self._process.kill()
                self._process.wait()
                self._process = None


SERVER = _Server()
