"""The errors a user can cause or meet, and the one way to a terminal: each text becomes a printable line."""

import errno
import os
import sys
import traceback


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


def install(extra: str) -> str:
    """Return how the libraries of an extra of ``pyproject.toml`` are installed: fastpong is on no package index."""
    return f"pip install -e '.[{extra}]' in a checkout of fastpong"


def missing(what: str, library: str, extra: str) -> FastpongError:
    """Return the error for a library that only some commands need, and that is not installed."""
    return FastpongError(f"{what} needs {library}: {install(extra)}")


def printable(text: object) -> str:
    """Return a text as one line that no terminal obeys.

    Letters of all alphabets stay. Line breaks, control characters (ESC, DEL, U+0080 … U+009F), marks that turn the
    direction of writing, and halves of surrogate pairs are written as Python's escapes.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def tell(*lines: str, result: bool = False) -> None:
    """Print lines to stderr, or a `result` to stdout, if somebody still reads them; each is made `printable`.

    A result that cannot be written although somebody waits for it (the disk is full) raises OSError.
    """
    try:
        print(*map(printable, lines), sep="\n", file=sys.stdout if result else sys.stderr, flush=True)
    except OSError as error:
        if result and not reader_gone(error):
            raise


def reader_gone(error: OSError) -> bool:
    """Return whether writing failed because a pipe's reader has ended, or the terminal is gone."""
    return error.errno in (errno.EPIPE, errno.EIO)


def explain(error: BaseException, who: str = "") -> int:
    """Print what went wrong in one line on stderr, and return the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":  # click's, whose message is the help
        tell(*str(error).split("\n"))
        return 2
    code, message = _code_and_message(error)
    tell(f"fastpong: {who}{message}")
    return code


def _code_and_message(error: BaseException) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":  # click's, for ctrl-C at a prompt
        return 130, "interrupted"
    if hasattr(error, "format_message"):  # click's own complaints, whichever click typer brings along
        return 2, error.format_message().replace("\n", " ")
    if isinstance(error, UsageError):
        return 2, str(error)
    if isinstance(error, FastpongError):
        return 1, str(error)
    if isinstance(error, OSError):
        return 1, _of_the_system(error)
    library = _imported(error)
    if library:
        names = ", ".join(name for name in os.environ if name.startswith(f"{library.upper()}_"))
        look = f"look at {names} in the environment" if names else "install it again, --debug shows more"
        return 1, f"{library} cannot be imported ({error}): {look}"
    return 1, f"{type(error).__name__}: {error} (a bug: --debug shows where)"


def _imported(error: BaseException) -> str | None:
    """Return the package of others that was being imported when an error arose, the innermost one; None: none was."""
    names = [
        frame.f_globals.get("__name__", "").partition(".")[0]
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>"
    ]
    return names[-1] if names and names[-1] not in ("fastpong", "__main__") else None


def _of_the_system(error: OSError) -> str:
    """Say what the operating system refuses, and to whom."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files: raise the limit, which ulimit -n shows"
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the current directory was deleted: change to another one"
    return str(error)
