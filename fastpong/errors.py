"""The errors a user can cause or meet; the command line prints each as one line."""

import contextlib
import errno
import sys


class FastpongError(Exception):
    """Something failed. The message says what, and what to do about it. Exit code 1."""


class UsageError(FastpongError):
    """The command or a setting makes no sense. The message says what would. Exit code 2."""


class RanksError(FastpongError):
    """Ranks cannot start, or have come apart."""


class LostError(FastpongError):
    """Too many processes of a run were lost."""


class EnvError(FastpongError):
    """An env subprocess failed, or cannot start."""


class DivergedError(FastpongError):
    """Weights have become NaN or infinite."""


def reader_gone(error: OSError) -> bool:
    """Return whether writing failed because a pipe's reader has ended, or the terminal is gone."""
    return error.errno in (errno.EPIPE, errno.EIO)


def explain(error: BaseException, who: str = "") -> int:
    """Print what went wrong in one line on stderr, and return the exit code."""
    code, message = 1, str(error)
    if type(error).__name__ == "NoArgsIsHelpError":  # click's, whose message is the help
        print(message, file=sys.stderr, flush=True)
        return 2
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":  # click's, for ctrl-C at a prompt
        code, message = 130, "interrupted"
    elif hasattr(error, "format_message"):  # click's own complaints, whichever click typer brings along
        code, message = 2, error.format_message().replace("\n", " ")
    elif isinstance(error, UsageError):
        code = 2
    elif not isinstance(error, FastpongError | OSError):
        message = f"{type(error).__name__}: {error} (a bug: --debug shows where)"
    with contextlib.suppress(OSError):  # nobody reads it
        print(f"fastpong: {who}{message}", file=sys.stderr, flush=True)
    return code
