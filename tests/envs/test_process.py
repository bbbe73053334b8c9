"""Env subprocesses and their fork server: what they leave alone, and when they end."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from fastpong.envs.process import SERVER, THREAD_VARIABLES
from fastpong.envs.vector_env import VectorEnv
from fastpong.signals import ENDING
from tests.support.commands import default_signals
from tests.support.envs import play_at_random

SCRIPT = """
import multiprocessing, os, signal, sys, time

def body(pipe):
    pipe.send([os.environ.get("OMP_NUM_THREADS"), *(int(signal.getsignal(n)) for n in (15, 1)), "numba" in sys.modules])
    time.sleep(60)

def play(pipe):
    from fastpong.envs.vector_env import VectorEnv
    with VectorEnv(2, 2) as envs:
        envs.reset(seed=3)
        pipe.send(int(envs.step([0, 1])[0]["screens"].sum()))

if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    play(theirs)
    first = ours.recv()
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=body, args=(theirs,))
    process.start()
    assert ours.recv() == [None, 0, 0, False]
    process.terminate()
    process.join(10)
    assert process.exitcode == -15, process.exitcode
    for method in ("fork", "forkserver"):
        child = multiprocessing.get_context(method).Process(target=play, args=(theirs,), daemon=True)
        child.start()
        assert ours.recv() == first
        child.join(10)
        assert child.exitcode == 0
    print(first > 0)
"""


def run(script: Path, **options: Any) -> str:
    environment = {name: text for name, text in os.environ.items() if name not in THREAD_VARIABLES}
    done = subprocess.run(
        [sys.executable, script], env={**environment, **options}, capture_output=True, text=True, timeout=120,
        preexec_fn=default_signals,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_the_users_own_subprocesses_are_as_they_were_also_daemonic_ones_with_envs(tmp_path: Path) -> None:
    """They may be ended, have no limits of ours, load nothing of ours; and may use envs themselves."""
    (tmp_path / "script.py").write_text(SCRIPT)
    assert run(tmp_path / "script.py") == "True\n"


NESTED = """
import os
from fastpong.envs.vector_env import VectorEnv
from fastpong.envs.process import SERVER
envs = VectorEnv(2, 2)
envs.reset()
print(SERVER._process.pid, *(process.pid for process in envs.processes), flush=True)
how = os.environ["HOW"]
if how != "end":
    os.kill(os.getpid() if how == "killed" else SERVER._process.pid, 9 if how == "killed" else 19)
"""


@pytest.mark.parametrize("how", ["end", "killed", "server stopped"])
def test_a_program_that_ends_leaves_no_process_and_no_file(how: str, tmp_path: Path) -> None:
    """Without closing its envs; in a folder for temporary files whose name no socket may have."""
    folder = tmp_path / ("long" * 35)
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder), "HOW": how}
    done = subprocess.run([sys.executable, "-c", NESTED], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == (-signal.SIGKILL if how == "killed" else 0) and not done.stderr, done.stderr
    left = [psutil.Process(int(pid)) for pid in done.stdout.split() if psutil.pid_exists(int(pid))]
    assert not psutil.wait_procs(left, timeout=20)[1]
    assert not [*folder.iterdir()]


def test_threads_may_start_envs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREAD_VARIABLES[0], "7")
    monkeypatch.delenv(THREAD_VARIABLES[1], raising=False)
    main, variables, signals = sys.modules["__main__"], dict(os.environ), [signal.getsignal(n) for n in ENDING]
    seen: list[Any] = []

    def play() -> None:
        with VectorEnv(2, 1, seed=4) as envs:
            envs.reset()
            seen.append(play_at_random(envs, 5))

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and all(one == seen[0] for one in seen)
    assert sys.modules["__main__"] is main and dict(os.environ) == variables
    assert [signal.getsignal(n) for n in ENDING] == signals


def test_the_server_outlives_the_signals_that_end_a_run() -> None:
    with VectorEnv(2, 1) as envs:
        server = psutil.Process(envs.processes[0].pid).parent()
        for number in ENDING:
            os.kill(server.pid, number)
    with VectorEnv(2, 1) as envs:
        assert psutil.Process(envs.processes[0].pid).parent() == server
        variables = server.environ()
        assert all(variables[name] == "1" for name in THREAD_VARIABLES)


def test_a_server_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastpong.envs.process._LOAD_IDLE", 1)
    monkeypatch.setattr("fastpong.envs.process.LEAVE_SECONDS", 0.2)
    with VectorEnv(2, 1) as envs:
        envs.reset()
        before = play_at_random(envs, 10)
        server = psutil.Process(envs.processes[0].pid).parent()
        envs.reset(seed=0)
        assert play_at_random(envs, 5) == before[:5]
        server.suspend()
        envs.processes[0].kill()
        assert play_at_random(envs, 5, first=5) == before[5:]
        assert not server.is_running() and SERVER._process
