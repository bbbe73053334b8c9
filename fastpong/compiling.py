"""Compiling on two cores: with an empty cache a subprocess compiles what learns while this process compiles what plays.

Numba compiles one kernel at a time in a process, whatever its number of threads.
"""

import subprocess
import sys
from pathlib import Path

from fastpong.config import make_config
from fastpong.games import usable_cores
from fastpong.kernels import ppo
from fastpong.policy import make_policy
from fastpong.ppo import PPO


def compile_apart() -> "subprocess.Popen[bytes] | None":
    """Start a subprocess that compiles the kernels of `PPO`, if they are not in the cache and there is a core for it.

    Wait for it before they are called. If it fails, they are compiled where they are called, as ever.
    """
    stats = getattr(ppo.clipped_gradient, "stats", None)  # without the compiler it has none
    folder = stats and stats.cache_path
    if not folder or usable_cores() < 2 or any(Path(folder).glob(f"{Path(ppo.__file__).stem}.clipped_gradient-*.nbi")):
        return None
    command = [sys.executable, "-m", "fastpong.compiling"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    config = make_config()
    PPO(config, make_policy(config)).warm_up()
