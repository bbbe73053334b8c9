"""An env subprocess as its parent sees it: if it dies or hangs, another one takes its place, and no bit changes.

What envs do depends on their rows and on the messages alone, and the rows stand in memory that the parent sees as
well. So it keeps the rows of before each step that is not answered yet, puts them back, and sends the step again.
"""

import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

import numpy as np

from fastpong.arrays import U8
from fastpong.envs.emulators import MAX_GROUPS, RESTORE
from fastpong.envs.patience import Patience
from fastpong.envs.process import Process, end_all
from fastpong.envs.worker import DONE, GONE
from fastpong.errors import EnvError
from fastpong.parallel.replaced import Losses

START_SECONDS = 0.25
"""Seconds of a processor that a subprocess may use for each env besides: ALE starts one in 0.09."""


class WorkerHandle:
    """Sends messages to a subprocess and waits for its answers, in order.

    `ends` are a subprocess and the pipe to it; `start` starts another one. `rows` uint8 (n, state_bytes) are the states
    of its envs, in the shared memory, and `groups` which of them are in each group.
    """

    def __init__(
        self,
        name: str,
        ends: tuple[Process, Connection],
        start: Callable[[], tuple[Process, Connection]],
        rows: U8,
        groups: Sequence[range],
        losses: Losses,
    ):
        self._name, self._start, self._losses = name, start, losses
        self._envs = len(rows)
        # Of each group the rows, and their copy of before its last step.
        self._rows = [rows[group.start : group.stop] for group in groups]
        self._before = [np.empty_like(states) for states in self._rows]
        self._open: deque[bytes] = deque()  # messages that are not answered yet, of each group at most one
        self._take(*ends)

    def send(self, message: bytes) -> None:
        """Send a message, see `Emulators.take`, without waiting for an answer."""
        if message[0] < MAX_GROUPS:
            self._keep_rows(message[0])
        self._open.append(message)
        try:
            self.pipe.send_bytes(message)
        except GONE:
            pass  # to be seen when it should answer

    def wait(self) -> None:
        """Wait until the first message that is not answered yet is; raises `EnvError` if it fails."""
        while True:
            try:
                self._read()
                break
            except LookupError as loss:
                self._replace(str(loss))
        self._open.popleft()

    def restart(self) -> None:
        """Start another subprocess: what this one had still to do is forgotten."""
        self._open.clear()
        try:
            self._begin_anew()
        except LookupError as loss:
            self._replace(str(loss))

    def _take(self, process: Process, pipe: Connection) -> None:
        self.process, self.pipe = process, pipe
        with socket.socket(fileno=pipe.fileno()) as side:  # a read that takes longer raises BlockingIOError
            side.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 1, 0))
            side.detach()

    def _keep_rows(self, group: int) -> None:
        self._before[group][:] = self._rows[group]

    def _read(self) -> None:
        """Read one answer. Raises `LookupError` if the subprocess died or hangs, `EnvError` if it failed."""
        patience = None
        while True:
            try:
                answer = self.pipe.recv_bytes()
            except BlockingIOError:
                if patience is None:
                    patience = Patience(self.process.pid, START_SECONDS * self._envs)
                elif patience.is_over():
                    raise LookupError(f"(pid {self.process.pid}) hangs") from None
            except GONE:
                raise LookupError(self._end()) from None
            else:
                if answer == DONE:
                    return
                error, _, trace = answer.decode(errors="replace").partition("\n")
                raise EnvError(f"an env subprocess failed: {error}") from RuntimeError(trace)

    def _end(self) -> str:
        """Say how the subprocess ended."""
        self.process.join(1.0)
        code = self.process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"exited with {code}"
        return f"(pid {self.process.pid}) {how}"

    def _replace(self, loss: str) -> None:
        """Start another subprocess, and let it do what this one had still to do."""
        while True:
            self._losses.add(self._name, loss)
            try:
                self._begin_anew()
                return
            except LookupError as error:
                loss = str(error)

    def _begin_anew(self) -> None:
        """Try to. Raises `LookupError` if the new subprocess is lost as well."""
        self.pipe.close()
        end_all([self.process], 0.0)
        try:
            self._take(*self._start())
            steps = [message[0] for message in self._open if message[0] < MAX_GROUPS]
            for group in steps:
                self._rows[group][:] = self._before[group]
            if steps:
                self.pipe.send_bytes(RESTORE)
                self._read()
            for message in self._open:
                self.pipe.send_bytes(message)
        except (EOFError, OSError) as error:
            time.sleep(1.0)  # the fork server may have died, too: soon there is another one
            raise LookupError(f"does not start ({error!r})") from None
