"""What a run tells a callback, and how the callback ends it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
