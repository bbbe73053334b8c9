"""Compiling on two cores: with an empty cache a subprocess compiles what learns while this process compiles what plays.

Numba compiles one kernel at a time in a process, whatever its number of threads.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fastpong.config import Config, changed, make_config
from fastpong.cores import usable_cores
from fastpong.kernels import convolution, optimiser, passes, ppo
from fastpong.kernels.meeting import ALONE, meet
from fastpong.kernels.sites import SITES, Views, deal, middle_of
from fastpong.kernels.tiles import CHANNELS
from fastpong.policy import make_policy
from fastpong.ppo import PPO

Learning = Literal["ppo", "critic"]

_started: list["subprocess.Popen[bytes]"] = []  # they go on, for the cache's sake, when nobody waits any more

_LAST: dict[Learning, Any] = {"ppo": passes.half_of_pass, "critic": passes.half_of_value_pass}


def compile_apart(what: Learning) -> "subprocess.Popen[bytes] | None":
    """Start a subprocess that compiles these kernels, if they are not in the cache and there is a core for it.

    Wait for it before they are called. If it fails, they are compiled where they are called, as ever.
    """
    kernel = _LAST[what]
    stats = getattr(kernel, "stats", None)  # without the compiler it has none
    folder = stats and stats.cache_path
    if not folder or usable_cores() < 2:
        return None
    file = Path(kernel.py_func.__code__.co_filename)
    if any(Path(folder).glob(f"{file.stem}.{kernel.__name__}-*.nbi")):
        return None
    command = [sys.executable, "-m", "fastpong.compiling", what]
    nowhere = subprocess.DEVNULL
    # In a session of its own, ctrl-C does not end it: this process would have to do what it had begun.
    process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    _started.append(process)
    return process


def compile_backward(config: Config) -> None:
    """Compile what only learns, for no samples: meanwhile this is not yet in the cache, and what plays will be."""
    arrays = make_policy(config).arrays
    w1, w2, bias, sums = arrays["w1"], arrays["w2"], arrays["bias"], np.zeros((0, CHANNELS), np.float32)
    none, bounds, numbers = np.zeros(0, np.int64), np.zeros(SITES + 1, np.int32), np.zeros(0, np.int32)
    views = Views(bounds[:1], numbers, bounds, numbers, numbers, 0, 0)
    rates = optimiser.rates_of(0.0, 0.5, 0.5, 1.0, 1)
    convolution.sites_gradient(
        views, bounds[:-1], bounds[1:], numbers, numbers, w1, w1[:0], none, 1, sums, sums, sums, bias, w1,
        np.zeros(SITES, np.bool_), True, w1, w1, rates,
    )  # fmt: skip
    deal(views, none, np.zeros((1, SITES), np.int32), numbers, numbers)
    middle_of(numbers, none, none, none)
    actions, floats = np.zeros(0, np.uint8), np.zeros(0, np.float32)
    steps = ppo.Steps(none, actions, floats, floats, floats, floats, np.zeros(0, np.int8))
    objective = ppo.Objective(0.0, 0.0, 0.0, 0.0)
    ppo.clipped_gradient(w1[:0], none, steps, w2, objective, 0.0, w2, w1[:0], np.zeros(4))
    convolution.facts_gradient(none, actions, 1, none, 1, 1, w1[:0], w1)
    convolution.prefix_gradient(sums, arrays["kernel"][:0])
    meet(np.zeros((2, 8), np.int64), ALONE, 1)
    rows, games = np.zeros((0, 0), np.int8), np.zeros((1, 0), np.float32)
    ppo.advantages_of(rows, rows, games, 0.0, 0.0, 0.0, games[:0], games[:0], games[:0])


if __name__ == "__main__":
    config = changed(make_config(), {"critic": 1})
    learner = PPO(config, make_policy(config))
    if sys.argv[1] == "ppo":
        # What plays is compiled meanwhile, and after this the forward pass of that may be in the cache.
        compile_backward(config)
        learner.warm_up()
    else:
        learner.warm_up_critic()
