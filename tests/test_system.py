"""Other systems: without what macOS has not no bit changes; what Windows has not is missed in one sentence."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong.envs import patience, worker_handle
from fastpong.envs.base import Envs, LocalEnvs
from fastpong.envs.process import SERVER
from fastpong.envs.vector_env import VectorEnv
from tests.support.envs import step
from tests.support.trainings import small, trained

ROOT = Path(__file__).parent.parent
ELSEWHERE = ROOT / "tests/support/elsewhere"


def python(*arguments: str, path: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": f"{path}{ROOT}", **variables}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120, cwd="/"
    )


def play(envs: Envs, steps: range) -> str:
    """Return a checksum of all that was seen."""
    seen = hashlib.sha256()
    for number in steps:
        step(envs, np.random.default_rng(number).integers(0, 2, envs.env_count))
        for array in (envs.screens, envs.rewards, envs.ended):
            seen.update(array.tobytes())
    return seen.hexdigest()


def learn(workers: int, groups: int) -> str:
    trainer = trained(small("fast"), workers, groups, 260)
    assert trainer.learner.updates >= 2
    return hashlib.sha256(trainer.policy.weights.flat.tobytes()).hexdigest()


def play_and_learn() -> dict[str, Any]:
    """Play while subprocesses are lost, and learn, in a process without what Linux has."""
    patience.BUSY_SECONDS, worker_handle.START_SECONDS = 2.0, 0.0
    with VectorEnv(5, 2, seed=6, pinned=True) as envs:
        envs.reset()
        with open(os.open(f"/proc/{envs.processes[0].pid}/maps", os.O_RDONLY)) as file:  # which is left to the test
            maps = file.read()
        seen = [play(envs, range(10))]
        os.kill(envs.processes[0].pid or 0, signal.SIGKILL)
        seen.append(play(envs, range(10, 20)))
        assert SERVER._process
        SERVER._process.kill()
        os.kill(envs.processes[1].pid or 0, signal.SIGKILL)
        seen.append(play(envs, range(20, 30)))
        os.kill(envs.processes[0].pid or 0, signal.SIGSTOP)
        seen.append(play(envs, range(30, 40)))
        assert not patience.Patience(os.getpid(), idle=1).is_over()  # it counts as working
        return {"games": seen, "weights": learn(2, 2), "losses": envs.losses.count, "maps": maps}


def test_without_what_macos_has_not_no_bit_changes(tmp_path: Path) -> None:
    """Envs start, step, are killed with their server and alone, and hang; and a training learns."""
    code = "import json; from tests import test_system; print(json.dumps(test_system.play_and_learn()))"
    done = python("-c", code, path=f"{ELSEWHERE}:", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    assert "memfd:" not in theirs["maps"] and f"{tmp_path}/fastpong" in theirs["maps"]  # the subprocess has not, either
    assert not [*tmp_path.iterdir()]
    assert theirs["losses"] >= 3
    alone = LocalEnvs(range(5), seed=6)
    alone.reset()
    assert theirs["games"] == [play(alone, range(first, first + 10)) for first in range(0, 40, 10)]
    assert theirs["weights"] == learn(1, 1)


PARENT = """
import subprocess, sys
code = "import time; from fastpong.system import die_with_parent; die_with_parent(); print(flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
child.stdout.readline()
print(child.pid)
"""


@pytest.mark.parametrize("path", ["", f"{ELSEWHERE}:"])
def test_a_process_dies_with_its_parent_with_prctl_and_without(path: str) -> None:
    child = int(python("-c", PARENT, path=path).stdout)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(20)  # else TimeoutExpired


WINDOWS = """
import os, runpy, signal, socket, sys
for module in ("fcntl", "termios", "tty", "pty", "pwd", "resource"):
    sys.modules[module] = None
missing = {
    os: "fork register_at_fork memfd_create sched_getaffinity sched_setaffinity getuid getppid pread statvfs sysconf "
    "O_NOFOLLOW O_NONBLOCK set_blocking",
    signal: "SIGHUP SIGKILL SIGCHLD SIG_BLOCK SIG_UNBLOCK SIG_SETMASK pthread_sigmask",
    socket: "AF_UNIX SOCK_SEQPACKET send_fds recv_fds",
}
for module, names in missing.items():
    for name in names.split():
        delattr(module, name)
"""
SENTENCE = "Linux or macOS is needed: on Windows use WSL 2 (wsl --install)"


@pytest.mark.parametrize("arguments", [["--version"], ["train", "--envs", "4"]])
def test_windows_is_refused_in_one_line(arguments: list[str]) -> None:
    done = python("-c", f"{WINDOWS}\nrunpy.run_module('fastpong', run_name='__main__')", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"fastpong: {SENTENCE}\n")


def test_on_windows_python_gets_the_same_sentence() -> None:
    uses = """
import fastpong, gymnasium
def vector(): gymnasium.make_vec("fastpong/Pong-v0", num_envs=2)
def single(): gymnasium.make("fastpong/Pong-v0")
for use in (lambda: fastpong.train, lambda: fastpong.load, vector, single):
    try: use()
    except fastpong.FastpongError as error: print(error)
"""
    done = python("-c", WINDOWS + uses)
    assert done.stdout == 4 * f"{SENTENCE}\n", done.stderr
