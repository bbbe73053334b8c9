"""Training as a share of the emulator's limit, over cores and over games.

    python bench/scaling.py [--cores 1 2 …] [--envs 8 32 128 512] [--rounds 5] [--seconds 2] [--json]

First 64 games on 1, 2, 4, … cores, as many as there are: the program and its subprocesses may use no others, with one
game subprocess for each; the limit is that of the same cores. Then each other number of games on all cores. *limit*,
*games* and *train* are those of ``fastpong bench``: in turns, medians, and medians of the ratios within a round.
"""

import argparse
import json
import os
import subprocess
import sys
from typing import Any


def measure(cores: int, envs: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure in this process, which from then on stays on so many cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from fastpong.bench import bench
    from fastpong.config import make_config

    return bench(make_config("fast", {"envs": envs}), None, seconds, rounds, ("limit", "games", "train"))


def apart(cores: int, envs: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure in a process of its own."""
    request = json.dumps([cores, envs, rounds, seconds])
    done = subprocess.run([sys.executable, __file__, "--one", request], stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def row(name: str, result: dict[str, Any]) -> str:
    """Write a row of the table."""
    ratios, learn = result["ratios"], result["stages"]["learn"]
    speeds = " | ".join(f"{result[key]:.0f}" for key in ("limit", "games", "train"))
    return f"| {name} | {speeds} | {ratios['games']:.2f} | {ratios['train']:.2f} | {learn:.1f} |"


def main() -> None:
    """Measure each, one after the other."""
    most = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, nargs="*", default=[n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most])
    parser.add_argument("--envs", type=int, nargs="*", default=[8, 32, 128, 512])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    plan = [(cores, 64) for cores in arguments.cores] + [(most, envs) for envs in arguments.envs]
    results = []
    if not arguments.json:
        print("| cores, games | limit, steps/s | games | train | games / limit | train / limit | learning, µs a step |")
        print("|---" * 7 + "|", flush=True)
    for cores, envs in plan:
        results.append({"cores": cores, "envs": envs, **apart(cores, envs, arguments.rounds, arguments.seconds)})
        if not arguments.json:
            print(row(f"{cores}, {envs}", results[-1]), flush=True)
    if arguments.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
