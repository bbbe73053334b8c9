"""What an env shows its learner: one class for each kind of observation."""

import sys
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from fastpong.arrays import I64, U8, Arrays, Bool
from fastpong.kernels.drawing import FRAMES, SIDE, draw_courts, draw_differences, draw_in_colour, draw_stacks
from fastpong.kernels.preprocess import PIXELS, as_words
from fastpong.pong import COURT, SCREEN

Array = npt.NDArray[Any]

RECENT = 4
"""Arrays that are used again when nobody else has them: ours, and those that a learner keeps from step to step."""


def _references(arrays: list[Array]) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


(_ALONE,) = _references([np.empty(0)])
"""What Python counts for an array that nothing but a list has. Views, and tensors on its memory, count as well."""


class Observations:
    """Palette indices, uint8 (210, 160), as the emulator draws them: kind ``screen``.

    `arrays` are those of the envs, see `fastpong.envs.memory.fields`.
    """

    images: tuple[str, ...] = ("screens", "final_screens")
    """The `fastpong.envs.engine.IMAGES` that it needs."""

    shape: tuple[int, ...] = SCREEN
    low, high, dtype = 0, 255, np.uint8

    def __init__(self, arrays: Arrays, copy: bool = True):
        self.screens, self.arrays, self._copy = arrays["screens"], arrays, copy
        self.now: Array = np.zeros((len(self.screens), *self.shape), self.dtype)
        self.before = self.now
        self._recent: list[Array] = []

    @classmethod
    def space(cls) -> gymnasium.spaces.Box:
        """Return the space of one env."""
        return gymnasium.spaces.Box(cls.low, cls.high, cls.shape, cls.dtype)

    def begin(self) -> None:
        """Begin a step: what was `now` is then `before`. Every env is to be updated, or written to `now`."""
        self.before = self.now
        if self._copy:
            self.now = self._unused()

    def _unused(self) -> Array:
        """Return an array that nobody else has. To touch new memory takes as long as to draw a stack."""
        for place, references in enumerate(_references(self._recent)):
            if references == _ALONE:
                return self._recent[place]
        self._recent = [*self._recent[1 - RECENT :], np.empty_like(self.before)]
        return self._recent[-1]

    def update(self, members: I64, begins: Bool) -> None:
        """Bring those of some envs, int64 (n,), up to date in `now`; `begins` (n,) says where a game begins."""
        self._draw(self.screens, members, members, begins, self.before, self.now)

    def final(self, env: int) -> Array:
        """Return the last observation of a game that has just ended, before `update`."""
        image = np.empty((1, *self.shape), self.dtype)
        row, one = np.array([env]), np.zeros(1, np.int64)
        self._draw(self.arrays["final_screens"], row, one, np.zeros(1, bool), self.before[env : env + 1], image)
        return image[0]  # type: ignore[no-any-return]

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, before: Array, images: Array) -> None:
        for env, row in zip(members.tolist(), rows.tolist(), strict=True):  # an index of arrays copies twice
            images[env] = screens[row]


class Colours(Observations):
    """Red, green and blue, uint8 (210, 160, 3), as ``ALE/Pong-v5`` has them: kind ``rgb``."""

    shape = (*SCREEN, 3)

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, before: Array, images: Array) -> None:
        draw_in_colour(screens, rows, members, images)


class Courts(Observations):
    """The court without a background, uint8 (160, 80) of 0 and 1: kind ``court``."""

    shape, high = COURT, 1

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, before: Array, images: Array) -> None:
        draw_courts(as_words(screens), rows, members, images)


class Differences(Observations):
    """The reference programs' image minus the one before, int8 (80, 80) of −1, 0, 1: kind ``karpathy``."""

    shape, low, high = (80, 80), -1, 1
    dtype: Any = np.int8

    def __init__(self, arrays: Arrays, copy: bool = True):
        super().__init__(arrays, copy)
        self._last = np.zeros((len(self.screens), PIXELS), np.uint8)  # images

    def final(self, env: int) -> Array:
        """See `Observations`."""
        image, one = np.empty((1, *self.shape), self.dtype), np.zeros(1, np.int64)
        last = self._last[env : env + 1].copy()
        screens = as_words(self.arrays["final_screens"])
        draw_differences(screens, np.array([env]), one, np.zeros(1, bool), last, image)
        return image[0]  # type: ignore[no-any-return]

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, before: Array, images: Array) -> None:
        draw_differences(as_words(screens), rows, members, begins, self._last, images)


class Stacks(Observations):
    """The last four images in grey, uint8 (4, 84, 84), the newest last: kind ``stack84``.

    They are those of gymnasium's `AtariPreprocessing` (``noop_max=0``) and `FrameStackObservation`, bit for bit, but
    for the last one of a game: there it is the last screen, here and not the one of a step before.
    """

    images = ("screens", "final_screens", "earlier_screens")
    shape = (FRAMES, SIDE, SIDE)

    def _draw(self, screens: U8, rows: I64, members: I64, begins: Bool, before: Array, images: Array) -> None:
        earlier = self.arrays["earlier_screens"] if screens is self.screens else screens
        draw_stacks(as_words(screens), as_words(earlier), rows, members, begins, before, images)


KINDS: dict[str, type[Observations]] = {
    "screen": Observations, "rgb": Colours, "court": Courts, "karpathy": Differences, "stack84": Stacks,
}  # fmt: skip
"""The kinds of observations, by the word for ``obs``."""
