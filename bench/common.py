"""What several scripts share: options, trainings by the command line, and measurements in turns."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fastpong.config import Config, make_config
from fastpong.config_sources import parse_assignments
from fastpong.runs.facts import read_metrics

T = TypeVar("T")


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows a script's docstring as it is."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def output_of(command: Sequence[str]) -> str:
    """Run a command and return what it prints; if it fails, exit with its errors."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def train_command(run: Path, *options: str) -> list[str]:
    """Return the command of a training that stops at no score and plays no evaluation."""
    command = [sys.executable, "-m", "fastpong", "train", "--run", str(run)]
    return [*command, "--target", "22", "--set", "eval_games=0", *options]


def train_on_ranks(
    launcher: Sequence[str], steps: int, settings: Sequence[str] = (), options: Sequence[str] = ()
) -> dict[str, float]:
    """Train preset `fast` with other `settings` (``key=value``) and more options of `fastpong train`.

    `launcher` starts the ranks. Returns steps/s and the share of communication of the whole batches after three.
    """
    config = make_config("fast", parse_assignments(list(settings)))
    batch = config.rollout_steps * config.num_envs
    words = [word for setting in (*settings, f"log_interval={batch}") for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        output_of([*launcher, *train_command(run, "--steps", str(steps), *words, *options)])
        lines = read_metrics(run / "metrics.jsonl")
    whole = [line for line in lines if line["steps"] % batch == 0]  # just after an update
    if len(whole) < 4:
        sys.exit(f"{steps} steps are {len(whole)} batches of {batch}: at least four are needed (--steps)")
    first, last = whole[2], whole[-1]  # until then kernels are loaded
    seconds, communicating = (last[key] - first[key] for key in ("wall_s", "comm_s"))
    return {"speed": (last["steps"] - first["steps"]) / seconds, "communication": communicating / seconds}


def allreduces(config: Config) -> int:
    """Return how many gradients are summed over the ranks in a batch: one for each minibatch of each epoch."""
    return config.update_epochs * -(-config.rollout_steps * config.num_envs // config.minibatch_size)


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def per_sample(work: Callable[[], Any], samples: int) -> Callable[[], float]:
    """Return a measurement of `work`, which handles so many samples: µs per sample."""
    return lambda: 1e6 * timed(work) / samples


def in_turns(measurements: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Take each measurement in turns; return those of each by its name, after an uncounted round."""
    values: dict[str, list[T]] = {name: [] for name in measurements}
    for number in range(rounds + 1):
        for name, measure in measurements.items():
            values[name].extend([measure()] * (number > 0))
    return values
