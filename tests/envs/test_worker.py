"""What an env subprocess is to the system, and what it answers when something is wrong."""

import signal
import time

import numpy as np
import psutil
import pytest

from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import EnvError
from tests.support.envs import play_at_random


def test_a_failing_subprocess_says_why() -> None:
    with VectorEnv(4, 2) as envs:
        envs.reset()
        envs.send(0, np.full(len(envs.groups[0]), 9, np.uint8))
        with pytest.raises(EnvError, match="failed: IndexError") as caught:
            envs.recv(0)
        assert "in take" in str(caught.value.__cause__)


def test_subprocesses_ignore_ctrl_c_and_have_one_thread() -> None:
    with VectorEnv(4, 2) as envs:
        envs.reset()
        for process in envs.processes:
            psutil.Process(process.pid).send_signal(signal.SIGINT)
            assert psutil.Process(process.pid).num_threads() == 1
        time.sleep(0.1)
        play_at_random(envs, 3)


def test_a_subprocess_ends_with_its_parents_pipe() -> None:
    envs = VectorEnv(2, 2)
    processes = [psutil.Process(process.pid) for process in envs.processes]
    for pipe in envs.parent_pipes:
        pipe.close()
    _, left = psutil.wait_procs(processes, timeout=20)
    assert not left
    envs.close(terminate=True)
