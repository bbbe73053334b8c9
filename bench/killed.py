"""A training that is killed at each of its operations on files, one after the other, and resumed each time.

    python -m bench.killed [--steps 3200] [--every 1]

Afterwards its folder has to be that of a run which nobody disturbed: settings, lines of metrics, checkpoints,
candidates and ``best.npz``, but for times. Prints how many operations were tried, and what differed; exit code 1 if
anything did.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.common import output_of, parser
from fastpong import files
from fastpong.config_sources import read_toml
from fastpong.main import main as fastpong
from fastpong.runs.checkpoint import load
from fastpong.runs.facts import read_metrics

SETTINGS = {
    "hidden_units": 64, "batch_size": 400, "minibatch_size": 96, "update_epochs": 2, "late_win_rate": 0,
    "log_interval": 400, "checkpoint_interval": 800, "eval_games": 0,
}  # fmt: skip
TIMES = ("wall_s", "steps_per_s", "comm_s", "batch_s", "replaced")
CHANGES = ("open", "write", "fsync", "replace", "unlink", "makedirs", "ftruncate")


class Killing:
    """Stands for the module `os` in `fastpong.files`: before the n-th of its `CHANGES` the process is killed."""

    def __init__(self, at: int):
        self._left = at

    def __getattr__(self, name: str) -> Any:
        if name in CHANGES:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(os, name)


def differences(one: Path, other: Path) -> list[str]:
    """Return the files of two run folders that differ in more than times."""
    ours, theirs = ({str(path.relative_to(run)): path for path in run.rglob("*")} for run in (one, other))
    return sorted(name for name in ours | theirs if content(ours.get(name)) != content(theirs.get(name)))


def content(path: Path | None) -> object:
    """Return what a file of a run says, without times; None: it is not there."""
    if path is None or path.is_dir() or path.name == "lock":
        return path and path.name
    if path.suffix == ".toml":
        return read_toml(path)[0]
    if path.suffix == ".jsonl":
        return [_timeless(line) for line in read_metrics(path)]
    if path.suffix != ".npz":
        return path.read_bytes()
    arrays, about = load(path)
    about = {**_timeless(about), "line": _timeless(about.get("line") or {})}
    return about, {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def _timeless(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in TIMES}


def command(folder: Path, steps: int) -> list[str]:
    """Return what begins the run, or goes on with it."""
    options = ["--run", str(folder), "--steps", str(steps), "--target", "22", "--progress", "none"]
    if (folder / "config.toml").exists():
        return ["train", *options, "--resume"]
    return ["train", *options, "--envs", "8", *(f"--set={name}={value}" for name, value in SETTINGS.items())]


def main() -> None:
    """Kill and resume, or be the one that is killed."""
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=3200)
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--at", type=int, help=argparse.SUPPRESS)
    options.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.at:
        vars(files)["os"] = Killing(arguments.at)
        sys.argv = ["fastpong", *arguments.rest]
        fastpong()
    with tempfile.TemporaryDirectory() as name:
        whole, at, wrong, killed = Path(name, "whole"), 1, {}, 0
        output_of([sys.executable, "-m", "fastpong", *command(whole, arguments.steps)])
        while True:
            folder = Path(name, str(at))
            child = [sys.executable, "-m", "bench.killed", "--at", str(at), "--", *command(folder, arguments.steps)]
            done = subprocess.run(child, capture_output=True, text=True)
            if done.returncode == 0:
                break
            if done.returncode != -signal.SIGKILL:
                sys.exit(f"at {at}: {done.stderr}")
            killed += 1
            output_of([sys.executable, "-m", "fastpong", *command(folder, arguments.steps)])
            if different := differences(whole, folder):
                wrong[at] = different
            at += arguments.every
    print(json.dumps({"killed and resumed": killed, "operations": at, "different": wrong}, indent=1))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
