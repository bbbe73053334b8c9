"""Whole-training steps per second: fastpong and its peers, each for the same wall-clock time, in turns.

    python -m bench.peers [--seconds 120] [--rounds 3] [--only NAME …] [--json]

- **fastpong**: ``fastpong train --envs 64``.
- **sb3**: Stable-Baselines3's PPO with its Atari settings (RL Zoo: 8 envs in subprocesses, 128 steps, 4 epochs in
  minibatches of 256, frames of 84×84 in stacks of 4), on the CPU, with sticky actions 0.25 as well, `sb3.py`.
- **plain**: the reference programs' algorithm as a plain NumPy program with one env, `plain.py`.

Peers come as an extra, ``pip install -e '.[bench]'``; one that is not installed is named and left out. A step is a
decision, four frames. Time counts from the start of the process, imports and compiling included; *late* is the speed
in the second half of it. The score is the mean of the last 100 games that ended (random play: about −20.5).
"""

import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.common import parser, train_command
from fastpong.errors import install
from fastpong.runs.facts import read_metrics

NAMES = {"fastpong": None, "sb3": "stable_baselines3", "plain": None}
"""Peers, and the package that each needs."""


def fastpong(seconds: float, seed: int) -> list[dict[str, Any]]:
    """Train with the command line; return the lines of its metrics."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        lines_of(train_command(run, "--envs", "64", "--seed", str(seed), "--set", "log_interval=4096"), seconds)
        return read_metrics(run / "metrics.jsonl")


def lines_of(command: list[str], seconds: float) -> str:
    """Run a command for so many seconds, then interrupt it; return what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]


def measure(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Train one of them; return its steps, its speeds and its score."""
    if name == "fastpong":
        lines = fastpong(seconds, seed)
    else:
        command = [sys.executable, "-m", f"bench.{name}", "--seconds", str(seconds), "--seed", str(seed)]
        lines = [json.loads(line) for line in lines_of(command, seconds + 60).splitlines()]
    lines = [line for line in lines if line["wall_s"] <= seconds]
    if not lines:
        raise SystemExit(f"{name} finished nothing in {seconds:g} s: give it more with --seconds")
    last = lines[-1]
    begin = {"wall_s": 0.0, "steps": 0}  # if it has not got anywhere in the first half
    middle = max((line for line in [begin, *lines] if line["wall_s"] <= seconds / 2), key=lambda line: line["steps"])
    late = (last["steps"] - middle["steps"]) / (last["wall_s"] - middle["wall_s"])
    return {"steps": last["steps"], "speed": last["steps"] / last["wall_s"], "late": late, "score": last["score"]}


def main() -> None:
    """Measure all of them in turns and print a table."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=120.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    results: dict[str, list[dict[str, Any]]] = {}
    for number in range(arguments.rounds):
        for name in arguments.only:
            package = NAMES[name]
            if package and importlib.util.find_spec(package) is None:
                print(f"{name} is left out: {install('bench')}", file=sys.stderr)
                continue
            results.setdefault(name, []).append(measure(name, arguments.seconds, number))
            print(f"round {number + 1}, {name}: {results[name][-1]}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps({"seconds": arguments.seconds, "cores": len(os.sched_getaffinity(0)), "rounds": results}))
        return
    print(
        f"| {arguments.seconds:.0f} s each, medians of {arguments.rounds} | steps/s, whole | late | fastpong over it |"
    )
    print("|---|---|---|---|")
    for name, rounds in results.items():
        whole, late = (statistics.median(r[key] for r in rounds) for key in ("speed", "late"))
        ratio = "–"
        if "fastpong" in results:
            pairs = zip(results["fastpong"], rounds, strict=True)
            ratio = f"{statistics.median(ours['speed'] / theirs['speed'] for ours, theirs in pairs):.1f}"
        print(f"| {name} | {whole:.0f} | {late:.0f} | {ratio} |")


if __name__ == "__main__":
    main()
