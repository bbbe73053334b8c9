"""How long a process is waited for: as long as it works, but not for ever, and not when the run is to end."""

from fastpong.signals import interrupted
from fastpong.system import processor_time

IDLE_SECONDS, BUSY_SECONDS = 5, 60.0
"""A process hangs if it is asked for something and gets no time of a processor for so long, or if it has used so much
of it.

To be slow is no hang: on a busy or suspended machine it gets little time, or the parent gets none either."""

ENDING_IDLE_SECONDS, ENDING_SECONDS = 1, 5
"""Once a signal has asked the run to end: the first of these, and how long a process that works is waited for."""


class Patience:
    """With one process that is to answer. `extra` are seconds of a processor that it may use besides."""

    def __init__(self, process: int, extra: float = 0.0, idle: int | None = None):
        self._process, self._most, self._idle = process, BUSY_SECONDS + extra, idle or IDLE_SECONDS
        self._stood = self._ending = 0
        self._began = self._before = processor_time(process)

    def is_over(self) -> bool:
        """Whether it hangs: to be asked after each second without an answer."""
        now = processor_time(self._process)
        self._stood, self._before = (self._stood + 1 if now == self._before else 0), now
        self._ending += interrupted()
        idle = ENDING_IDLE_SECONDS if self._ending else self._idle
        return self._stood >= idle or now - self._began > self._most or self._ending >= ENDING_SECONDS
