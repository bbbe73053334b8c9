"""ale-py verifies the console: at its first use on a machine, frames of both are compared, and a file says so.

If anything differs, or the console cannot run, ALE steps the envs, and a warning says so.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import warnings
from pathlib import Path

import numpy as np

from fastpong.arrays import Arrays
from fastpong.envs.engine import IMAGES, Engine, check_engine
from fastpong.envs.memory import zeros
from fastpong.envs.process import ENGINE_MODULES, SERVER
from fastpong.kernels.compile.cache import cache_folder
from fastpong.parallel.machine import end_with_parent
from fastpong.pong import ACTIONS
from fastpong.system import processor

FRAMES, FRAME_SKIP = 2_000, 4
"""Frames that are compared: 0.1 s of ALE's time."""

_HELD = 8  # steps for which an action is held at most


class EngineWarning(UserWarning):
    """The envs run on another engine than was asked for: with the same results, but slowly."""


def usable(engine: str) -> str:
    """Return the engine, or ``ale`` with a warning if it cannot be relied on.

    Raises `UsageError` for an unknown one.
    """
    if check_engine(engine) == "ale" or is_verified():
        return engine
    fault = fault_of_console()
    if not fault:
        with contextlib.suppress(OSError):  # where nothing can be kept, every start compares
            _verdict().parent.mkdir(parents=True, exist_ok=True)
            _verdict().touch()
        return engine
    warnings.warn(f"{fault}: ale-py steps the games, as with --engine ale", EngineWarning, stacklevel=3)
    return "ale"


def is_verified() -> bool:
    """Whether the console was found equal to this ale-py, as it is compiled here."""
    return _verdict().exists()


def load_early(engine: str) -> None:
    """Let the fork server load an engine while this process loads what it needs itself, unless it is verified first."""
    if check_engine(engine) == "ale" or is_verified():
        SERVER.ask(ENGINE_MODULES[engine])


def fault_of_console(frames: int = FRAMES) -> str:
    """Play some frames on both engines; return what is wrong with the console, or nothing."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return "the console needs the compiler, which NUMBA_DISABLE_JIT switches off"
    from fastpong.console import cartridge

    try:
        if not cartridge.is_known(cartridge.read()):
            return "this ale-py has another dump of Pong than the one that the console was made for"
        return _difference(frames)
    except Exception as error:  # Numba, LLVM, the cartridge: whatever it is, there is another engine
        return f"the console does not run here ({type(error).__name__}: {str(error).partition(chr(10))[0]})"


def _difference(frames: int) -> str:
    from fastpong.envs.ale import Ale
    from fastpong.envs.console import Console

    shown: list[Arrays] = []
    engines: list[Engine] = []
    for kind, images in ((Ale, IMAGES), (Console, IMAGES), (Console, ("courts",))):  # which it draws in its own way
        shown.append(zeros(1, kind.name, images))
        engines.append(kind(shown[-1], FRAME_SKIP))
        engines[-1].reset(range(1))
    rng, actions, left = np.random.default_rng(0), np.zeros(1, np.uint8), 0
    for step in range(frames // FRAME_SKIP):
        if left == 0:
            actions[0], left = rng.integers(len(ACTIONS)), int(rng.integers(1, _HELD))
        left -= 1
        repeats = rng.integers(0, FRAME_SKIP, 1).astype(np.uint8)
        for engine in engines:
            engine.step(range(1), actions, repeats)
        ale, *consoles = ({**one, "RAM": engine.ram(0)} for one, engine in zip(shown, engines, strict=True))
        for console in consoles:
            for name in console.keys() - {"rows"}:
                if (ale[name] != console[name]).any():
                    return f"the console's {name} differ from ale-py's after {FRAME_SKIP * (step + 1)} frames"
    return ""


def _verdict() -> Path:
    """Return the file that is there if this console was found equal to this ale-py, compiled by this Numba."""
    versions = [importlib.metadata.version(name) for name in ("ale-py", "numba", "llvmlite")]
    key = hashlib.sha256(repr([*versions, processor()]).encode()).hexdigest()[:12]
    return Path(cache_folder("console")) / f"equals-ale-{key}"


if __name__ == "__main__":
    end_with_parent()
    usable("console")  # in a subprocess, so that its caller compiles something else meanwhile
