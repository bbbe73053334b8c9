"""Real Pong: many emulators in a few subprocesses, as one gymnasium vector environment."""

from fastpong.system import require_unix

require_unix()  # for gymnasium, which loads `fastpong.gym` by its name
