"""The body of an env subprocess: it reads messages, lets its emulators take them, and answers."""

import contextlib
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from fastpong.envs.emulators import Emulators
from fastpong.envs.memory import SharedArrays
from fastpong.signals import ignore

GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a pipe raises when the process at its other end is no more."""

DONE = b""
"""The answer to a message; any other is the text of an error, and where it was raised."""

LONGEST_ERROR = 16_000
"""Bytes; a `Connection` writes a longer message in two parts, and a read that times out may end between them."""


def work(
    memory: SharedArrays, owned: Sequence[range], index: int, env_fn: Callable[[], Emulators], pipe: Connection,
    parent_pipe: Connection, *gymnasiums: object,
) -> None:  # fmt: skip
    """Body of a subprocess, which has the envs ``owned[index]`` in `memory`.

    The other arguments are those of a worker of gymnasium's `AsyncVectorEnv`. Messages are those of `Emulators.take`;
    `DONE` answers one.
    """
    ignore()
    parent_pipe.close()
    envs, emulators = owned[index], env_fn()
    try:
        emulators.bind({name: array[envs.start : envs.stop] for name, array in memory.arrays.items()})
        while True:
            emulators.take(pipe.recv_bytes())
            pipe.send_bytes(DONE)
    except GONE:
        pass  # the parent closed the pipe, or died
    except Exception as error:
        with contextlib.suppress(*GONE):
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            pipe.send_bytes(text.encode()[:LONGEST_ERROR])
