"""Practice: a point that was lost is played again from some moments before, apart from the game.

Where an agent wins most points there is little left to learn from them, and the few balls that it misses come up
seldom. So when a point is lost the emulator is put back to a moment shortly before, and the agent tries again, with
fresh noise: until it wins, or has used up its attempts. Then the game goes on as if nothing had been: practice changes
neither its score nor its course, it only costs steps. These are restarts from memory, as in Tavakoli et al.,
"Exploring restart distributions", 2018, and in Salimans and Chen, "Learning Montezuma's Revenge from a single
demonstration", 2018.
"""

import struct
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from ale_py import Action, ALEInterface, ALEState

EVERY = 12
"""Steps between two moments of a point that are remembered: copying an emulator takes a tenth of a step."""

NEAREST, FARTHEST = 12, 60
"""How many steps before the one that lost the point an attempt may begin."""

_HEAD, _ENTRY = struct.Struct("<4i"), struct.Struct("<4i")


class Moment(NamedTuple):
    """Where a game can be put back to."""

    age: int
    """Steps since the point began."""
    state: ALEState
    held: Action
    """The action that a sticky one would repeat."""
    screen: npt.NDArray[np.uint8]
    """Palette indices (210, 160): the emulator draws none before its next step."""


class Practice:
    """What one game remembers of the present point, and of the game while it practises.

    Attributes
    ----------
    aside : Moment or None
        Where the game goes on after the practice; None while it goes on.
    """

    def __init__(self) -> None:
        self.aside: Moment | None = None
        self._moments: list[Moment] = []  # of the present point, EVERY steps apart
        self._age = 0  # steps of the present point that did not end it
        self._left = 0  # attempts, the present one included

    def after(
        self, emulator: ALEInterface, held: Action, reward: int, restart: Moment | None, attempts: int, draw: float
    ) -> Moment | None:
        """Take note of a step, and put the emulator elsewhere if a practice begins, goes on or ends.

        Parameters
        ----------
        emulator : ALEInterface
            After the step and, if that ended the game, put to where the next one begins.
        held : Action
            The action that a sticky one would repeat.
        reward : int
            Points won minus lost in the step.
        restart : Moment or None
            If it ended the game, or what would have been one, where the next one begins.
        attempts : int
            How often a lost point is tried again; 0: no practice.
        draw : float
            In [0, 1): chooses where an attempt begins.

        Returns
        -------
        Moment or None
            Where the emulator is now, if that is not where the step has led.
        """
        if reward == 0 and restart is None:
            self._age += 1
            if attempts and self._age % EVERY == 0:
                self._moments.append(remember(self._age, emulator, held))
                del self._moments[: -(FARTHEST // EVERY) - 1]
            return None
        usable = [i for i, moment in enumerate(self._moments) if NEAREST <= self._age - moment.age <= FARTHEST]
        if self.aside is None and reward < 0 and attempts and usable:
            self.aside, self._left = restart or remember(0, emulator, held), attempts + 1
        if self.aside is None:
            self._begin_point()
            return None
        self._left -= 1
        if reward < 0 and self._left > 0 and usable:
            pick = usable[int(draw * len(usable))]
            del self._moments[pick + 1 :]
            moment = self._moments[pick]
            self._age = moment.age
        else:
            moment, self.aside = self.aside, None
            self._begin_point()
        emulator.restoreState(moment.state)
        return moment

    def _begin_point(self) -> None:
        self._moments, self._age, self._left = [], 0, 0

    def dump(self) -> bytes:
        """Everything, for a `load`."""
        moments = [*self._moments, *([self.aside] if self.aside else [])]
        parts = [_HEAD.pack(self._age, self._left, len(moments), self.aside is not None)]
        for moment in moments:
            state = moment.state.serialize()
            packed = zlib.compress(state + moment.screen.tobytes(), 1)
            parts += [_ENTRY.pack(moment.age, moment.held.value, len(state), len(packed)), packed]
        return b"".join(parts)

    @classmethod
    def load(cls, data: bytes) -> "Practice":
        """Return what a `dump` tells."""
        practice = cls()
        practice._age, practice._left, count, aside = _HEAD.unpack_from(data)
        at = _HEAD.size
        for _ in range(count):
            age, held, size, packed = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            raw = zlib.decompress(data[at : at + packed])
            at += packed
            screen = np.frombuffer(raw, np.uint8, offset=size).reshape(210, 160)
            practice._moments.append(Moment(age, ALEState(raw[:size]), Action(held), screen))
        if aside:
            practice.aside = practice._moments.pop()
        return practice


def remember(age: int, emulator: ALEInterface, held: Action) -> Moment:
    """Return where a game is, `age` steps into its point, with the action that a sticky one would repeat."""
    # ALE's own noise is never drawn from, see `PongGames`, and to copy its generator takes twice as long as the rest.
    return Moment(age, emulator.cloneState(include_rng=False), held, emulator.getScreen())
