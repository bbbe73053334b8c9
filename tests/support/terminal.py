"""A command in a pseudo-terminal: what it draws there, and the keys that it is given."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

from tests.support.commands import PROGRAM


class Terminal:
    """A command in a pseudo-terminal of its own."""

    def __init__(self, *arguments: str, columns: int = 80, lines: int = 24, cwd: Path | None = None, **variables: str):
        self.side, other = pty.openpty()
        self.resize(columns, lines)
        command = [PROGRAM, *arguments]
        # These, where they are set, hide the size of the terminal.
        sizeless = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, start_new_session=True, cwd=cwd,
            env={**sizeless, "TERM": "xterm-256color", **variables},
        )  # fmt: skip
        os.close(other)
        self.seen = b""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, until: bytes = b"", seconds: float = 90.0) -> bytes:
        """Read on until something new has come, or all of it."""
        begin, end = len(self.seen), time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.side], [], [], 0.1)[0]:
                continue
            try:
                self.seen += os.read(self.side, 65536)
            except OSError:  # the other side is closed
                return self.seen[begin:]
            if until and until in self.seen[begin:]:
                return self.seen[begin:]
        self.process.kill()
        raise AssertionError(f"no {until!r} in {self.seen[-400:]!r}")

    def press(self, keys: bytes) -> None:
        os.write(self.side, keys)

    def run(self) -> list[str]:
        """Read to the end of the command, which has to succeed, and return its lines without control sequences."""
        self.read()
        assert self.process.wait(60) == 0, self.seen
        return plain(self.seen)


def plain(drawn: bytes) -> list[str]:
    """Return lines, those that were drawn over one another too, without colours and movements of the cursor."""
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn.decode(errors="ignore"))
    return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]
