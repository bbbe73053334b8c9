"""A run's numbers for TensorBoard, under the keys of CleanRL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastpong.errors import missing
from fastpong.show.events import Callback, Event

KEYS = {
    "steps_per_s": "charts/SPS", "learning_rate": "charts/learning_rate", "score": "charts/score",
    "point_rate": "charts/point_rate", "entropy": "losses/entropy", "approx_kl": "losses/approx_kl",
    "clip_fraction": "losses/clipfrac", "explained_variance": "losses/explained_variance",
}  # fmt: skip
"""Metrics and their keys; games are ``charts/episodic_return`` and ``charts/episodic_length``."""


def tensorboard() -> Callable[[Path], Callback]:
    """Return a function that makes a callback, which writes event files into a run folder.

    Raises `FastpongError` if tensorboardX is missing.
    """
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError:
        raise missing("--log tensorboard", "tensorboardX", "log") from None

    def make(folder: Path) -> Callback:
        writer: Any = None

        def write(event: Event) -> None:
            nonlocal writer
            if event.kind not in ("game", "metrics"):
                return
            if writer is None:  # TensorBoard hides what a killed session has written of this step and later ones
                writer = SummaryWriter(str(folder), purge_step=event.steps)
            if event.kind == "game":
                writer.add_scalar("charts/episodic_return", event.data["score"], event.steps)
                writer.add_scalar("charts/episodic_length", event.data["length"], event.steps)
                return
            for name, key in KEYS.items():
                if event.data.get(name) is not None:
                    writer.add_scalar(key, event.data[name], event.steps)
            writer.flush()

        return write

    return make
