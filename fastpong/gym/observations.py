"""What an env shows its learner: one class for each kind of observation."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from fastpong.arrays import I64, U8, Bool
from fastpong.errors import UsageError
from fastpong.kernels.drawing import FRAMES, SIDE, draw_courts, draw_differences, stack_greys
from fastpong.kernels.preprocess import PIXELS, as_words
from fastpong.pong import ACTION_SETS, COLOURS, COURT, SCREEN

Array = npt.NDArray[Any]

_COLOURS = np.zeros((256, 3), np.uint8)
_COLOURS[list(COLOURS)] = list(COLOURS.values())


def in_colour(screens: U8) -> U8:
    """Return screens, uint8 (…, 210, 160) palette indices, as red, green and blue, uint8 (…, 210, 160, 3)."""
    return _COLOURS[screens]


class Observations:
    """Palette indices, uint8 (210, 160), as the emulator draws them: kind ``screen``.

    `screens` and `extra` are the arrays of the envs, see `fastpong.envs.emulators.observation_space` and
    `fastpong.envs.emulators.extra_layout`; `rows` int64 (n,) are those of the envs in them.
    """

    extras: tuple[str, ...] = ("final_screens",)
    """Arrays of `extra_layout` that it needs."""

    shape: tuple[int, ...] = SCREEN
    low, high, dtype = 0, 255, np.uint8

    def __init__(self, screens: U8, extra: dict[str, U8], rows: I64):
        self.screens, self.extra, self.rows, self.count = screens, extra, rows, len(rows)
        self.now: Array = np.zeros((self.count, *self.shape), self.dtype)

    @classmethod
    def space(cls) -> gymnasium.spaces.Box:
        """Return the space of one env."""
        return gymnasium.spaces.Box(cls.low, cls.high, cls.shape, cls.dtype)

    def update(self, members: I64, begins: Bool) -> None:
        """Bring those of some envs, int64 (n,), up to date in `now`; `begins` (n,) says where a game begins."""
        self._draw(self.screens, self.rows[members], members, begins, self.now)

    def final(self, env: int) -> Array:
        """Return the last observation of a game that has just ended, before `update`."""
        member, no = np.array([env]), np.zeros(1, bool)
        image = self.now.copy()
        self._draw(self.extra["final_screens"], self.rows[member], member, no, image)
        last: Array = image[env]
        return last

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, images: Array) -> None:
        images[members] = screens[rows]


class Colours(Observations):
    """Red, green and blue, uint8 (210, 160, 3), as ``ALE/Pong-v5`` has them: kind ``rgb``."""

    shape = (*SCREEN, 3)

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, images: Array) -> None:
        images[members] = in_colour(screens[rows])


class Courts(Observations):
    """The court without a background, uint8 (160, 80) of 0 and 1: kind ``court``."""

    shape, high = COURT, 1

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, images: Array) -> None:
        draw_courts(as_words(screens), rows, members, images)


class Differences(Observations):
    """The reference programs' image minus the one before, int8 (80, 80) of −1, 0, 1: kind ``karpathy``."""

    shape, low, high = (80, 80), -1, 1
    dtype: Any = np.int8

    def __init__(self, screens: U8, extra: dict[str, U8], rows: I64):
        super().__init__(screens, extra, rows)
        self._last = np.zeros((self.count, PIXELS), np.uint8)

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, images: Array) -> None:
        draw_differences(as_words(screens), rows, members, begins, self._last, images)


class Stacks(Observations):
    """The last four images in grey, uint8 (4, 84, 84), the newest last: kind ``stack84``.

    They are those of gymnasium's `AtariPreprocessing` (``noop_max=0``) and `FrameStackObservation`, bit for bit, but
    for the last one of a game: there it is the last screen, here and not the one of a step before.
    """

    extras = ("final_screens", "earlier_screens")
    shape = (FRAMES, SIDE, SIDE)

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, images: Array) -> None:
        earlier = self.extra["earlier_screens"] if screens is self.screens else screens
        stack_greys(as_words(screens), as_words(earlier), rows, members, begins, images)


KINDS: dict[str, type[Observations]] = {
    "screen": Observations, "rgb": Colours, "court": Courts, "karpathy": Differences, "stack84": Stacks,
}  # fmt: skip
"""The kinds of observations, by the word for ``obs``."""


def check_options(obs: str, actions: int, render_mode: str | None) -> None:
    """Raise `UsageError` for an impossible option of an env."""
    if obs not in KINDS:
        raise UsageError(f"obs is one of {', '.join(KINDS)}, not {obs!r}")
    if actions not in ACTION_SETS:
        raise UsageError(f"actions is one of {', '.join(map(str, ACTION_SETS))}, not {actions!r}")
    if render_mode not in (None, "rgb_array"):
        raise UsageError(f"render_mode is 'rgb_array' or None, not {render_mode!r}: fastpong play has a window")
