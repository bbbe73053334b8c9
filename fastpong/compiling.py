"""Compiling on two cores: with an empty cache a subprocess compiles what learns while this process compiles what plays.

Numba compiles one kernel at a time in a process, whatever its number of threads.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from fastpong.config import changed, make_config
from fastpong.cores import usable_cores
from fastpong.kernels import ppo, value
from fastpong.policy import make_policy
from fastpong.ppo import PPO

Learning = Literal["ppo", "critic"]

_started: list["subprocess.Popen[bytes]"] = []  # they go on, for the cache's sake, when nobody waits any more

_LAST: dict[Learning, Any] = {"ppo": ppo.clipped_gradient, "critic": value.value_gradient}


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
    _started.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))
    return _started[-1]


if __name__ == "__main__":
    config = changed(make_config(), {"critic": 1})
    learner = PPO(config, make_policy(config))
    if sys.argv[1] == "ppo":
        learner.warm_up()
    else:
        learner.warm_up_critic()
