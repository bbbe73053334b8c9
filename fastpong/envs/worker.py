"""The body of an env subprocess: it reads actions, steps its emulators, and answers."""

import contextlib
import multiprocessing
import os
import struct
import sys
import traceback
import types
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from fastpong.envs.emulators import Emulators
from fastpong.envs.memory import SharedArrays
from fastpong.envs.temporary import make_temporary_folder
from fastpong.signals import ignore, ignored_by_children

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is no more."""

MAX_GROUPS = 253
"""A message that steps a group begins with the group's number, one byte, and others with what comes next."""

SAVE, RESTORE, RESET = b"\xfd", b"\xfe", b"\xff"
"""Messages that tell all envs to write their states into the shared memory, to read them, and to begin anew."""

GO_ON = -1
"""Instead of a seed in `RESET`: the noise goes on."""

DONE, FAILED = b"\0", b"\1"
"""Answers to a message; after the second comes the text of an error, and where it was raised."""

LONGEST_ERROR = 16_000
"""Bytes; the system hands over so many at once."""


@contextlib.contextmanager
def start_method() -> Iterator[str]:
    """Name the way in which to start subprocesses that step emulators, to be started inside.

    A fork server hands no pipe of one subprocess to another, so that each notices when the parent dies; it has
    loaded the emulator but no thread; and its children use one BLAS thread, whatever the user's environment says. It
    outlives the signals that end the main process, which may still have to save: it ends when its pipe is closed.

    Subprocesses do not run the main module again, as multiprocessing would: they need nothing of it, so that a script
    works without a guard, and so does what has no file.
    """
    multiprocessing.set_forkserver_preload(["fastpong.envs.worker"])
    make_temporary_folder()
    main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        with ignored_by_children():
            resource_tracker.ensure_running()
            forkserver.ensure_running()
        yield "forkserver"
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def message_length(rows: int) -> int:
    """Return the bytes of each message to a subprocess with so many envs: an action for each, or a seed.

    All have one length, so that one read takes one of them whole: `Connection.recv_bytes`, with two reads and a dozen
    calls in Python, takes four times as long as `os.read`.
    """
    return 1 + max(rows, struct.calcsize("q"))


def work(
    memory: SharedArrays, index: int, env_fn: Any, pipe: Connection, parent_pipe: Connection, *gymnasiums: object
) -> None:
    """Body of a subprocess. After `memory` come the arguments of a worker of gymnasium's `AsyncVectorEnv`.

    A message is the number of a group and the actions of its envs, uint8; or `SAVE`, or `RESTORE`; or `RESET` and a
    seed, int64. It is filled up to `message_length`. `DONE` answers it. If gymnasium started the subprocess, it first
    asks whether the spaces are its own.
    """
    ignore()
    parent_pipe.close()
    env: Emulators = env_fn()
    own = {name: array[index] for name, array in memory.arrays.items()}
    env.bind(own)
    file, length = pipe.fileno(), message_length(env.rows)
    try:
        if gymnasiums:
            pipe.recv()
            pipe.send(((True, True), True))  # one function makes them all; to compare large boxes takes 0.8 MB an env
        while message := os.read(file, length):
            code = message[0]
            if code < MAX_GROUPS:
                env.step_group(code, message[1 : 1 + len(env.groups[code])])
            elif message[:1] == SAVE:
                env.save(own)
            elif message[:1] == RESTORE:
                env.restore(own)
            else:
                (seed,) = struct.unpack_from("q", message, 1)
                env.reset(seed=None if seed == GO_ON else seed)
            os.write(file, DONE)
    except GONE:
        pass  # the parent closed the pipe, or died
    except Exception as error:
        with contextlib.suppress(*GONE):
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            os.write(file, FAILED + text.encode()[:LONGEST_ERROR])
