"""What a bug report needs: versions, cores and threads, the game, the display, and what the extras would use."""

import contextlib
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import fastpong
from fastpong.envs.base import LocalEnvs
from fastpong.envs.division import check_workers
from fastpong.envs.process import THREAD_VARIABLES
from fastpong.envs.verify import FRAMES, fault_of_console
from fastpong.errors import install, printable
from fastpong.kernels.compile.cache import cache_folder
from fastpong.parallel.comm import Communicator
from fastpong.parallel.machine import usable_cores
from fastpong.system import processor

BASE = ("numpy", "numba", "llvmlite", "gymnasium", "ale-py", "typer")
EXTRAS = ("pillow", "pygame-ce", "imageio-ffmpeg", "matplotlib", "mpi4py")


def examine(comm: Communicator) -> dict[str, Any]:
    """Look at this machine and this installation.

    Returns names and facts, in the order in which they are worth reading; ``problems`` is a list of sentences, each
    with its remedy, and empty if `fastpong train` should work. How the ranks of `comm` divide the cores is among the
    facts.
    """
    problems: list[str] = []
    facts: dict[str, Any] = {
        "fastpong": fastpong.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processor": processor(),
        "cores": f"{usable_cores()} usable of {os.cpu_count()}",
        "threads": ", ".join(f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ)
        or "no variable set: env subprocesses use one each, the learner one per core up to eight",
    }
    cores = check_workers(1 << 16, None, comm.local_size)
    facts["ranks"] = f"{comm.size}, {comm.local_size} to these cores: {cores} for each"
    for name in BASE:
        facts[name] = _version(name)
        if facts[name] is None:
            problems.append(f"{name} is missing: install fastpong again, pip install -e . in a checkout")
    facts |= {name: _version(name) or "not installed" for name in EXTRAS}
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return {
        **facts,
        "kernel cache": _cache(problems),
        "ROM": _rom(problems),
        "console": _console(),
        "display": display or "none: play --terminal or --out",
        "MPI library": _mpi_library(),
        "mpiexec": shutil.which("mpiexec") or "not found",
        "problems": problems,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _mpi_library() -> str:
    """Name the library that mpi4py loads, without starting it in this process."""
    if _version("mpi4py") is None:
        return f"none: {install('mpi')}"
    script = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI"))}
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, env=environment)
    if done.returncode:
        return "mpi4py finds none: install one, or pip install mpich"
    return " ".join(done.stdout.split()[:3])


def _cache(problems: list[str]) -> str:
    """Where compiled kernels are kept; without a place every start compiles for half a minute."""
    folder = cache_folder()
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
    if os.access(folder, os.W_OK):
        return folder
    source = os.path.join(os.path.dirname(fastpong.__file__), "kernels")
    if "NUMBA_CACHE_DIR" not in os.environ and os.access(source, os.W_OK):
        return f"in {source}, as {folder} cannot be written"
    problems.append(f"compiled kernels cannot be kept in {folder}: set NUMBA_CACHE_DIR to a folder that can be written")
    return "none"


def _rom(problems: list[str]) -> str:
    """Start the real game for a step."""
    try:
        envs = LocalEnvs(engine="ale")
        envs.reset()
        envs.send(0, np.zeros(1, np.uint8))
        envs.recv(0)
    except Exception as error:  # whatever it is, it belongs into the report
        problems.append(f"the game does not start ({error}): pip install --force-reinstall ale-py")
        return "fails"
    return "Pong starts"


def _console() -> str:
    """Compare the console with ale-py; it is no problem if ALE has to step the games, but slow."""
    fault = fault_of_console()
    return f"{fault}: ale-py steps the games" if fault else f"as ale-py over {FRAMES:,} frames"


def table(facts: dict[str, Any]) -> list[str]:
    """Write the facts as lines of text."""
    shown = {name: fact for name, fact in facts.items() if name != "problems"}
    width = max(map(len, shown))
    lines = [f"{name.ljust(width)}  {printable(fact)}" for name, fact in shown.items()]
    return [*lines, "", *(facts["problems"] or ["no problem found"])]
