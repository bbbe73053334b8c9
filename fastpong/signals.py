"""Signals that end a job: ctrl-C, a closed terminal, and what `timeout`, systemd, Slurm and mpiexec send.

Most of them reach the whole process group. The main process alone answers: it saves, and its subprocesses end with it.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _handle(handler: Any) -> dict[signal.Signals, Any]:
    """Set the handler of all of `ENDING`; return the handlers of before.

    nohup has SIGHUP ignored, and so it stays; a shell has SIGINT ignored for what it starts in the background, but that
    has to save as well. Python handles signals in the main thread only; in another one nothing is set.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    kept = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else set()
    return {number: signal.signal(number, handler) for number in ENDING if number not in kept}


def _restore(before: dict[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def ignore() -> None:
    """Ignore them in this process, a subprocess."""
    _handle(signal.SIG_IGN)


@contextlib.contextmanager
def ignored_by_children() -> Iterator[None]:
    """Let the processes that are started inside ignore them, as do those that they start.

    This process gets those that come meanwhile afterwards: what is blocked is kept, even if it is ignored.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    before = _handle(signal.SIG_IGN)
    try:
        yield
    finally:
        _restore(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def raise_as_ctrl_c() -> None:
    """Let each of them raise `KeyboardInterrupt`, as ctrl-C does."""
    _handle(signal.default_int_handler)


class Interrupts:
    """Turns them into a flag, `seen`, so that a run ends at a whole step; one that comes later ends it at once.

    `timeout` and mpiexec send a signal to their child and to its group, so that it comes twice within `TOGETHER`.
    """

    TOGETHER = 1.0  # seconds

    def __enter__(self) -> "Interrupts":
        self.seen, self._first = False, 0.0
        self._before = _handle(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        _restore(self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.seen and now - self._first > self.TOGETHER:
            raise KeyboardInterrupt
        if not self.seen:
            self.seen, self._first = True, now
