"""Where the time of training goes: µs a step of each stage, of the clock and of the cores.

    python -m bench.stages [--envs 64 128] [--groups 2] [--rounds 5] [--steps 65536]

Trains with preset `fast`, early and in the late phase, and prints a Markdown table, medians of rounds: what the parent
spends in each stage by the clock, and how long its thread ran on a core meanwhile; then how long its other threads (the
learner's second one) and the env subprocesses ran; and all of it. What the stages leave of the clock is outside all of
them: new rows, counting, the loop itself. Each round takes all measurements of all columns, one after the other, while
the processes of the other columns wait; a round before them does not count.

Virtual machines rarely let ``perf stat`` count cache misses. What these cost shows by doing a stage *again* at once,
when what it needs is in the caches: the last number of `preprocess` and `act`, of rounds of their own.
"""

import contextlib
import functools
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import psutil

from bench.common import in_turns, parser
from fastpong.commands.speeds import training
from fastpong.config import make_config
from fastpong.envs.division import Division, divide
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


def again(trainer: Trainer, steps: int) -> Row:
    """Return µs a step of doing `preprocess` and `act` once more, right after the first time."""
    assert isinstance(trainer.sampler, Actor)
    rollout, policy = trainer.sampler.rollout, trainer.sampler.policy
    spent, first = {"preprocess": 0.0, "act": 0.0}, trainer.stats.steps

    def twice(stage: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def both(*arguments: Any) -> Any:
            end = rollout._end  # images are appended
            do(*arguments)
            if stage == "preprocess":
                rollout._end = end
            began = time.perf_counter()
            result = do(*arguments)
            spent[stage] += time.perf_counter() - began
            return result

        return both

    with (
        patch.object(rollout, "record", twice("preprocess", rollout.record)),
        patch.object(policy, "act", twice("act", policy.act)),
    ):
        run(trainer, steps)
    return {name: 1e6 * value / (trainer.stats.steps - first) for name, value in spent.items()}


def on_cores(processes: list[psutil.Process]) -> float:
    """Return for how many seconds processes have run."""
    times = [process.cpu_times() for process in processes]
    return float(sum(time.user + time.system for time in times))


def start(stack: contextlib.ExitStack, envs: int, groups: int, late: bool, steps: int) -> Trainer:
    """Return a trainer of so many envs in so many groups, which has trained for some steps."""

    def in_groups(count: int, workers: int, _default: int, own: int) -> Division:
        return divide(count, workers, groups, own)

    with patch("fastpong.envs.vector_env.divide", in_groups):
        _, trainer = training(stack, make_config("fast", {"num_envs": envs}), None, late=late)
    stack.callback(trainer.close)
    run(trainer, steps)
    return trainer


def one_round(trainer: Trainer, steps: int) -> list[Row]:
    """Return for each stage µs a step of the clock, of the parent's core, and of doing it again at once.

    Of what is not of the parent's thread the first is that of a core as well.
    """
    assert isinstance(trainer.sampler, Actor) and isinstance(trainer.sampler.envs, VectorEnv)
    workers = [psutil.Process(process.pid) for process in trainer.sampler.envs.processes]
    by_clocks = [measured(trainer, steps, workers, clock) for clock in ("perf_counter", "thread_time")]
    return [*by_clocks, again(trainer, steps)]


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--envs", type=int, nargs="+", default=[64, 128])
    options.add_argument("--groups", type=int, nargs="+", default=[2])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=65_536)
    arguments = options.parse_args()
    with contextlib.ExitStack() as stack:
        columns = {
            f"{envs} envs in {groups}, {'late' if late else 'early'}": functools.partial(
                one_round, start(stack, envs, groups, late, arguments.steps), arguments.steps
            )
            for envs in arguments.envs
            for groups in arguments.groups
            for late in (False, True)
        }
        rounds = in_turns(columns, arguments.rounds)
    print("| µs a step: clock / core / again | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in next(iter(rounds.values()))[0][0]:
        cells = []
        for rows in rounds.values():
            kinds = [i for i in range(3) if name in rows[0][i]]
            clock, *others = (statistics.median(row[i][name] for row in rows) for i in kinds)
            shown = f"{clock:.2f}" if name in (*STAGES, "outside all stages", "all") else "–"
            cells.append(" / ".join([shown, *(f"{other:.2f}" for other in others)]))
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
