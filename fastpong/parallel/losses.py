"""Processes that are lost in a run: each is replaced, but many within a short time are not lost by chance."""

import time
from collections import deque
from collections.abc import Callable

from fastpong.errors import LostError

MOST, WITHIN = 3, 60.0
"""So many losses within so many seconds end the run."""


class Losses:
    """Counts the processes that were lost and replaced, and tells of each.

    Attributes
    ----------
    count : int
        How many there were.
    reason : str or None
        Why the run should save and end: there were `MOST` of them within `WITHIN` seconds.
    """

    def __init__(self, note: Callable[[str], object] = lambda text: None):
        self.count, self._note = 0, note
        self.reason: str | None = None
        self._when: deque[float] = deque(maxlen=MOST)

    def add(self, what: str) -> None:
        """Count one that is about to be replaced. Raises `LostError` if the run should have ended by now."""
        if self.reason:
            raise LostError(f"{what}, and {self.reason}")
        self.count += 1
        self._note(f"{what}: another one takes its place and repeats its last steps")
        self._when.append(time.monotonic())
        if len(self._when) == MOST and self._when[-1] - self._when[0] < WITHIN:
            self.reason = f"{MOST} processes were lost within {WITHIN:.0f} s: see to the machine"
