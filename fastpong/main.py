"""The program around the commands: streams, signals, and errors as one line on stderr and an exit code."""

import contextlib
import io
import os
import sys
import warnings

from fastpong.errors import FastpongError, UsageError, explain, reader_gone, tell
from fastpong.system import require_unix

try:
    require_unix()  # what follows cannot be imported without
except FastpongError as error:
    sys.exit(explain(error))

from fastpong import signals
from fastpong.cli import app
from fastpong.parallel.machine import launched


def _show_warning(message: Warning | str, *where: object) -> None:
    """Print the first line of a warning, without the place in the code."""
    tell(f"fastpong: {str(message).partition(chr(10))[0]}")


def main() -> None:
    """Run the command line and exit with its code: 0, 1 (failed), 2 (wrong usage) or 130 (interrupted)."""
    debug = "--debug" in sys.argv[1:]  # allowed anywhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 shows ? for "…"
    sys.stderr = sys.stderr or open(os.devnull, "w")  # closed: then stdout still holds the result alone
    sys.stdout = sys.stdout or sys.stderr  # closed: the result is not lost
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    signals.raise_as_ctrl_c()
    try:
        code = app([argument for argument in sys.argv[1:] if argument != "--debug"], standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        with contextlib.suppress(UsageError):
            if launched()[0]:  # all ranks of a launcher get here with the same error: rank 0 prints it
                sys.stderr = open(os.devnull, "w")
        code = explain(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code if code or reader_gone(error) else explain(error)
        sys.stdout = open(os.devnull, "w")  # Python would fail once more as it ends
    try:
        sys.stderr.flush()
    except OSError:
        sys.stderr = open(os.devnull, "w")  # the same, from Python 3.14 on
    sys.exit(code if isinstance(code, int) else 0)
