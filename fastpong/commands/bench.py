"""Steps per second, honestly: everything in turns within one run, against the emulator's own speed.

The limit is one process per core that only steps emulators, without looking at a screen or talking to anyone.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import itertools
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

import ale_py
import gymnasium
import numpy as np
from ale_py import Action, ALEInterface, AtariVectorEnv, roms
from gymnasium.vector import AsyncVectorEnv

from fastpong.config import Config, settings
from fastpong.envs.vector_env import VectorEnv
from fastpong.envs.worker import start_method
from fastpong.parallel.machine import usable_cores
from fastpong.training.loop import versions
from fastpong.training.trainer import STAGES, Trainer, load_kernels

Measure = Callable[[float], float]
"""Runs for about so many seconds and returns steps per second."""

NAMES = {
    "limit": "the emulator alone, one process per core",
    "vector_env": "fastpong's vector env, random actions",
    "train": "fastpong's whole training loop",
    "train_late": "the same in the late phase: the critic learns as well",
    "stock_async": "AsyncVectorEnv over gym.make('ALE/Pong-v5')",
    "ale_vector": "ale-py's AtariVectorEnv, 84×84",
    "ale_vector_native": "ale-py's AtariVectorEnv, 210×160",
    "envpool": "EnvPool, 84×84, a thread per core",
}
"""What is measured; EnvPool only if it is installed (the extra ``bench``)."""

_ORDER = ("stock_async", "ale_vector", "ale_vector_native", "vector_env", "limit", "train", "train_late", "envpool")
"""In which they take turns: the nearer to the limit in time, the better a ratio tells."""

TURN = 0.5
"""Seconds for which each is measured before it is the next one's turn.

The speed of a machine that others use as well is another one after some seconds: that of the limit had a correlation of
0.8 with itself half a second later, of 0.5 after two seconds, and of none after four.
"""


def bench(
    config: Config, workers: int | None, seconds: float, rounds: int, names: Collection[str] = NAMES
) -> dict[str, Any]:
    """Measure the speeds of `NAMES` in turns.

    Parameters
    ----------
    config : Config
        Settings of the games and of the training loop.
    workers : int or None
        Game subprocesses.
    seconds : float
        Length of each measurement, in turns of about half a second.
    rounds : int
        Measurements of each, after an uncounted one.
    names : collection of str
        Which of `NAMES` are measured; ``limit`` and ``train`` always are.

    Returns
    -------
    dict
        Medians in steps/s by the names of `NAMES`; ``ratios`` to the limit (medians of the ratios within a round);
        ``stages`` of the training loop in µs per step; all ``rounds``; and the ``machine``.
    """
    with contextlib.ExitStack() as stack:
        # Those that fork a process per game come first, before this process has any thread.
        measures: dict[str, Measure] = {}
        if "stock_async" in names:
            measures["stock_async"] = _stock_async(stack, config)
        measures["limit"] = emulator_limit(stack, config)
        if "ale_vector" in names:
            measures["ale_vector"] = _ale_vector(stack, config, 84, 84)
        if "ale_vector_native" in names:
            measures["ale_vector_native"] = _ale_vector(stack, config, 210, 160)
        if "vector_env" in names:
            measures["vector_env"] = _vector_env(stack, config, workers)
        if "train_late" in names and "critic_replay_batches" in settings(config.algorithm):
            measures["train_late"], _ = _train(stack, config, workers, late=True)
        measures["train"], trainer = _train(stack, config, workers)
        if "envpool" in names and importlib.util.find_spec("envpool"):
            measures["envpool"] = _envpool(config)
        speeds: dict[str, list[float]] = {name: [] for name in NAMES if name in measures}
        for number in range(rounds + 1):
            _progress(f"round {number} of {rounds}" if number else "warming up")
            order = sorted(speeds, key=_ORDER.index)
            if number == 0:
                for name in order:
                    measures[name](min(seconds, 1.0))
                trainer.seconds = dict.fromkeys(STAGES, 0.0)
                trained_before = trainer.stats.steps
                continue
            turns = max(1, round(seconds / TURN))
            parts = [[measures[name](seconds / turns) for name in order] for _ in range(turns)]
            for name, values in zip(order, zip(*parts, strict=True), strict=True):
                speeds[name].append(statistics.fmean(values))
        steps = trainer.stats.steps - trained_before
        stages = {stage: round(1e6 * spent / steps, 3) for stage, spent in trainer.seconds.items()}
    medians = {name: round(statistics.median(values), 1) for name, values in speeds.items()}
    ratios = {
        name: round(statistics.median(a / b for a, b in zip(values, speeds["limit"], strict=True)), 4)
        for name, values in speeds.items()
    }
    return {
        **medians,
        "ratios": ratios,
        "stages": stages,
        "rounds": {name: [round(value, 1) for value in values] for name, values in speeds.items()},
        "settings": {**dataclasses.asdict(config), "seconds": seconds},
        "machine": {"processor": _processor(), **versions()},
    }


def table(results: dict[str, Any]) -> str:
    """Results of `bench` as text."""
    lines = [f"{'steps/s':>9} {'of limit':>9}"]
    for name in results["ratios"]:
        lines.append(f"{results[name]:>9,.0f} {results['ratios'][name]:>9.2f}  {name:<18} {NAMES[name]}")
    lines.append("")
    lines.append("µs per step of the training process, by stage:")
    lines.append("   ".join(f"{stage} {value:.2f}" for stage, value in results["stages"].items()))
    machine = results["machine"]
    lines.append(f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}")
    return "\n".join(lines)


def emulator_limit(stack: contextlib.ExitStack, config: Config) -> Measure:
    """Start bare emulators, one process per core; the returned function measures their steps/s for some seconds."""
    cores = min(usable_cores(), config.num_envs)
    pipes = []
    with start_method() as method:
        context: Any = multiprocessing.get_context(method)
        for core in range(cores):
            ours, theirs = context.Pipe()
            games = len(range(core, config.num_envs, cores))
            arguments = (theirs, games, config.frame_skip, config.repeat_action_probability, core)
            process = context.Process(target=_emulate, args=arguments, daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            stack.callback(process.join)
            stack.callback(ours.close)
    for pipe in pipes:
        pipe.recv()

    def measure(seconds: float) -> float:
        for pipe in pipes:
            pipe.send(seconds)
        return float(sum(pipe.recv() for pipe in pipes))

    return measure


def _emulate(pipe: Any, games: int, frame_skip: int, sticky: float, seed: int) -> None:
    """Body of a process of the limit: step some emulators with random actions, and nothing else."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    rom = roms.get_rom_path("pong")
    assert rom is not None  # it is part of the ale-py package
    emulators = []
    for game in range(games):
        emulator = ALEInterface()
        emulator.setInt("random_seed", 1000 * seed + game)
        emulator.setInt("frame_skip", frame_skip)
        emulator.setFloat("repeat_action_probability", sticky)
        emulator.loadROM(rom)
        emulators.append(emulator)
    rng = np.random.default_rng(seed)
    choices = (Action.RIGHT, Action.LEFT)
    pipe.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            seconds = pipe.recv()
            steps, start = 0, time.perf_counter()
            while (now := time.perf_counter()) < start + seconds:
                for emulator, action in zip(emulators, rng.integers(0, 2, games).tolist(), strict=True):
                    emulator.act(choices[action])
                    if emulator.game_over():
                        emulator.reset_game()
                steps += games
            pipe.send(steps / (now - start))


def _vector_env(stack: contextlib.ExitStack, config: Config, workers: int | None) -> Measure:
    envs = stack.enter_context(VectorEnv.of(config, workers))
    envs.reset()
    # Drawn beforehand: between two messages the code of NumPy is pushed out of the caches, and a draw takes 60 µs.
    drawn = np.random.default_rng(0).integers(0, config.num_actions, (997, config.num_envs), np.uint8)
    rows = itertools.cycle([[row[members] for members in envs.groups] for row in drawn])

    def step() -> None:
        with envs.rotation:
            for group, actions in enumerate(next(rows)):
                envs.recv(group)
                envs.send(group, actions)

    return _measure(envs, step)


def _measure(envs: VectorEnv, step: Callable[[], object]) -> Measure:
    """Return a function that repeats steps of all envs for some seconds, and waits for those in flight."""
    for _ in range(envs.env_count):  # until each env has an emulator of its own
        step()

    def measure(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            step()
            steps += envs.env_count
        for group in range(len(envs.groups)):
            envs.recv(group)
        return steps / (time.perf_counter() - start)

    return measure


def _train(
    stack: contextlib.ExitStack, config: Config, workers: int | None, late: bool = False
) -> tuple[Measure, Trainer]:
    # No exploring starts: their steps are not learned from, so the first million steps of a run are faster.
    config = dataclasses.replace(config, exploring_start_steps=0)
    envs = stack.enter_context(VectorEnv.of(config, workers))
    trainer = Trainer(config, envs)
    if late:
        trainer.learner.begin_late_phase(0)
    trainer.start()
    load_kernels(config)

    def step() -> None:
        trainer.step()
        trainer.learn_if_due()

    return _measure(envs, step), trainer


def _stock_async(stack: contextlib.ExitStack, config: Config) -> Measure:
    make = functools.partial(
        gymnasium.make,
        "ALE/Pong-v5",
        frameskip=config.frame_skip,
        repeat_action_probability=config.repeat_action_probability,
    )
    env = AsyncVectorEnv([make] * config.num_envs)
    stack.callback(env.close)
    return _vector(env, config, [2, 3])


def _ale_vector(stack: contextlib.ExitStack, config: Config, height: int, width: int) -> Measure:
    env = AtariVectorEnv(
        "pong", config.num_envs, frameskip=config.frame_skip, img_height=height, img_width=width,
        repeat_action_probability=config.repeat_action_probability, num_threads=usable_cores(),
    )  # fmt: skip
    stack.callback(env.close)
    return _vector(env, config, [2, 3])


def _envpool(config: Config) -> Measure:
    import envpool

    env = envpool.make_gymnasium(
        "Pong-v5", num_envs=config.num_envs, num_threads=usable_cores(), frame_skip=config.frame_skip,
        repeat_action_probability=config.repeat_action_probability, stack_num=1, seed=config.seed,
    )  # fmt: skip
    env.reset()
    rng = np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            _, _, terminated, truncated, _ = env.step(rng.choice([2, 3], config.num_envs))
            steps += config.num_envs - int(np.sum(terminated | truncated))  # it resets in the step after, as above
        return steps / (time.perf_counter() - start)

    return measure


def _vector(env: Any, config: Config, actions: list[int]) -> Measure:
    env.reset(seed=config.seed)
    rng = np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            _, _, terminated, truncated, _ = env.step(rng.choice(actions, config.num_envs))
            # In NEXT_STEP mode a game's next transition is a no-op, which is not a step.
            steps += config.num_envs - int(np.sum(terminated | truncated))
        return steps / (time.perf_counter() - start)

    return measure


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
