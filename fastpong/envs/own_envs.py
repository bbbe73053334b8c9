"""Envs that a process steps itself, beside those of its subprocesses."""

from collections import deque

from fastpong.arrays import Arrays
from fastpong.envs.emulators import RESTORE, Emulators


class OwnEnvs:
    """Takes messages as a `WorkerHandle` does, in this process, and only when it is waited for."""

    def __init__(self, emulators: Emulators, arrays: Arrays):
        self._emulators, self._open = emulators, deque[bytes]()
        emulators.bind(arrays)

    def send(self, message: bytes) -> None:
        """Keep a message, see `Emulators.take`."""
        self._open.append(message)

    def wait(self) -> None:
        """Take the first message that was not taken yet."""
        self._emulators.take(self._open.popleft())

    def restart(self) -> None:
        """Forget what was still to be done."""
        self._open.clear()
        self._emulators.take(RESTORE)
