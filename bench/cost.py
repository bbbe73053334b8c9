"""What it costs a training that nothing is lost: metrics, checkpoints, early weights, and copied states of envs.

    python -m bench.cost [--steps 1000000] [--engine ale]

Trains with preset `fast`, takes the time of all that is written, checks included, and that in which the parent copies
the states of the envs before each step. Prints the shares of the seconds of training.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fastpong
from bench.common import parser
from fastpong.envs.engine import DEFAULT_ENGINE, ENGINES
from fastpong.envs.worker_handle import WorkerHandle
from fastpong.training.loop import _Log

ENVS = 64


def timed_calls(method: Any, seconds: list[float]) -> Any:
    """Return a method that does the same, and adds up its time."""

    def call(*arguments: Any) -> Any:
        began = time.perf_counter()
        result = method(*arguments)
        seconds[0] += time.perf_counter() - began
        return result

    return call


def cost(folder: Path, steps: int, engine: str) -> dict[str, Any]:
    """Train for so many steps."""
    writing, keeping, copying = [0.0], [0.0], [0.0]
    with (
        patch.object(_Log, "write", timed_calls(_Log.write, writing)),
        patch.object(_Log, "keep_history", timed_calls(_Log.keep_history, keeping)),
        patch.object(WorkerHandle, "_keep_rows", timed_calls(WorkerHandle._keep_rows, copying)),
    ):
        run = fastpong.train(
            envs=ENVS, steps=steps, target=22, run=folder / "run", progress="none", engine=engine, eval_games=0
        )
    seconds = run.last["wall_s"]
    return {
        "steps": run.last["steps"], "seconds": seconds, "lines": len(run.metrics),
        "lines and checkpoints": round(writing[0] / seconds, 5), "history": round(keeping[0] / seconds, 5),
        "states of envs": round(copying[0] / seconds, 5),
    }  # fmt: skip


def main() -> None:
    """Print it."""
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=1_000_000)
    options.add_argument("--engine", choices=ENGINES, default=DEFAULT_ENGINE)
    arguments: argparse.Namespace = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(cost(Path(folder), arguments.steps, arguments.engine), indent=1))


if __name__ == "__main__":
    main()
