"""What it costs a training that nothing is lost: lines of metrics, checkpoints, and saved states of envs.

    python -m bench.cost [--steps 1000000]

Trains with preset `fast`, takes the time of all that is written, checks included, and counts how often subprocesses
save the states of their envs, which is timed alone afterwards. Prints the shares of the seconds of training.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fastpong
from bench.common import parser, timed
from fastpong.envs.handle import WorkerHandle
from fastpong.envs.pool import SHARED_STEPS
from fastpong.envs.vector_env import VectorEnv
from fastpong.envs.worker import SAVE
from fastpong.parallel.machine import usable_cores
from fastpong.training.loop import _Log

ENVS = 64


def time_to_save() -> float:
    """Return the seconds for which all subprocesses save the states of their envs, once."""
    with VectorEnv(ENVS) as envs:
        envs.reset()
        for _ in range(SHARED_STEPS + ENVS):  # until each env has an emulator of its own
            envs.step(envs.action_space.sample())
        envs.snapshot()
        return min(timed(envs.snapshot) for _ in range(20))


def cost(folder: Path, steps: int) -> dict[str, Any]:
    """Train for so many steps."""
    write, put = _Log.write, WorkerHandle._put
    writing, saves = [0.0], [0]

    def timed_write(log: _Log, *arguments: Any) -> None:
        began = time.perf_counter()
        write(log, *arguments)
        writing[0] += time.perf_counter() - began

    def counted_put(handle: WorkerHandle, message: bytes) -> None:
        saves[0] += message == SAVE
        put(handle, message)

    with patch.object(_Log, "write", timed_write), patch.object(WorkerHandle, "_put", counted_put):
        run = fastpong.train(envs=ENVS, steps=steps, target=22, run=folder / "run", progress="none", eval_games=0)
    seconds, workers = run.last["wall_s"], usable_cores()
    saving = saves[0] / workers * time_to_save()
    return {
        "steps": run.last["steps"], "seconds": seconds, "lines": len(run.metrics), "states saved": saves[0] // workers,
        "lines and checkpoints": round(writing[0] / seconds, 5), "states of envs": round(saving / seconds, 5),
    }  # fmt: skip


def main() -> None:
    """Print it."""
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=1_000_000)
    arguments: argparse.Namespace = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(cost(Path(folder), arguments.steps), indent=1))


if __name__ == "__main__":
    main()
