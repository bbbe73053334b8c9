"""An env subprocess as its parent sees it: if it dies or hangs, another one takes its place, and no bit changes.

What envs do depends on their state and their actions alone. So the parent keeps the state that they had some steps
ago, and the messages since then; a new subprocess takes these steps again, and goes on.
"""

import os
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from fastpong.arrays import Arrays
from fastpong.envs.worker import DONE, GONE, LONGEST_ERROR, RESTORE, SAVE, message_length
from fastpong.errors import EnvError
from fastpong.parallel.losses import Losses
from fastpong.parallel.machine import processor_time

KEPT_MESSAGES = 256
"""After so many, the state is saved anew: with two groups every 128 steps. It takes 22 µs an env."""

HANG_SECONDS = 5
"""A subprocess hangs if it is asked for something and gets no time of a processor for so long.

To be slow is no hang: on a busy or suspended machine it gets little time, or the parent gets none either."""


class WorkerHandle:
    """Sends messages to a subprocess and waits for its answers, in order.

    `ends` are a subprocess and the pipe to it; `start` starts another one. `states` is where it saves those of its
    envs, in the shared memory: arrays (envs, …).
    """

    def __init__(
        self,
        name: str,
        ends: tuple[BaseProcess, Connection],
        start: Callable[[], tuple[BaseProcess, Connection]],
        states: Arrays,
        losses: Losses,
    ):
        self._name, self._start, self._states, self._losses = name, start, states, losses
        self._length = message_length(len(states["steps"]))
        self._saved: Arrays | None = None  # states of all envs; None: those of a new subprocess
        self._since: list[bytes] = []  # messages since then
        self._open: deque[bytes] = deque()  # messages that are not answered yet
        self._take(*ends)

    def send(self, message: bytes) -> None:
        """Send a message, see `fastpong.envs.worker.work`, without waiting for an answer."""
        if len(self._since) >= KEPT_MESSAGES and SAVE not in self._open:
            self._put(SAVE)
        self._put(message)

    def wait(self) -> None:
        """Wait until the first step or reset that is not answered yet is done; raises `EnvError` if it fails."""
        while self._answered() == SAVE:
            pass

    def wait_for_all(self) -> None:
        """Wait until all messages are answered."""
        while self._open:
            self._answered()

    def restore(self, states: Arrays) -> None:
        """Put the envs to these states, without waiting for it. No message may be open."""
        self._saved, self._since = states, []
        self._write_states()
        self.send(RESTORE)

    def end(self, seconds: float | None) -> None:
        """End the subprocess, at the latest after some seconds by force."""
        self.pipe.close()
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _take(self, process: BaseProcess, pipe: Connection) -> None:
        self.process, self.pipe = process, pipe
        with socket.socket(fileno=pipe.fileno()) as side:  # a read that takes longer raises BlockingIOError
            side.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 1, 0))
            side.detach()

    def _put(self, message: bytes) -> None:
        self._since.append(message)
        self._open.append(message)
        try:
            self._write(message)
        except GONE:
            pass  # to be seen when it should answer

    def _write(self, message: bytes) -> None:
        os.write(self.pipe.fileno(), message.ljust(self._length, b"\0"))

    def _answered(self) -> bytes:
        """Wait for the next answer; return the message that it belongs to."""
        while True:
            try:
                self._read()
                break
            except LookupError as loss:
                self._replace(str(loss))
        message = self._open.popleft()
        if message == SAVE:  # what came before it is answered as well
            self._saved = {name: array.copy() for name, array in self._states.items()}
            self._since = list(self._open)
        return message

    def _read(self) -> None:
        """Read one answer. Raises `LookupError` if the subprocess died or hangs, `EnvError` if it failed."""
        stood, before = 0, -1.0
        while stood < HANG_SECONDS:
            try:
                answer = os.read(self.pipe.fileno(), len(DONE))
                if not answer:
                    raise EOFError
            except BlockingIOError:
                now = processor_time(self.process.pid)
                stood, before = (stood + 1 if now == before else 0), now
            except GONE:
                raise LookupError(self._end()) from None
            else:
                if answer == DONE:
                    return
                error, _, trace = os.read(self.pipe.fileno(), LONGEST_ERROR).decode(errors="replace").partition("\n")
                raise EnvError(f"an env subprocess failed: {error}") from RuntimeError(trace)
        raise LookupError(f"(pid {self.process.pid}) hangs")

    def _end(self) -> str:
        """Say how the subprocess ended."""
        self.process.join(1.0)
        code = self.process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"exited with {code}"
        return f"(pid {self.process.pid}) {how}"

    def _replace(self, loss: str) -> None:
        """Start another subprocess, and let it repeat what this one did."""
        while True:
            self._losses.add(self._name, loss)
            self.end(0.0)
            try:
                self._take(*self._start())
                if self._saved:
                    self._write_states()
                    self._write(RESTORE)
                    self._read()
                for place, message in enumerate(self._since, len(self._open) - len(self._since)):
                    self._write(message)
                    if place < 0:  # it was answered already
                        self._read()
                return
            except LookupError as error:
                loss = str(error)
            except (EOFError, OSError) as error:
                loss = f"does not start ({error!r})"
                time.sleep(1.0)  # the fork server may have died, too: soon there is another one

    def _write_states(self) -> None:
        assert self._saved
        for name, array in self._saved.items():
            self._states[name][:] = array
