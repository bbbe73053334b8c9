"""What ranks cost on one machine: steps per second, and the time that goes into communication.

    python -m bench.ranks [--ranks 1 2 4] [--rounds 5] [--steps 400000] [--set KEY=VALUE …]
    mpiexec -n 2 python -m bench.ranks --allreduce SIZE … [--rounds 100]

Each round trains preset fast from the start with every number of ranks in turn (1: one process, a subprocess per core,
no mpiexec), and measures bare ALE. The speed is that of the steps after three batches, so compilation and start do not
count. Prints a Markdown table of medians over the rounds:

- steps/s, and its ratio to one process and to bare ALE of the same round;
- update: seconds between two batches of PPO (stepping and learning);
- communication: share of the time that rank 0 spends in it, waiting for the others included;
- allreduce: what an allreduce of the gradient takes by itself, with all ranks ready, and times those of a batch, as a
  share of the update.

With ``--allreduce`` the ranks do nothing else; rank 0 prints the median seconds of summing SIZE float32 numbers, for
each size, as a JSON list.
"""

import argparse
import contextlib
import json
import shutil
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import allreduces, output_of, parser, timed, train_on_ranks
from fastpong.commands.speeds import bare_ale
from fastpong.config import Config, make_config
from fastpong.config_sources import parse_assignments
from fastpong.parallel.mpi import connect
from fastpong.policy import make_policy


def launcher(ranks: int) -> list[str]:
    """Return the beginning of a command that starts so many ranks."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}") or shutil.which("mpiexec")
    if ranks > 1 and mpiexec is None:
        sys.exit("no mpiexec: pip install mpich")
    return [str(mpiexec), "-n", str(ranks)] if ranks > 1 else []


def allreduce_alone(ranks: int, size: int) -> float:
    """Return the median seconds of one allreduce of `size` float32 numbers over ranks that do nothing else."""
    if ranks == 1:
        return 0.0
    command = [*launcher(ranks), sys.executable, "-m", "bench.ranks", "--allreduce", str(size), "--rounds", "100"]
    return float(json.loads(output_of(command))[0])


def time_allreduces(sizes: list[int], rounds: int) -> None:
    """Print the median seconds of an allreduce of each size; every rank calls this."""
    comm, medians = connect(), []
    for size in sizes:
        buffer = np.zeros(size, np.float32)  # zeros stay finite
        times = [timed(partial(comm.allreduce, buffer)) for _ in range(rounds + 1)]
        medians.append(statistics.median(times[1:]))
    if comm.rank == 0:
        print(json.dumps(medians))


def measure(config: Config, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all numbers of ranks in turns; return the medians of each."""
    rounds: dict[int, list[dict[str, float]]] = {ranks: [] for ranks in arguments.ranks}
    size = len(make_policy(config).weights.flat)
    for _ in range(arguments.rounds):
        with contextlib.ExitStack() as stack:
            alone = bare_ale(stack, config)(3.0)
        for ranks, results in rounds.items():
            result = train_on_ranks(launcher(ranks), arguments.steps, arguments.set)
            results.append({**result, "ale": alone, "allreduce": allreduce_alone(ranks, size)})
            print(ranks, results[-1], file=sys.stderr, flush=True)
    table = []
    for ranks, results in rounds.items():
        first = rounds[arguments.ranks[0]]
        middle = {name: statistics.median(result[name] for result in results) for name in results[0]}
        update = config.rollout_steps * config.num_envs / middle["speed"]
        pairs = [result["speed"] / other["speed"] for result, other in zip(results, first, strict=True)]
        to_ale = statistics.median(result["speed"] / result["ale"] for result in results)
        table.append(
            {"ranks": ranks, **middle, "ratio": statistics.median(pairs), "to_ale": to_ale, "update": update,
             "allreduces": allreduces(config) * middle["allreduce"] / update}
        )  # fmt: skip
    return table


def main() -> None:
    """Measure, and print the table."""
    options = parser(__doc__)
    options.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=400_000)
    options.add_argument("--allreduce", type=int, nargs="+", metavar="SIZE")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for fastpong train")
    arguments = options.parse_args()
    if arguments.allreduce:
        time_allreduces(arguments.allreduce, arguments.rounds)
        return
    rows = measure(make_config("fast", parse_assignments(arguments.set)), arguments)
    print("| ranks | steps/s | to one process | to bare ALE | update, s | communication | allreduce, ms | a batch's |")
    print("|---" * 8 + "|")
    for row in rows:
        print(
            f"| {row['ranks']} | {row['speed']:.0f} | {row['ratio']:.2f} | {row['to_ale']:.2f} "
            f"| {row['update']:.2f} | {100 * row['communication']:.1f} % | {1000 * row['allreduce']:.2f} "
            f"| {100 * row['allreduces']:.1f} % |"
        )


if __name__ == "__main__":
    main()
