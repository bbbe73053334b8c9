"""What ranks cost on one machine: steps per second, and the time that goes into talking.

    python bench/ranks.py [--ranks 1 2 4] [--rounds 5] [--steps 60000] [--preset fast] [-- OPTIONS OF fastpong train]

Each round trains from the start with every number of ranks in turn (1: one process, a subprocess per core, no
mpiexec), and measures the emulator's limit. The speed is that of the steps after the first batch, so compilation and
start do not count. Prints a Markdown table of medians over the rounds:

- steps/s, and its ratio to one process and to the limit of the same round;
- update: seconds between two batches of PPO (collecting and learning);
- talking: share of the time that rank 0 spends in sums and exchanges, waiting for the others included;
- sum: what a sum of the gradient takes by itself, with all ranks ready, times the sums of a batch, as a share of it.
"""

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from fastpong.bench import emulator_limit
from fastpong.config import Config, make_config
from fastpong.policy import make_policy


def launch(ranks: int) -> list[str]:
    """Return the beginning of a command that starts so many ranks."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}") or shutil.which("mpiexec")
    if ranks > 1 and mpiexec is None:
        sys.exit("no mpiexec: pip install mpich")
    return [*([str(mpiexec), "-n", str(ranks)] if ranks > 1 else []), sys.executable]


def train(ranks: int, steps: int, options: list[str]) -> dict[str, float]:
    """Train for some steps; return steps/s and the share of time spent in talking, after the first batch."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ["--set", "eval_games=0", "--set", "log_steps=8192", "--target", "22", "--run", f"{folder}/run"]
        command = [
            *launch(ranks),
            "-m",
            "fastpong",
            "train",
            "--envs",
            "64",
            "--steps",
            str(steps),
            *settings,
            *options,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        lines = [json.loads(line) for line in Path(folder, "run", "metrics.jsonl").read_text().splitlines()]
    first, last = next(line for line in lines if line["updates"]), lines[-1]
    seconds = last["wall_s"] - first["wall_s"]
    return {
        "speed": (last["steps"] - first["steps"]) / seconds,
        "talking": (last["ranks_s"] - first["ranks_s"]) / seconds,
    }


def sum_alone(ranks: int, size: int) -> float:
    """Return the median seconds of one sum of `size` float32 numbers over ranks that do nothing else."""
    if ranks == 1:
        return 0.0
    done = subprocess.run([*launch(ranks), __file__, "--sum", str(size)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def time_sums(size: int) -> None:
    """Under mpiexec: time sums and print the median (rank 0)."""
    from fastpong.ranks import connect

    ranks, buffer, times = connect(), np.ones(size, np.float32), []
    for _ in range(100):
        began = time.perf_counter()
        ranks.sum(buffer)
        times.append(time.perf_counter() - began)
        buffer[:] = 1.0
    if ranks.rank == 0:
        print(statistics.median(times))


def measure(config: Config, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all numbers of ranks in turns; return the medians of each."""
    rounds: dict[int, list[dict[str, float]]] = {ranks: [] for ranks in arguments.ranks}
    size = len(make_policy(config).weights)
    for _ in range(arguments.rounds):
        with contextlib.ExitStack() as stack:
            top = emulator_limit(stack, config)(3.0)
        for ranks, results in rounds.items():
            result = train(ranks, arguments.steps, arguments.options)
            results.append({**result, "limit": top, "sum": sum_alone(ranks, size)})
            print(ranks, results[-1], file=sys.stderr, flush=True)
    table = []
    sums = config.epochs * -(-config.rollout_steps * config.envs // config.minibatch)
    for ranks, results in rounds.items():
        alone = rounds[arguments.ranks[0]]
        middle = {name: statistics.median(result[name] for result in results) for name in results[0]}
        update = config.rollout_steps * config.envs / middle["speed"]
        pairs = [result["speed"] / other["speed"] for result, other in zip(results, alone, strict=True)]
        to_limit = statistics.median(result["speed"] / result["limit"] for result in results)
        table.append(
            {"ranks": ranks, **middle, "ratio": statistics.median(pairs), "to_limit": to_limit, "update": update,
             "sums": sums * middle["sum"] / update}
        )  # fmt: skip
    return table


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--sum", type=int, help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help="options of fastpong train, after --")
    arguments = parser.parse_args()
    if arguments.sum:
        time_sums(arguments.sum)
        return
    rows = measure(make_config(arguments.preset), arguments)
    print("| ranks | steps/s | to one process | to the limit | update, s | talking | sum alone, ms | sums / update |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['ranks']} | {row['speed']:.0f} | {row['ratio']:.2f} | {row['to_limit']:.2f} | {row['update']:.2f} "
            f"| {100 * row['talking']:.1f} % | {1000 * row['sum']:.2f} | {100 * row['sums']:.1f} % |"
        )


if __name__ == "__main__":
    main()
