"""The errors a user can cause or meet; the command line prints each as one line."""


class FastpongError(Exception):
    """Something failed. The message says what, and what to do about it. Exit code 1."""


class UsageError(FastpongError):
    """What was asked for makes no sense. The message says what would. Exit code 2."""


class RanksError(FastpongError):
    """Ranks cannot start, or have come apart."""
