"""The body of the fork server, which starts env subprocesses: see `fastpong.envs.process`, which starts it."""

import contextlib
import importlib
import io
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from multiprocessing import context, reduction
from multiprocessing.connection import Connection
from typing import NoReturn

from fastpong.signals import ENDING, ignore
from fastpong.system import unnamed_file

REQUEST_BYTES = 64
"""Length of each request, the name of a module, so that one read takes it whole, and its descriptors with it."""

MOST_DESCRIPTORS = 253  # that Linux hands over at once

received: list[int] = []
"""Of a subprocess: the descriptors that it was given."""


class Parcel:
    """A function and its arguments: pickled in a file that has no name, and the descriptors that belong to it."""

    def __init__(self, work: object):
        self.descriptors: list[int] = []
        text = io.BytesIO()
        context.set_spawning_popen(self)  # type: ignore[arg-type]
        try:
            reduction.ForkingPickler(text).dump(work)
        finally:
            context.set_spawning_popen(None)
        self.file = unnamed_file("fastpong-work")
        os.write(self.file, text.getbuffer())

    def duplicate_for_child(self, descriptor: int) -> int:
        """Return the place of a descriptor; multiprocessing calls this, and `DupFd`."""
        self.descriptors.append(descriptor)
        return len(self.descriptors) - 1

    class DupFd:
        """A descriptor by its place, on its way."""

        def __init__(self, place: int):
            self._place = place

        def detach(self) -> int:
            """Return the descriptor, in the subprocess."""
            return received[self._place]


def serve(descriptor: int) -> NoReturn:
    """Body of the fork server: load and fork, as it is asked, until the socket is closed at its other end."""
    ignore()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    ended, wake = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    children: dict[int, int] = {}  # and the pipes for their exit codes
    with socket.socket(fileno=descriptor) as asked:
        while True:
            ready, _, _ = select.select([asked.fileno(), ended], [], [])
            if ended in ready:
                os.read(ended, 65536)
                _tell_exit_codes(children)
            if asked.fileno() not in ready:
                continue
            module, descriptors, *_ = socket.recv_fds(asked, REQUEST_BYTES, MOST_DESCRIPTORS)
            if not module:
                os._exit(0)  # Python would free all that is loaded first, which its user would wait for
            with contextlib.suppress(Exception):  # whoever needs it fails by itself
                importlib.import_module(module.decode().rstrip())
            if not descriptors:
                continue
            work, status, *given = descriptors
            child = os.fork()
            if not child:
                for other in (asked.fileno(), ended, wake, status, *children.values()):
                    os.close(other)
                _run(work, given)
            _tell(status, child)
            children[child] = status
            for other in (work, *given):
                os.close(other)


def _run(work: int, given: list[int]) -> NoReturn:
    """Be a subprocess of the server."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        received[:] = given
        with open(work, "rb") as file:
            file.seek(0)
            target, arguments = pickle.load(file)
        target(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _tell_exit_codes(children: dict[int, int]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        pipe = children.pop(child)
        _tell(pipe, os.waitstatus_to_exitcode(status))
        os.close(pipe)


def _tell(pipe: int, value: int) -> None:
    with contextlib.suppress(OSError):  # nobody asks any more
        os.write(pipe, value.to_bytes(8, "little", signed=True))


def number(status: Connection) -> int:
    """Read a number that the server tells; raises `EOFError` if it has ended."""
    told = os.read(status.fileno(), 8)
    if not told:
        raise EOFError("the fork server has ended")
    return int.from_bytes(told, "little", signed=True)
