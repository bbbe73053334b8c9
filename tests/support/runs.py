"""What a run writes into its folder, without a training: facts of a checkpoint, a line of metrics."""

from typing import Any

from fastpong.config import Config, make_config
from fastpong.runs.facts import Facts

SMALL = make_config("karpathy", {"hidden_units": 2})


def line(steps: int, /, **changes: Any) -> dict[str, Any]:
    """Return a line of metrics that all commands read."""
    return {
        "wall_s": steps / 1000, "steps": steps, "steps_per_s": 1000.0, "games": 1, "score": -20.0, "point_rate": 0.1,
        "updates": 3, **changes,
    }  # fmt: skip


def facts(steps: int, config: Config = SMALL, **changes: Any) -> Facts:
    """Return what a checkpoint says that was saved after so many steps."""
    return Facts(**{"config": config, "steps": steps, "engine": "console", **changes})
