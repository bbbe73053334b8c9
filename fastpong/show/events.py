"""What a run tells a callback, and how the callback ends it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.show.progress import Progress

Kind = Literal["metrics", "update", "game", "checkpoint"]


@dataclass(frozen=True)
class Event:
    """Something that happened in a run.

    `data` holds, by `kind`: for ``metrics`` a line of ``metrics.jsonl``, see `fastpong.runs.metrics`; for
    ``update`` what the learner says of it; for ``game`` the ``env``, the ``score`` and the ``length`` in steps; for
    ``checkpoint`` its ``path``. `steps` are those of the run so far, over all envs.

    >>> kinds = set()
    >>> tiny = {"envs": 2, "steps": 100, "eval_games": 0, "progress": "none"}
    >>> run = fastpong.train("karpathy", **tiny, callback=lambda event: kinds.add(event.kind))
    >>> sorted(kinds)
    ['checkpoint', 'metrics']
    """

    kind: Kind
    steps: int
    data: Mapping[str, Any]
    _stop: Callable[[], None] = field(repr=False)

    def stop(self) -> None:
        """End the run soon, with a checkpoint."""
        self._stop()


Callback = Callable[[Event], object]


class Watched(Progress):
    """Passes all on to a display, and as events to callbacks, on rank 0.

    An exception of a callback ends the run, with a checkpoint, and is then in `failure`.
    """

    def __init__(self, display: Progress, callbacks: list[Callback]):
        self.display, self._callbacks = display, callbacks
        self.failure: Exception | None = None

    def note(self, text: str) -> None:
        """See `Progress`."""
        self.display.note(text)

    def busy(self, text: str) -> None:
        """See `Progress`."""
        self.display.busy(text)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """See `Progress`."""
        self.display.metrics(line)
        self._tell("metrics", line["steps"], line)

    def played(self, stats: EpisodeStats) -> None:
        """See `Progress`."""
        self.display.played(stats)
        for game, _ in stats.new_games:
            self._tell("game", game.steps, {"env": game.env, "score": game.score, "length": game.length})

    def learned(self, steps: int, statistics: Mapping[str, Any]) -> None:
        """See `Progress`."""
        self._tell("update", steps, statistics)

    def saved(self, steps: int, path: Path) -> None:
        """See `Progress`."""
        self._tell("checkpoint", steps, {"path": path})

    def close(self) -> None:
        """See `Progress`."""
        self.display.close()

    def _tell(self, kind: Kind, steps: int, data: Mapping[str, Any]) -> None:
        event = Event(kind, steps, data, self._end)
        for callback in self._callbacks:
            if self.failure is None:
                try:
                    callback(event)
                except Exception as error:
                    self.failure = error
                    self._end()

    def _end(self) -> None:
        self.stop = True
