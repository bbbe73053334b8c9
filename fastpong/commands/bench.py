"""``fastpong bench``: steps per second, everything in turns within one run, as multiples of bare emulators' speeds."""

import contextlib
import dataclasses
import importlib.util
import statistics
from collections.abc import Callable, Collection
from typing import Any

from fastpong.commands import speeds
from fastpong.commands.speeds import Measure
from fastpong.config import Config, settings
from fastpong.envs.engine import DEFAULT_ENGINE, check_engine
from fastpong.envs.verify import usable
from fastpong.errors import tell
from fastpong.parallel.machine import versions
from fastpong.system import processor
from fastpong.training.actor import STAGES
from fastpong.training.trainer import Trainer

NAMES = {
    "ale": "ALE alone, one process per core",
    "console": "the console alone, one process per core, with screens",
    "vector_env": "fastpong's vector env, random actions",
    "train": "fastpong's whole training loop",
    "train_late": "the same in the late phase: batches and minibatches four times as large",
    "stock_async": "AsyncVectorEnv over gym.make('ALE/Pong-v5')",
    "ale_vector": "ale-py's AtariVectorEnv, 84×84",
    "ale_vector_native": "ale-py's AtariVectorEnv, 210×160",
    "envpool": "EnvPool, 84×84, a thread per core",
}
"""What is measured; EnvPool only if it is installed (the extra ``bench``)."""

BARE = {"ratios": "ale", "console_ratios": "console"}
"""Results that say how many times as fast as bare emulators each is, and as which."""

_ORDER = (
    "stock_async", "ale_vector", "ale_vector_native", "vector_env", "ale", "train", "console", "train_late", "envpool"
)  # fmt: skip
"""In which they take turns: the nearer to bare emulators in time, the better a ratio tells."""

_BUSY = 1.15
"""By how much the speeds of bare ALE in two rounds differ on a machine that others use as well."""

TURN = 0.5
"""Seconds for which each is measured before it is the next one's turn.

The speed of a machine that others use as well is another one after some seconds: that of bare ALE had a correlation of
0.8 with itself half a second later, of 0.5 after two seconds, and of none after four.
"""


def bench(
    config: Config, workers: int | None, seconds: float, rounds: int, names: Collection[str] = NAMES,
    engine: str = DEFAULT_ENGINE,
) -> dict[str, Any]:  # fmt: skip
    """Measure the speeds of `names` (of `NAMES`; `ale`, `console` and `train` always) in turns.

    Each is measured for `seconds` in each of `rounds` rounds, in turns of about half a second, after an uncounted one.
    Returns medians in steps/s by the names of `NAMES`; `ratios` to bare ALE and `console_ratios` to the bare console
    (medians of the ratios within a round); `stages` of the training loop in µs per step; all `rounds`; the `settings`;
    and the `machine`. Where the console is not `usable`, nothing is said of it.
    """
    check_engine(engine)
    with contextlib.ExitStack() as stack:
        measures, trainer = _start(stack, config, workers, names, engine)
        order = sorted(measures, key=_ORDER.index)
        tell("warming up")
        for name in order:
            measures[name](min(seconds, 1.0))
        trainer.sampler.seconds, before = dict.fromkeys(STAGES, 0.0), trainer.stats.steps
        measured: dict[str, list[float]] = {name: [] for name in NAMES if name in measures}
        turns = max(1, round(seconds / TURN))
        for number in range(1, rounds + 1):
            tell(f"round {number} of {rounds}")
            parts = [[measures[name](seconds / turns) for name in order] for _ in range(turns)]
            for name, values in zip(order, zip(*parts, strict=True), strict=True):
                measured[name].append(statistics.fmean(values))
        steps = trainer.stats.steps - before
        stages = {stage: round(1e6 * spent / steps, 3) for stage, spent in trainer.sampler.seconds.items()}
    medians = {name: round(statistics.median(values), 1) for name, values in measured.items()}
    ratios = {
        key: {name: round(statistics.median(_ratios(values, measured[bare])), 4) for name, values in measured.items()}
        for key, bare in BARE.items()
        if bare in measured
    }
    return {
        **medians,
        **ratios,
        "stages": stages,
        "rounds": {name: [round(value, 1) for value in values] for name, values in measured.items()},
        "settings": {**dataclasses.asdict(config), "seconds": seconds, "engine": engine},
        "machine": {"processor": processor(), **versions()},
    }


def _ratios(values: list[float], of: list[float]) -> list[float]:
    """Return the ratios within a round."""
    return [a / b for a, b in zip(values, of, strict=True)]


def _start(
    stack: contextlib.ExitStack, config: Config, workers: int | None, names: Collection[str], engine: str
) -> tuple[dict[str, Measure], Trainer]:
    """Start what is measured; those that fork a process per env come first, before this process has any thread."""
    starts: dict[str, Callable[[], Measure]] = {
        "stock_async": lambda: speeds.stock_async(stack, config),
        "ale": lambda: speeds.bare_ale(stack, config),
        "console": lambda: speeds.bare_console(stack, config),
        "ale_vector": lambda: speeds.ale_vector(stack, config, 84, 84),
        "ale_vector_native": lambda: speeds.ale_vector(stack, config, 210, 160),
        "vector_env": lambda: speeds.vector_env(stack, config, workers, engine),
        "train_late": lambda: speeds.training(stack, config, workers, engine, late=True)[0],
        "envpool": lambda: speeds.envpool(config),
    }
    wanted = {*BARE.values(), *names} - ({"envpool"} if importlib.util.find_spec("envpool") is None else set())
    if usable("console") != "console":
        wanted.discard("console")
    if "late_by_step" not in settings(config.algorithm):
        wanted.discard("train_late")
    measures = {}
    for name in (name for name in starts if name in wanted):
        tell(f"starting {NAMES[name]}")
        measures[name] = starts[name]()
    tell(f"starting {NAMES['train']}")
    measures["train"], trainer = speeds.training(stack, config, workers, engine)
    return measures, trainer


def table(results: dict[str, Any]) -> list[str]:
    """Results of `bench` as lines of text, the fastest first."""
    rounds, ale = results["rounds"], results["rounds"]["ale"]
    lines = [f"{'steps/s':>9} {'times ALE':>9}  {'range':<15} {'of console':>10}"]
    for name in sorted(rounds, key=lambda name: -results[name]):
        times, of_console = _ratios(rounds[name], ale), results.get("console_ratios", {}).get(name)
        text = f"{results[name]:>9,.0f} {results['ratios'][name]:>9.2f}  {f'{min(times):.2f} … {max(times):.2f}':<15}"
        lines.append(f"{text} {'–' if of_console is None else f'{of_console:.3f}':>10}  {NAMES[name]}")
    stages, machine = results["stages"], results["machine"]
    lines += ["", "µs per step of the training process, by stage:"]
    lines += ["   ".join(f"{stage} {value:.2f}" for stage, value in stages.items())]
    lines += [f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}"]
    if max(ale) > _BUSY * min(ale):
        lines += [f"bare ALE is {max(ale) / min(ale):.2f} times as fast in one round as in another: a busy machine"]
    lines += [f"training runs at {results['ratios']['train']:.2f} times the speed of bare ALE"]
    return lines
