"""Training as a multiple of bare emulators' speeds, over cores and over envs.

    python -m bench.scaling [--cores 1 2 …] [--envs 8 32 64 256 512] [--engine ale] [--rounds 5] [--seconds 2] [--json]

First the envs of preset fast on 1, 2, 4, … cores, as many as there are: the program and its subprocesses may use no
others; bare emulators have the same cores. Then each other number of envs on all cores. Prints a Markdown table: ALE,
console, vector env and train are those of ``fastpong bench``, medians in turns, and medians of the ratios in a round.
"""

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from bench.common import parser
from fastpong.config import make_config
from fastpong.envs.engine import DEFAULT_ENGINE, ENGINES

_SPEEDS = ("ale", "console", "vector_env", "train")


def measure(cores: int, envs: int, rounds: int, seconds: float, engine: str) -> dict[str, Any]:
    """Measure in this process, which from then on stays on so many cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from fastpong.commands.bench import bench

    return bench(make_config("fast", {"num_envs": envs}), None, seconds, rounds, ("vector_env",), engine)


def apart(*plan: Any) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "bench.scaling", "--one", json.dumps(plan)]
    result: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return result


def row(name: str, result: dict[str, Any]) -> str:
    """Write a row of the table."""
    ratios, of_console, update = result["ratios"], result["console_ratios"], result["stages"]["update"]
    speeds = " | ".join(f"{result[key]:.0f}" for key in _SPEEDS)
    times = f"{ratios['vector_env']:.2f} | {ratios['train']:.2f} | {of_console['train']:.3f}"
    return f"| {name} | {speeds} | {times} | {update:.1f} |"


def main() -> None:
    """Measure each, one after the other."""
    most = len(os.sched_getaffinity(0))
    options = parser(__doc__)
    options.add_argument("--cores", type=int, nargs="*", default=[n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most])
    options.add_argument("--envs", type=int, nargs="*", default=[8, 32, 64, 256, 512])
    options.add_argument("--engine", choices=ENGINES, default=DEFAULT_ENGINE)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--json", action="store_true")
    options.add_argument("--one", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one:
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    usual = make_config("fast").num_envs
    plan = [(cores, usual) for cores in arguments.cores] + [(most, envs) for envs in arguments.envs]
    results = []
    if not arguments.json:
        print("| cores, envs | ALE, steps/s | console | vector env | train ", end="")
        print("| vector env / ALE | train / ALE | train / console | update, µs |")
        print("|---" * 9 + "|", flush=True)
    for cores, envs in plan:
        result = apart(cores, envs, arguments.rounds, arguments.seconds, arguments.engine)
        results.append({"cores": cores, "envs": envs, **result})
        if not arguments.json:
            print(row(f"{cores}, {envs}", results[-1]), flush=True)
    if arguments.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
