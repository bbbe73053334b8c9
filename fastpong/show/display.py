"""What is shown of a run, and whom else it tells: a panel or lines, a callback, TensorBoard."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastpong.config import Config
from fastpong.errors import UsageError
from fastpong.limits import Limits
from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.show.events import Callback, Event, Kind
from fastpong.show.panel import KINDS, make_progress
from fastpong.show.progress import Progress
from fastpong.show.tensorboard import TensorBoard


class Display(Progress):
    """Passes all on to a display of one of `KINDS`, and as events to a callback. It is silent until it begins.

    Without a `kind` the display is the best that there is, see `make_progress`. `log` may be ``tensorboard``. `tell`,
    a function as `fastpong.errors.tell`, is given in place of the display what comes after training: how the run has
    ended (a `result`), and how its candidates play. An exception of the callback ends the run, with a checkpoint, and
    is then in `failure`. Raises `UsageError` for another kind or log, and `FastpongError` without tensorboardX.
    """

    def __init__(
        self, kind: str | None = None, callback: Callback | None = None, log: str | None = None,
        tell: Callable[..., object] | None = None,
    ):  # fmt: skip
        if kind not in (None, *KINDS):
            raise UsageError(f"progress is one of {', '.join(KINDS)}, not {kind!r}")
        if log not in (None, "tensorboard"):
            raise UsageError(f"log is tensorboard, not {log!r}")
        if not (callback is None or callable(callback)):
            raise UsageError(f"callback is a function that is given each event, not {callback!r}")
        self.kind, self.begun = kind, False
        self.failure: Exception | None = None
        self._shown, self._tell = Progress(), tell
        self._callback, self._callbacks = callback, list[Callback]()
        self._log = TensorBoard() if log else None

    def begin(self, config: Config, folder: Path, past: Sequence[Mapping[str, Any]], limits: Limits) -> None:
        """Show a run from here on, whose metrics so far are `past`: on rank 0 only."""
        self._shown, self.begun = make_progress(self.kind, config, folder, past, limits), True
        self._callbacks += [self._callback] if self._callback else []
        if self._log:
            self._log.folder = folder
            self._callbacks.append(self._log)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._shown.note(text)

    def busy(self, text: str) -> None:
        """See `Progress`."""
        self._shown.busy(text)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """See `Progress`."""
        self._shown.metrics(line)
        self._happened("metrics", line["steps"], line)

    def played(self, stats: EpisodeStats) -> None:
        """See `Progress`."""
        self._shown.played(stats)
        for game, _ in stats.new_games:
            self._happened("game", game.steps, {"env": game.env, "score": game.score, "length": game.length})

    def learned(self, steps: int, statistics: Mapping[str, Any]) -> None:
        """See `Progress`."""
        self._happened("update", steps, statistics)

    def saved(self, steps: int, path: Path) -> None:
        """See `Progress`."""
        self._happened("checkpoint", steps, {"path": path})

    def close(self) -> None:
        """See `Progress`."""
        self._shown.close()
        if self._log:
            self._log.close()

    def after(self, text: str, result: bool = False) -> None:
        """Say something after training."""
        if self._tell:
            self._tell(text, result=result)
        else:
            self.note(text)

    def _happened(self, kind: Kind, steps: int, data: Mapping[str, Any]) -> None:
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
