"""Where the time of training goes: µs a step of each stage, of the clock and of the cores.

    python -m bench.stages [--envs 64 256] [--rounds 5] [--steps 65536]

Trains with preset `fast`, early and in the late phase, and prints a Markdown table, medians of rounds: what the parent
spends in each stage by the clock, and how long its thread ran on a core meanwhile; then how long its other threads (the
learner's second one) and the env subprocesses ran; and all of it. What the stages leave of the clock is outside all of
them: new rows, counting, the loop itself. Each round takes both kinds of measurement, one after the other.
"""

import contextlib
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import patch

import psutil

from bench.common import parser
from fastpong.commands.speeds import training
from fastpong.config import make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.training.actor import STAGES, Actor
from fastpong.training.trainer import Trainer

Row = dict[str, float]


def run(trainer: Trainer, steps: int) -> None:
    """Train for so many steps, and end with an update."""
    goal = trainer.stats.steps + steps
    while True:
        trainer.step()
        if trainer.learn_if_due() and trainer.stats.steps >= goal:
            return


def measured(trainer: Trainer, steps: int, workers: list[psutil.Process], clock: str) -> Row:
    """Return µs a step of one round, with the stages by `clock`: ``perf_counter``, or ``thread_time`` of a core."""
    trainer.sampler.seconds = dict.fromkeys(STAGES, 0.0)
    first = trainer.stats.steps
    clocks: list[Callable[[], float]] = [time.perf_counter, time.thread_time, time.process_time]
    clocks.append(lambda: on_cores(workers))
    began = [one() for one in clocks]
    fake = SimpleNamespace(perf_counter=getattr(time, clock))
    with patch("fastpong.training.actor.time", fake), patch("fastpong.training.trainer.time", fake):
        run(trainer, steps)
    wall, thread, process, envs = (one() - start for one, start in zip(clocks, began, strict=True))
    own = wall if clock == "perf_counter" else thread
    result = {**trainer.sampler.seconds, "outside all stages": own - sum(trainer.sampler.seconds.values()), "all": own}
    result |= {"other threads": process - thread, "env subprocesses": envs, "all cores": process + envs}
    return {name: 1e6 * value / (trainer.stats.steps - first) for name, value in result.items()}


def on_cores(processes: list[psutil.Process]) -> float:
    """Return for how many seconds processes have run."""
    times = [process.cpu_times() for process in processes]
    return float(sum(time.user + time.system for time in times))


def measure(envs: int, late: bool, rounds: int, steps: int) -> dict[str, tuple[float, float]]:
    """Return for each stage µs a step of the clock and of the parent's core; for the rest of a core alone, twice."""
    with contextlib.ExitStack() as stack:
        _, trainer = training(stack, make_config("fast", {"num_envs": envs}), None, late=late)
        stack.callback(trainer.close)
        run(trainer, steps)
        assert isinstance(trainer.sampler, Actor) and isinstance(trainer.sampler.envs, VectorEnv)
        workers = [psutil.Process(process.pid) for process in trainer.sampler.envs.processes]
        rows = [
            [measured(trainer, steps, workers, clock) for clock in ("perf_counter", "thread_time")]
            for _ in range(rounds)
        ]
    medians = [{name: statistics.median(row[i][name] for row in rows) for name in rows[0][i]} for i in (0, 1)]
    return {name: (medians[0][name], medians[1][name]) for name in medians[0]}


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--envs", type=int, nargs="+", default=[64, 256])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=65_536)
    arguments = options.parse_args()
    columns = {
        f"{envs} envs, {'late' if late else 'early'}": measure(envs, late, arguments.rounds, arguments.steps)
        for envs in arguments.envs
        for late in (False, True)
    }
    print("| µs a step: clock / core | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in next(iter(columns.values())):
        cells = [
            f"{column[name][0]:.2f} / {column[name][1]:.2f}" if name in (*STAGES, "outside all stages", "all")
            else f"– / {column[name][1]:.2f}"
            for column in columns.values()
        ]  # fmt: skip
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
