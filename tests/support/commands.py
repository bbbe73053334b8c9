"""The command line in subprocesses: run to its end, or started and watched."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

SMALL = ["--preset", "karpathy", "--envs", "4", "--workers", "2", "--batch-games", "1"]
SMALL += ["--set", "hidden_units=8", "--set", "eval_games=0"]
"""Options of a run of ``fastpong train`` that takes as little time as one can."""


def settings(**changes: object) -> list[str]:
    """Options that change settings."""
    return [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]


PROGRAM = str(Path(sys.executable).with_name("fastpong"))
FOREIGN = (
    "numpy",
    "random",
    "socket",
    "types",
    "threading",
    "signal",
    "json",
    "gymnasium",
    "ale_py",
    "numba",
    "fastpong",
)
"""Modules that Python, or we, import; a file of that name in the current directory must not be run."""


def plant_foreign_code(folder: Path) -> Path:
    """Put files into a folder that no Python which is started there may run; return the file that they would make."""
    ran = folder / "foreign-code-ran"
    for name in FOREIGN:
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write({name!r} + chr(10))\n")
    return ran


def fastpong(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [PROGRAM, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, **options)


def default_signals() -> None:
    """Undo what nohup, or a shell in the background, has this process ignore."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command, with signals as a shell in a terminal leaves them."""
    command = [PROGRAM, *arguments]
    return subprocess.Popen(
        command,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,
        **options,
    )


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until a condition is true, and fail if it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def workers_of(process: subprocess.Popen[str] | psutil.Process) -> list[psutil.Process]:
    """Find the env subprocesses: the fork server's children."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if child.ppid() != process.pid]


def one_line(text: str) -> str:
    """Return the only line of a text."""
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]
