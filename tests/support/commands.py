"""The command line in subprocesses: run to its end, or started and watched."""

import io
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

from fastpong.main import main

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


def here(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, for what it says: a fifth of the time, and less where it would load Numba."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in signals}
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ, variables):
        patch.chdir(cwd)
        for name, stream in (("argv", [PROGRAM, *arguments]), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        patch.setattr(warnings, "showwarning", warnings.showwarning)  # the program changes it
        with pytest.raises(SystemExit) as end:
            main()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess(arguments, int(end.value.code or 0), *texts)


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
