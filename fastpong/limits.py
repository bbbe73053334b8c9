"""When a run stops before its target."""

import time
from dataclasses import dataclass, field

from fastpong.config import at_least


@dataclass(frozen=True)
class Limits:
    """A run stops at so many steps over all envs, or so many minutes after `began`.

    Raises `UsageError` for what is no such number: a run would never end.
    """

    steps: int | None = None
    minutes: float | None = None
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        if self.steps is not None:
            at_least("steps", self.steps, 1, whole=True)
        if self.minutes is not None:
            at_least("minutes", self.minutes, 0.001)

    def seconds(self) -> float:
        """Return the seconds since it began."""
        return time.perf_counter() - self.began

    def time_is_up(self) -> bool:
        """Whether the minutes are over."""
        return self.minutes is not None and self.seconds() >= 60 * self.minutes
