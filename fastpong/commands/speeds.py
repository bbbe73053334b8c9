"""What ``fastpong bench`` measures, each started once: a function that runs for some seconds and returns steps/s.

Speeds are multiples of those of bare emulators: one process per core that only steps its share of the envs, without
sending a message. Bare ALE reads no screen; the bare console draws one for each step.
"""

import contextlib
import dataclasses
import functools
import itertools
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import ale_py
import gymnasium
import numpy as np
from ale_py import Action, ALEInterface, AtariVectorEnv, roms
from gymnasium.vector import AsyncVectorEnv

from fastpong.config import Config
from fastpong.envs.division import check_workers
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.memory import SCREENS, zeros
from fastpong.envs.process import start_method
from fastpong.envs.sticky import sticky_repeats
from fastpong.envs.vector_env import VectorEnv
from fastpong.parallel.machine import usable_cores
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer
from fastpong.training.warm_up import load_acting, load_learning

Measure = Callable[[float], float]
"""Runs for about so many seconds and returns steps per second."""


def bare_ale(stack: contextlib.ExitStack, config: Config) -> Measure:
    """Start bare ALE; random actions."""
    return _bare(stack, config, _step_ale)


def bare_console(stack: contextlib.ExitStack, config: Config) -> Measure:
    """Start the bare console, with a screen for each step; random actions."""
    return _bare(stack, config, _step_console)


def _bare(stack: contextlib.ExitStack, config: Config, body: Callable[[Any, Config, range], None]) -> Measure:
    """Start a process per core, each with its share of the envs."""
    cores = min(usable_cores(), config.num_envs)
    pipes = []
    context: Any = multiprocessing.get_context(start_method("ale"))
    for core in range(cores):
        ours, theirs = context.Pipe()
        envs = range(core * config.num_envs // cores, (core + 1) * config.num_envs // cores)
        process = context.Process(target=body, args=(theirs, config, envs))
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


def _serve(pipe: Any, envs: int, step: Callable[[], object]) -> None:
    """Repeat a step of all envs for as many seconds as a message says, and answer with steps/s."""
    pipe.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            seconds = pipe.recv()
            steps, start = 0, time.perf_counter()
            while (now := time.perf_counter()) < start + seconds:
                step()
                steps += envs
            pipe.send(steps / (now - start))


def _step_ale(pipe: Any, config: Config, envs: range) -> None:
    """Body of a process of bare ALE."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    rom = roms.get_rom_path("pong")
    assert rom is not None  # it is part of the ale-py package
    emulators = []
    for env in envs:
        emulator = ALEInterface()
        emulator.setInt("random_seed", env)
        emulator.setInt("frame_skip", config.frame_skip)
        emulator.setFloat("repeat_action_probability", config.repeat_action_probability)
        emulator.loadROM(rom)
        emulators.append(emulator)
    rng = np.random.default_rng(envs.start)
    choices = (Action.RIGHT, Action.LEFT)

    def step() -> None:
        for emulator, action in zip(emulators, rng.integers(0, 2, len(envs)).tolist(), strict=True):
            emulator.act(choices[action])
            if emulator.game_over():
                emulator.reset_game()

    _serve(pipe, len(envs), step)


def _step_console(pipe: Any, config: Config, envs: range) -> None:
    """Body of a process of the bare console."""
    from fastpong.envs.console import Console

    mine = range(len(envs))
    console = Console(zeros(len(mine), Console.name), config.frame_skip)
    console.reset(mine)
    rng, steps = np.random.default_rng(envs.start), 997
    repeats = sticky_repeats(
        config.seed, np.array(envs), 0, steps, config.frame_skip, config.repeat_action_probability
    )  # fmt: skip
    # Drawn beforehand: it would be a tenth of the time.
    inputs = itertools.cycle(list(zip(rng.integers(0, 2, repeats.shape, np.uint8), repeats, strict=True)))
    console.step(mine, *next(inputs))  # compiles
    _serve(pipe, len(mine), lambda: console.step(mine, *next(inputs)))


def vector_env(stack: contextlib.ExitStack, config: Config, workers: int | None, engine: str) -> Measure:
    """Start fastpong's vector env; random actions, so the subprocesses have all cores."""
    workers = check_workers(config.num_envs, workers)
    envs = stack.enter_context(VectorEnv.of(config, workers, engine=engine, images=SCREENS))
    envs.reset()
    # Drawn beforehand: between two messages the code of NumPy is pushed out of the caches, and a draw takes 60 µs.
    drawn = np.random.default_rng(0).integers(0, config.num_actions, (997, config.num_envs), np.uint8)
    rows = itertools.cycle([[row[members] for members in envs.groups] for row in drawn])

    def step() -> None:
        for group, actions in enumerate(next(rows)):
            envs.recv(group)
            envs.send(group, actions)

    return _measure(envs, step)


def _measure(envs: VectorEnv, step: Callable[[], object]) -> Measure:
    """Return a function that repeats steps of all envs for some seconds."""

    def measure(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            step()
            steps += envs.env_count
        _receive(envs)
        return steps / (time.perf_counter() - start)

    return measure


def _receive(envs: VectorEnv) -> None:
    """Wait for the steps in flight, so that nothing runs while others are measured."""
    for group in range(len(envs.groups)):
        envs.recv(group)


def training(
    stack: contextlib.ExitStack, config: Config, workers: int | None, engine: str = DEFAULT_ENGINE, late: bool = False
) -> tuple[Measure, Trainer]:
    """Start training, early or in the late phase; also returns the trainer, which has the time of each stage.

    It is measured in whole batches, at least one, so for longer than was asked.
    """
    # No exploring starts: their steps are not learned from, so the first million steps of a run are faster.
    config = dataclasses.replace(config, exploring_start_steps=0)
    envs = stack.enter_context(VectorEnv.of(config, workers, engine=engine))
    trainer = Trainer(config, Actor(config, envs))
    if late:
        trainer.learner.begin_late_phase(0)
    trainer.start()
    load_acting(config)
    load_learning(config)

    def measure(seconds: float) -> float:
        first, start = trainer.stats.steps, time.perf_counter()
        learned = False
        while not learned or time.perf_counter() < start + seconds:  # whole batches, each with its update
            trainer.step()
            learned = trainer.learn_if_due()
        _receive(envs)
        return (trainer.stats.steps - first) / (time.perf_counter() - start)

    return measure, trainer


def stock_async(stack: contextlib.ExitStack, config: Config) -> Measure:
    """Start gymnasium's vector env, a process per env; random actions."""
    rules: dict[str, Any] = {
        "frameskip": config.frame_skip, "repeat_action_probability": config.repeat_action_probability
    }  # fmt: skip
    name = "ale_py:ALE/Pong-v5"  # with its module, as Python 3.14 starts processes that have loaded nothing
    env = AsyncVectorEnv([functools.partial(gymnasium.make, name, **rules)] * config.num_envs)
    stack.callback(env.close)
    return _measure_peer(env, config)


def ale_vector(stack: contextlib.ExitStack, config: Config, height: int, width: int) -> Measure:
    """Start ale-py's vector env, with images of this size; random actions."""
    env = AtariVectorEnv(
        "pong", config.num_envs, frameskip=config.frame_skip, img_height=height, img_width=width,
        repeat_action_probability=config.repeat_action_probability, num_threads=usable_cores(),
    )  # fmt: skip
    stack.callback(env.close)
    return _measure_peer(env, config)


def envpool(config: Config) -> Measure:
    """Start EnvPool, a thread per core; random actions."""
    from envpool import make_gymnasium

    env = make_gymnasium(
        "Pong-v5", num_envs=config.num_envs, num_threads=usable_cores(), frame_skip=config.frame_skip,
        repeat_action_probability=config.repeat_action_probability, stack_num=1, seed=config.seed,
    )  # fmt: skip
    return _measure_peer(env, config)


def _measure_peer(env: Any, config: Config) -> Measure:
    env.reset()
    rng = np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            _, _, terminated, truncated, _ = env.step(rng.choice([2, 3], config.num_envs))
            # A game begins anew in the step after its last one, which is then none.
            steps += config.num_envs - int(np.sum(terminated | truncated))
        return steps / (time.perf_counter() - start)

    return measure
