"""The body of an env subprocess: it reads actions, steps its emulators, and answers."""

import contextlib
import multiprocessing
import os
import pickle
import sys
import traceback
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import read_from_shared_memory

from fastpong.envs.emulators import Emulators
from fastpong.signals import ignore, ignored_by_children

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is no more."""

MAX_GROUPS = 128
"""A message that steps a group begins with the group's number, one byte; a pickle begins with 128."""

STEPPED = b"\0"
"""The answer to a step: it is done."""


@contextlib.contextmanager
def start_method() -> Iterator[str]:
    """Name the way in which to start subprocesses that step emulators, to be started inside.

    A fork server hands no pipe of one subprocess to another, so that each notices when the parent dies; it has
    loaded the emulator but no thread; and its children use one BLAS thread, whatever the user's environment says. It
    outlives the signals that end the main process, which may still have to save: it ends when its pipe is closed.
    """
    multiprocessing.set_forkserver_preload(["__main__", "fastpong.envs.worker"])
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        with ignored_by_children():
            resource_tracker.ensure_running()
            forkserver.ensure_running()
        yield "forkserver"
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def work(
    index: int,
    env_fn: Any,
    pipe: Connection,
    parent_pipe: Connection,
    shared_memory: Any,
    error_queue: Any,
    autoreset_mode: AutoresetMode,
    semaphore: object = None,
) -> None:
    """Body of a subprocess; the signature is gymnasium's for the `worker` of an `AsyncVectorEnv`.

    A message is the number of a group and the actions of its envs, uint8, which `STEPPED` answers; or what gymnasium
    sends, a pickled (command, data), which a pickled (reply, whether it worked) answers.
    """
    ignore()
    parent_pipe.close()
    env: Emulators = env_fn()
    try:
        shared: Any = read_from_shared_memory(env.observation_space, shared_memory, n=-1)  # -1: all of them
        env.bind({name: array[index] for name, array in shared.items()})
        while True:
            message = pipe.recv_bytes()
            if message[0] < MAX_GROUPS:
                env.step_group(message[0], message[1:])
                pipe.send_bytes(STEPPED)
                continue
            command, data = pickle.loads(message)
            if command == "close":
                break
            pipe.send((_answer(env, command, data), True))
    except GONE:
        pass  # the parent closed the pipe, or died
    except Exception:
        kind, error, _ = sys.exc_info()
        error_queue.put((index, kind, error, traceback.format_exc()))
        pipe.send((None, False))


def _answer(env: Emulators, command: str, data: Any) -> Any:
    """Do what a command of gymnasium's or of `VectorEnv`'s asks for, and return the reply."""
    if command == "step":
        return None, *env.step(data)[1:]
    if command == "reset":
        env.reset(**data)
        return None, {}
    if command == "snapshot":
        return env.snapshot()
    if command == "restore":
        return env.restore(data)
    if command == "_check_spaces":
        return True, True  # one function makes them all; to compare large boxes takes 0.8 MB an env
    raise ValueError(f"unknown command {command!r}")
