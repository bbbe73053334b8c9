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

from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import read_from_shared_memory

from fastpong.pong import PongGames
from fastpong.practice import Attempts

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is no more."""

# What is said with every step is packed by hand and read in one piece: between two messages the emulators push all code
# out of the caches, so that each line of Python costs several times what it does in a loop. On the wire all messages
# look as those of `Connection` do, the number of bytes first; what is not a step is pickled, as gymnasium does.
_LENGTH = struct.Struct("!i")
_STEP = b"s"  # no pickle begins with it
_MARK = slice(_LENGTH.size, _LENGTH.size + len(_STEP))
_STEP_HEAD = struct.Struct("!iciI?d")

STEPPED = _LENGTH.pack(1) + b"d"
"""The answer to a step: it is done."""


def step_head(group: int, attempts: Attempts, slots: int) -> bytes:
    """Return the first part of what tells a subprocess with so many slots to step its games of a group.

    The second part are their actions, uint8, filled up to the number of slots.
    """
    return _STEP_HEAD.pack(_STEP_HEAD.size - _LENGTH.size + slots, _STEP, group, *attempts)


def rest_of(descriptor: int, message: bytes) -> bytes:
    """Read what is missing of a message that begins with some bytes, and return all of it; EOFError at the end."""
    while True:
        missing = _LENGTH.size - len(message)
        if missing <= 0:
            missing += _LENGTH.unpack_from(message)[0]
        if missing <= 0:
            return message
        more = os.read(descriptor, missing)
        if not more:
            raise EOFError
        message += more


def unpickled(message: bytes) -> Any:
    """Return what a message says that is not about a step."""
    return pickle.loads(message[_LENGTH.size :])


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
        descriptor, size, orders = pipe.fileno(), _STEP_HEAD.size + env.slots, dict[bytes, tuple[int, Attempts]]()
        while True:
            # What follows a step at once is another step, and no more than that is read.
            message = os.read(descriptor, size)
            if len(message) < size or message[_MARK] != _STEP:
                message = rest_of(descriptor, message)
            if message[_MARK] == _STEP:
                head = message[: _STEP_HEAD.size]
                order = orders.get(head)
                if order is None:  # seldom: there are few groups, and attempts hardly ever change
                    _, _, group, *attempts = _STEP_HEAD.unpack(head)
                    order = orders[head] = group, Attempts(*attempts)
                end = _STEP_HEAD.size + len(env.groups[order[0]])
                env.step_group(order[0], message[_STEP_HEAD.size : end], order[1])
                os.write(descriptor, STEPPED)
                continue
            command, data = unpickled(message)
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
