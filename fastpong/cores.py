"""The processor's cores: which of them this process may use, and on which the parent of game subprocesses wakes up."""

import os

STEPS = 2
"""Steps of all games for which the parent stays on a core: to change it takes 50 µs."""


def allowed_cores() -> set[int]:
    """Return the numbers of the cores that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(allowed_cores())


class Turns:
    """Keeps the calling thread on one core, and after some steps on another one: ``with turns:`` around each step.

    Where each core has a game subprocess, what the parent computes takes time from one of them. Taken from the same
    one each time, that one would fall behind, and the others would wait for it at the next step; docs/performance.md
    has what turns gain. With two groups of games in flight none waits within so few steps. Linux only; elsewhere, and
    where there are cores to spare, this does nothing.

    Parameters
    ----------
    workers : int
        Game subprocesses.
    """

    def __init__(self, workers: int):
        self._cores = allowed_cores()
        spare = len(self._cores) > workers or not hasattr(os, "sched_setaffinity")
        self._order = [] if spare or len(self._cores) == 1 else sorted(self._cores)
        self._steps = 0

    def __enter__(self) -> None:
        if self._order:
            self._set({self._order[self._steps // STEPS % len(self._order)]})
            self._steps += 1

    def __exit__(self, *_: object) -> None:
        # From here on it may run anywhere, and so may the threads that it starts.
        if self._order:
            self._set(self._cores)

    def _set(self, cores: set[int]) -> None:
        try:
            os.sched_setaffinity(0, cores)
        except OSError:  # some were taken away meanwhile
            self._order = []
