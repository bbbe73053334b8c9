"""Signals that end a job: ctrl-C, a closed terminal, and what `timeout`, systemd, Slurm and mpiexec send.

Most of them reach the whole process group. The main process alone answers: it saves, and its subprocesses end with it.
"""

import signal
import threading
import time
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


def ignore() -> None:
    """Ignore them in this process, a subprocess."""
    _handle(signal.SIG_IGN)


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
        _ACTIVE.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _ACTIVE.remove(self)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.seen and now - self._first > self.TOGETHER:
            raise KeyboardInterrupt
        if not self.seen:
            self.seen, self._first = True, now


_ACTIVE: list[Interrupts] = []


def interrupted() -> bool:
    """Whether one of them has come, and a run is to end at a whole step."""
    return any(one.seen for one in _ACTIVE)
