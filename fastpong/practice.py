"""Practice: a point that was lost is played again from some moments before, apart from the game.

Where an agent wins most points there is little left to learn from them, and the few balls that it misses come up
seldom. So when a point is lost the emulator is put back to a moment shortly before, and the agent tries again, with
fresh noise: until it wins, or has used up its attempts; or, for an agent that hardly loses any more, until it has used
up its attempts whether it wins or not. Then the game goes on as if nothing had been: practice changes neither its score
nor its course, it only costs steps. These are restarts from memory, as in Tavakoli et al.,
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

_HEAD, _ENTRY = struct.Struct("<6i"), struct.Struct("<4i")


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
        self._moments: list[Moment]  # of the present point, EVERY steps apart
        self._age: int  # steps of the present point that did not end it
        self._left: int  # attempts, the present one included
        self._before: list[Moment]  # of the point as it was last lost, after `_lost_at` steps
        self._lost_at: int
        self._begin_point()

    def follow(self, emulator: ALEInterface, held: Action, attempts: int) -> None:
        """Take note of a step amid a point; arguments as for `after`."""
        self._age += 1
        if attempts and self._age % EVERY == 0:
            self._moments.append(remember(self._age, emulator, held))
            del self._moments[: -(FARTHEST // EVERY) - 1]

    def after(
        self,
        emulator: ALEInterface,
        held: Action,
        reward: int,
        restart: Moment | None,
        attempts: int,
        after_wins: bool,
        draw: float,
    ) -> Moment | None:
        """Take note of a step that ended a point, and put the emulator elsewhere if practice begins, goes on or ends.

        Parameters
        ----------
        emulator : ALEInterface
            After the step and, if that ended the game, put to where the next one begins.
        held : Action
            The action that a sticky one would repeat.
        reward : int
            Points won minus lost in the step; 0 if it only ended a game, which was cut off.
        restart : Moment or None
            If it ended the game, or what would have been one, where the next one begins.
        attempts : int
            How often a lost point is tried again; 0: no practice.
        after_wins : bool
            Whether it is tried again after an attempt that was won as well.
        draw : float
            In [0, 1): chooses where an attempt begins.

        Returns
        -------
        Moment or None
            Where the emulator is now, if that is not where the step has led.
        """
        if reward < 0 and (_usable(self._moments, self._age) or not after_wins):
            self._before, self._lost_at = self._moments, self._age
        usable = _usable(self._before, self._lost_at) if reward < 0 or after_wins else []
        if self.aside is None and reward < 0 and attempts and usable:
            self.aside, self._left = restart or remember(0, emulator, held), attempts + 1
        if self.aside is None:
            self._begin_point()
            return None
        self._left -= 1
        if self._left > 0 and usable:
            moment = usable[int(draw * len(usable))]
            self._moments = [other for other in self._before if other.age <= moment.age]
            self._age = moment.age
            if not after_wins:  # then the next loss is the only one to try again
                self._before = []
        else:
            moment, self.aside = self.aside, None
            self._begin_point()
        emulator.restoreState(moment.state)
        return moment

    def _begin_point(self) -> None:
        self._moments, self._age, self._left = [], 0, 0
        self._before, self._lost_at = [], 0

    def dump(self) -> bytes:
        """Everything, for a `load`."""
        moments = [*self._moments, *self._before, *([self.aside] if self.aside else [])]
        counts = len(self._moments), len(self._before), self.aside is not None
        parts = [_HEAD.pack(self._age, self._left, self._lost_at, *counts)]
        for moment in moments:
            state = moment.state.serialize()
            packed = zlib.compress(state + moment.screen.tobytes(), 1)
            parts += [_ENTRY.pack(moment.age, moment.held.value, len(state), len(packed)), packed]
        return b"".join(parts)

    @classmethod
    def load(cls, data: bytes) -> "Practice":
        """Return what a `dump` tells."""
        practice = cls()
        practice._age, practice._left, practice._lost_at, count, before, aside = _HEAD.unpack_from(data)
        at, moments = _HEAD.size, []
        for _ in range(count + before + aside):
            age, held, size, packed = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            raw = zlib.decompress(data[at : at + packed])
            at += packed
            screen = np.frombuffer(raw, np.uint8, offset=size).reshape(210, 160)
            moments.append(Moment(age, ALEState(raw[:size]), Action(held), screen))
        practice._moments, practice._before = moments[:count], moments[count : count + before]
        practice.aside = moments[-1] if aside else None
        return practice


def _usable(moments: list[Moment], lost_at: int) -> list[Moment]:
    """Return the moments from which a point can be tried again that was lost after so many steps."""
    return [moment for moment in moments if NEAREST <= lost_at - moment.age <= FARTHEST]


def remember(age: int, emulator: ALEInterface, held: Action) -> Moment:
    """Return where a game is, `age` steps into its point, with the action that a sticky one would repeat."""
    # ALE's own noise is never drawn from, see `PongGames`, and to copy its generator takes twice as long as the rest.
    return Moment(age, emulator.cloneState(include_rng=False), held, emulator.getScreen())
