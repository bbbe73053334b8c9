"""The body of a game subprocess, and how it is started and talked to."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import read_from_shared_memory

from fastpong.pong import PongGames
from fastpong.practice import Attempts

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is no more."""

# What is said with every step is packed by hand, as pickling it takes longer than sending it. The mark is one that no
# pickle begins with. All else is pickled, as gymnasium does.
_STEP, _STEP_HEAD = b"s", struct.Struct("<cIi?d")

STEPPED = b"d"
"""The answer to a `step_message`: the group's step is done."""


def step_message(group: int, attempts: Attempts, actions: npt.NDArray[np.uint8]) -> bytes:
    """Return what tells a subprocess to step its games of a group with these actions, uint8 (n,)."""
    return _STEP_HEAD.pack(_STEP, group, *attempts) + actions.tobytes()


@contextlib.contextmanager
def start_method() -> Iterator[str]:
    """Name the way in which to start subprocesses that step emulators, to be started inside.

    A fork server hands no pipe of one subprocess to another, so that each notices when the parent dies; it has
    loaded the emulator but no thread; and its children use one BLAS thread, whatever the user's environment says.
    """
    multiprocessing.set_forkserver_preload(["__main__", "fastpong.serving"])
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(
    index: int,
    env_fn: Any,
    pipe: Connection,
    parent_pipe: Connection,
    shared_memory: Any,
    error_queue: Any,
    autoreset_mode: AutoresetMode,
    semaphore: object = None,
) -> None:
    """Body of a subprocess; the signature is gymnasium's for the `worker` of an `AsyncVectorEnv`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches the whole group: the parent decides
    parent_pipe.close()
    env: PongGames = env_fn()
    try:
        shared: Any = read_from_shared_memory(env.observation_space, shared_memory, n=-1)  # -1: all of them
        env.bind({name: array[index] for name, array in shared.items()})
        while True:
            message = pipe.recv_bytes()
            if message.startswith(_STEP):
                _, group, *attempts = _STEP_HEAD.unpack_from(message)
                env.step_group(group, message[_STEP_HEAD.size :], Attempts(*attempts))
                pipe.send_bytes(STEPPED)
                continue
            command, data = pickle.loads(message)
            reply: Any = None
            if command == "step":
                reply = (None, *env.step(data)[1:])
            elif command == "reset":
                env.reset(**data)
                reply = (None, {})
            elif command == "snapshot":
                reply = env.snapshot()
            elif command == "restore":
                env.restore(data)
            elif command == "_check_spaces":
                reply = (data[1] == env.observation_space, data[2] == env.action_space)
            elif command == "close":
                break
            else:
                raise ValueError(f"unknown command {command!r}")
            pipe.send((reply, True))
    except GONE:
        pass  # the parent closed the pipe, or died
    except Exception:
        kind, error, _ = sys.exc_info()
        error_queue.put((index, kind, error, traceback.format_exc()))
        pipe.send((None, False))
