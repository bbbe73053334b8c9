"""What steps the games behind the envs: an engine. It changes no bit of what an env does, only how long that takes.

A state of an env is one row of bytes, in memory that the main process shares with its env subprocesses: to save,
restore, copy or send an env is to copy its row. The command line reads the names here, so this loads no NumPy.
"""

from typing import TYPE_CHECKING, ClassVar, Protocol

from fastpong.errors import UsageError

if TYPE_CHECKING:
    from fastpong.arrays import U8

STATE_BYTES = {"console": 320, "ale": 8192}
"""The engines, and the bytes of an env's state in each: so many lines of the caches, 64 bytes each."""

ENGINES = tuple(STATE_BYTES)

DEFAULT_ENGINE = "console"

IMAGES = ("screens", "courts", "final_screens", "earlier_screens")
"""What may be wanted of each game: its screen, its court (see `fastpong.courts`), the last screen of a game that ended,
and the screen of one frame before (zeros where a game begins)."""

SAVED_IMAGES = IMAGES[:2]
"""Those that belong to a snapshot: a restored engine draws no others before its next step."""


class Engine(Protocol):
    """Steps some envs, by the rules of ``ALE/Pong-v5``, in the arrays of `memory.fields` that it is made with.

    What an env does depends on its row and its actions alone, not on who is stepped with it. An engine may keep what
    it has derived from the rows, until it is told to `restore`. Games begin anew by themselves, in the step in which
    they end (gymnasium's ``SAME_STEP``). Envs are numbered by the rows of the arrays.

    Attributes
    ----------
    name : str
        One of `ENGINES`.
    state_bytes : int
        ``STATE_BYTES[name]``.
    """

    name: ClassVar[str]
    state_bytes: ClassVar[int]

    def reset(self, envs: range) -> None:
        """Put these envs into the first state of a game: rows and images."""

    def step(self, envs: range, actions: "U8", repeats: "U8") -> None:
        """Take a step of these envs: new rows, images, rewards and ends.

        `actions` uint8 (n,) are indices into `fastpong.pong.ACTIONS`, or `STAY`: then reward and end are 0, and all
        else holds still. For `repeats` uint8 (n,) frames the action before is held, which is part of the row (at first
        the no-op); then the new one, and if that is held for a frame, it is the next step's action before.
        """

    def ram(self, env: int) -> "U8":
        """Return the RAM of an env's console, uint8 (128,): what engines are compared by."""

    def restore(self) -> None:
        """Go on from the rows, which somebody else has written; images and outcomes are theirs to write, too.

        Raises `EnvError` for bytes that are no state, if the engine could not step them without harm.
        """


def check_engine(name: str) -> str:
    """Return the name of an engine; raises `UsageError` if it is none."""
    if name not in ENGINES:
        raise UsageError(f"the engine is one of {', '.join(ENGINES)}, not {name!r}")
    return name
