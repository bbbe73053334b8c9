"""Processes that are lost in a run: each is replaced, but the same one again and again is not lost by chance."""

import time
from collections import deque
from collections.abc import Callable

from fastpong.errors import LostError

MOST, WITHIN = 3, 60.0
"""So many losses of one process within so many seconds end the run. A machine that is lost takes many, once."""


class Losses:
    """Counts the processes that were lost and replaced, and tells of each.

    Attributes
    ----------
    count : int
        How many there were.
    reason : str or None
        Why the run should save and end: one was lost `MOST` times within `WITHIN` seconds.
    """

    def __init__(self, note: Callable[[str], object] = lambda text: None):
        self.count, self._note = 0, note
        self.reason: str | None = None
        self._when: dict[str, deque[float]] = {}

    def add(self, name: str, loss: str) -> None:
        """Count a process that is about to be replaced. Raises `LostError` if the run should have ended by now."""
        when = self._when.setdefault(name, deque(maxlen=MOST))
        if self.reason and len(when) == MOST:
            raise LostError(f"{name} {loss}, and {self.reason}")
        self.count += 1
        self._note(f"{name} {loss}: another one takes its place and repeats its last steps")
        when.append(time.monotonic())
        if len(when) == MOST and when[-1] - when[0] < WITHIN:
            self.reason = f"{name} was lost {MOST} times within {WITHIN:.0f} s: see to the machine"
