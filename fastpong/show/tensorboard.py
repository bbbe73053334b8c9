"""A run's numbers for TensorBoard, under the keys of CleanRL."""

import contextlib
import time
from pathlib import Path
from socket import gethostname
from typing import Any

from fastpong.errors import missing, tell
from fastpong.show.events import Event

KEYS = {
    "steps_per_s": "charts/SPS", "learning_rate": "charts/learning_rate", "score": "charts/score",
    "point_rate": "charts/point_rate", "entropy": "losses/entropy", "approx_kl": "losses/approx_kl",
    "clip_fraction": "losses/clipfrac", "explained_variance": "losses/explained_variance",
}  # fmt: skip
"""Metrics and their keys; games are ``charts/episodic_return`` and ``charts/episodic_length``."""


class TensorBoard:
    """A callback that writes an event file into a run folder.

    It writes at once, where tensorboardX's ``SummaryWriter`` has a thread: on a full disk that thread ends, and whoever
    gives it the next event waits for ever. Raises `FastpongError` if tensorboardX is missing.
    """

    def __init__(self) -> None:
        try:
            from tensorboardX import record_writer, summary
            from tensorboardX.proto.event_pb2 import Event as Record
            from tensorboardX.proto.event_pb2 import SessionLog
        except ModuleNotFoundError:
            raise missing("--log tensorboard", "tensorboardX", "log") from None
        self._open, self._record, self._scalar = record_writer.RecordWriter, Record, summary.scalar
        self._start = SessionLog(status=SessionLog.START)
        self._file: Any = None
        self._failed = False
        self.folder = Path()

    def __call__(self, event: Event) -> None:
        """Write a game, or a line of metrics."""
        if event.kind == "game":
            values = {"charts/episodic_return": event.data["score"], "charts/episodic_length": event.data["length"]}
        elif event.kind == "metrics":
            values = {key: event.data[name] for name, key in KEYS.items() if event.data.get(name) is not None}
        else:
            return
        if self._failed:  # nobody could read what comes after a record that is cut
            return
        try:
            if self._file is None:
                self._file = self._open(str(self.folder / f"events.out.tfevents.{time.time():.0f}.{gethostname()}"))
                self._write(event.steps, file_version="brain.Event:2")
                # TensorBoard then hides what a killed session has written of this step and later ones.
                self._write(event.steps, session_log=self._start)
            for key, value in values.items():
                self._write(event.steps, summary=self._scalar(key, value))
            self._file.flush()
        except OSError as error:
            self._failed = True
            tell(f"fastpong: {error.strerror or error}: no more is logged for TensorBoard; training goes on")

    def _write(self, steps: int, **what: object) -> None:
        record = self._record(wall_time=time.time(), step=steps, **what)
        self._file.write(record.SerializeToString())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # it was told
                self._file.close()
