"""Steps per second of vector envs at the same observation: fastpong's, ale-py's, EnvPool's and gymnasium's own.

    python -m bench.vector_env [--envs 8 64 256] [--obs screen …] [--others ale-py EnvPool] [--rounds 40] [--json]

Each in a process of its own, in turns within a round; random actions, sticky 0.25, a worker or thread per core.
``fastpong/Pong-v0`` runs on each `--engine`, on the first one also without copies. A column of "times" says how many
times as fast as another one it is on the first engine: median and quartiles of the ratios within a round. Bare ALE has
no observations. ``stack84`` is a stack of four grey 84×84 images with maximum over two frames, ``screen`` a single
whole screen: palette indices of fastpong, grey of the others, ``rgb`` in colour. ``court`` and ``karpathy`` nobody else
has: they stand against the others' grey screens. EnvPool has no native screens in grey, and stands where it can. A step
in which a game only begins anew is not counted.
"""

import contextlib
import functools
import importlib.util
import json
import multiprocessing
import operator
import statistics
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import ale_py
import gymnasium
import numpy as np
from ale_py import AtariVectorEnv
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from bench.common import in_turns, parser
from fastpong.commands.speeds import bare_ale
from fastpong.config import make_config
from fastpong.envs.engine import ENGINES
from fastpong.gym import PongVectorEnv
from fastpong.gym.observations import KINDS
from fastpong.parallel.machine import usable_cores

STICKY = 0.25


def ours(envs: int, obs: str, engine: str, copy: bool) -> Any:
    """Fastpong's."""
    return PongVectorEnv(envs, obs=obs, engine=engine, copy=copy)


def ale_vector(envs: int, obs: str) -> Any:
    """Return ale-py's own, in threads."""
    size = (84, 84) if obs == "stack84" else (210, 160)
    return AtariVectorEnv(
        "pong", envs, img_height=size[0], img_width=size[1], grayscale=obs != "rgb", maxpool=obs == "stack84",
        stack_num=4 if obs == "stack84" else 1, noop_max=0, use_fire_reset=False, repeat_action_probability=STICKY,
        num_threads=usable_cores(),
    )  # fmt: skip


def envpool(envs: int, obs: str) -> Any:
    """Return EnvPool's, in threads; it has no more than one row and column less than a whole screen."""
    from envpool import make_gymnasium

    size = (84, 84) if obs == "stack84" else (210, 160)
    return make_gymnasium(
        "Pong-v5", num_envs=envs, num_threads=usable_cores(), stack_num=4 if obs == "stack84" else 1, noop_max=1,
        img_height=size[0], img_width=size[1], gray_scale=obs != "rgb", repeat_action_probability=STICKY,
    )  # fmt: skip


def _one(obs: str) -> Any:
    gymnasium.register_envs(ale_py)
    if obs != "stack84":
        kind = "rgb" if obs == "rgb" else "grayscale"
        return gymnasium.make("ALE/Pong-v5", obs_type=kind, repeat_action_probability=STICKY)
    env = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=STICKY)
    return FrameStackObservation(AtariPreprocessing(env, noop_max=0), 4)


def stock(envs: int, obs: str) -> Any:
    """Return gymnasium's, a process for each env."""
    return AsyncVectorEnv([functools.partial(_one, obs)] * envs)


OTHERS: dict[str, Callable[[int, str], Any]] = {"ale-py": ale_vector, "gymnasium": stock}
if importlib.util.find_spec("envpool"):
    OTHERS["EnvPool"] = envpool
OURS: dict[str, Callable[[int, str], Any]] = {
    f"fastpong, {engine}{kind}": functools.partial(ours, engine=engine, copy=not kind)
    for engine in ENGINES
    for kind in ("", ", copy=False")
}
ALL = {**OURS, **OTHERS}
BARE = "bare ALE"


def speed(env: Any, envs: int) -> Callable[[float], float]:
    """Return a function that steps an env for some seconds, and returns its steps per second."""
    env.reset()
    rng = np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            _, _, terminated, truncated, _ = env.step(rng.integers(2, 4, envs))
            steps += envs - int(np.sum(terminated | truncated))
        return steps / (time.perf_counter() - start)

    return measure


def serve(name: str, envs: int, obs: str, pipe: Connection) -> None:
    """Body of a process: measure one of them for as many seconds as is asked, until that is 0."""
    env = ALL[name](envs, obs)
    measure = speed(env, envs)
    pipe.send(0.0)
    while seconds := pipe.recv():
        pipe.send(measure(seconds))
    env.close()


def start(name: str, envs: int, obs: str, stack: contextlib.ExitStack) -> Callable[[float], float]:
    """Start such a process, so that none is slowed down by another one's threads; return how to ask it."""
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    process = context.Process(target=serve, args=(name, envs, obs, other))
    process.start()
    other.close()
    stack.callback(process.join)
    stack.callback(pipe.send, 0.0)

    def ask(seconds: float) -> float:
        pipe.send(seconds)
        return float(pipe.recv())

    pipe.recv()
    return ask


def compare(envs: int, obs: str, names: Sequence[str], seconds: float, rounds: int) -> dict[str, Any]:
    """Measure some of `ALL`, ours first, in turns.

    Returns the median steps/s of each, and how many times as fast as each other one the first is: median and quartiles.
    """
    with contextlib.ExitStack() as stack:
        alone = bare_ale(stack, make_config("fast", {"num_envs": envs}))
        measures = {BARE: functools.partial(alone, seconds)}
        for name in names:
            measures[name] = functools.partial(start(name, envs, obs, stack), seconds)
        values = in_turns(measures, rounds)
    times = {
        name: [round(q, 3) for q in statistics.quantiles(map(operator.truediv, values[names[0]], taken), n=4)]
        for name, taken in values.items()
        if name != names[0]
    }
    speeds = {name: round(statistics.median(taken)) for name, taken in values.items()}
    return {"envs": envs, "obs": obs, "steps_per_s": speeds, "times": times}


def row(result: dict[str, Any], names: Sequence[str]) -> str:
    """Write a row of the table."""
    cells = [f"{result['steps_per_s'][name]:,}" for name in names if name in OURS]
    for name in (BARE, *(name for name in names if name in OTHERS)):
        low, middle, high = result["times"][name]
        cells.append(f"{middle:.2f} ({low:.2f} … {high:.2f})")
    return f"| {result['obs']}, {result['envs']} | {' | '.join(cells)} |"


def main() -> None:
    """Print a row for each kind of observation and number of envs."""
    options = parser(__doc__)
    options.add_argument("--envs", type=int, nargs="+", default=[8, 64, 256])
    options.add_argument("--obs", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--engine", nargs="+", choices=ENGINES, default=list(ENGINES))
    options.add_argument("--others", nargs="*", choices=OTHERS, default=list(OTHERS))
    options.add_argument("--seconds", type=float, default=0.25)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    first, *engines = (f"fastpong, {engine}" for engine in arguments.engine)
    names = [first, f"{first}, copy=False", *engines, *arguments.others]
    if not arguments.json:
        columns = [f"{name}, steps/s" for name in names if name in OURS]
        columns += [f"times {name}" for name in (BARE, *arguments.others)]
        print(f"| obs, envs | {' | '.join(columns)} |\n" + "|---" * (1 + len(columns)) + "|", flush=True)
    for obs in arguments.obs:
        for envs in arguments.envs:
            result = compare(envs, obs, names, arguments.seconds, arguments.rounds)
            print(json.dumps(result) if arguments.json else row(result, names), flush=True)


if __name__ == "__main__":
    main()
