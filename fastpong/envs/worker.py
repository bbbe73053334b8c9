"""The body of an env subprocess: it reads messages, lets its emulators take them, and answers."""

import contextlib
import multiprocessing
import os
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from fastpong.envs.emulators import Emulators, message_length
from fastpong.envs.memory import SharedArrays
from fastpong.envs.temporary import make_temporary_folder
from fastpong.signals import ignore, ignored_by_children

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

_ENVIRONMENT = {**dict.fromkeys(THREAD_VARIABLES, "1"), "PYTHONSAFEPATH": "1"}
"""With the last one Python runs no file of the current directory, a user's ``random.py`` or a stranger's."""

GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is no more."""

DONE, FAILED = b"\0", b"\1"
"""Answers to a message; after the second comes the text of an error, and where it was raised."""

LONGEST_ERROR = 16_000
"""Bytes; the system hands over so many at once."""


@contextlib.contextmanager
def start_method(engine: str = "ale") -> Iterator[str]:
    """Name the way in which to start subprocesses that step an engine, to be started inside.

    A fork server hands no pipe of one subprocess to another, so that each notices when the parent dies; it has
    loaded the engine, but has no thread; and its children use one BLAS thread, whatever the user's environment says. No
    file of the current directory is run. It outlives the signals that end the main process, which may still have to
    save: it ends when its pipe is closed.

    Subprocesses do not run the main module again, as multiprocessing would: they need nothing of it, so that a script
    works without a guard, and so does what has no file.
    """
    multiprocessing.set_forkserver_preload(
        ["fastpong.envs.worker", f"fastpong.envs.{'ale' if engine == 'ale' else 'preload'}"]
    )
    make_temporary_folder()
    main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
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


def start_early(engine: str) -> None:
    """Start the fork server, which loads the engine while this process loads its kernels."""
    with start_method(engine):
        pass


def work(
    memory: SharedArrays, owned: Sequence[range], index: int, env_fn: Any, pipe: Connection, parent_pipe: Connection,
    *gymnasiums: object,
) -> None:  # fmt: skip
    """Body of a subprocess, which has the envs ``owned[index]`` in `memory`.

    After these come the arguments of a worker of gymnasium's `AsyncVectorEnv`. If that started the subprocess, it first
    asks whether the spaces are its own. Messages are those of `Emulators.take`; `DONE` answers one.
    """
    ignore()
    parent_pipe.close()
    envs, emulators = owned[index], env_fn()
    assert isinstance(emulators, Emulators)
    file, length = pipe.fileno(), message_length(len(envs))
    try:
        if gymnasiums:
            pipe.recv()
            pipe.send(((True, True), True))  # one function makes them all; to compare large boxes takes 0.8 MB an env
        emulators.bind({name: array[envs.start : envs.stop] for name, array in memory.arrays.items()})
        while message := os.read(file, length):
            emulators.take(message)
            os.write(file, DONE)
    except GONE:
        pass  # the parent closed the pipe, or died
    except Exception as error:
        with contextlib.suppress(*GONE):
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            os.write(file, FAILED + text.encode()[:LONGEST_ERROR])
