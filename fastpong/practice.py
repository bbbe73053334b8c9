"""Practice: a point that was lost is played again from some moments before, apart from the game.

Where an agent wins most points there is little left to learn from them, and the few balls that it misses come up
seldom. So when a point is lost the emulator is put back to a moment shortly before, and the agent tries again, with
fresh noise: until it wins, or has used up its attempts; or, for an agent that hardly loses any more, until it has used
up its attempts whether it wins or not. Then the game goes on as if nothing had been: practice changes neither its score
nor its course, it only costs steps. These are restarts from memory, as in Tavakoli et al.,
"Exploring restart distributions", 2018, and in Salimans and Chen, "Learning Montezuma's Revenge from a single
demonstration", 2018.

An agent that is certain of what to do tries nothing else, however often it loses by it. Where a ball has to be met at
one moment, what it should try is to do the same a little sooner or later. So some attempts are *shifted*: for a few
steps they have to take the actions of the lost one, each a step sooner, or a step later, than they were taken there.
"""

import itertools
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from ale_py import Action, ALEInterface, ALEState

EVERY = 12
"""Steps between two moments of a point that are remembered: copying an emulator takes a tenth of a step."""

NEAREST, FARTHEST = 12, 60
"""How many steps before the one that lost the point an attempt may begin."""

SHIFT_LATEST, SHIFT_EARLIEST = 6, 23
"""How many steps before the one that lost the point the actions of a shifted attempt begin to be another's."""

SHIFTED = 8
"""How many actions of a shifted attempt are another's."""

_HEAD, _ENTRY = struct.Struct("<10i"), struct.Struct("<4i")


class Attempts(NamedTuple):
    """How lost points are tried again."""

    number: int = 0
    """How often; 0: no practice."""
    after_wins: bool = False
    """Whether also after an attempt that was won."""
    shifted: float = 0.0
    """Which share of the attempts is shifted."""


NO_PRACTICE = Attempts()


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
        self._choices: bytearray  # what was done in each of the `_age` steps
        self._before: list[Moment]  # of the point as it was last lost, after `_lost_at` steps
        self._before_choices: bytearray
        self._lost_at: int
        self._plan: bytearray  # what has to be done from step `_plan_at` of the point on
        self._plan_at: int
        self._begin_point()

    def planned(self) -> int | None:
        """Return what has to be done next, if that is not for the agent to choose."""
        at = self._age - self._plan_at
        return self._plan[at] if 0 <= at < len(self._plan) else None

    def follow(self, emulator: ALEInterface, held: Action, choice: int, attempts: Attempts) -> None:
        """Take note of a step amid a point, in which the agent chose `choice`; arguments as for `after`."""
        self._age += 1
        self._choices.append(choice)
        if attempts.number and self._age % EVERY == 0:
            self._moments.append(remember(self._age, emulator, held))
            del self._moments[: -(FARTHEST // EVERY) - 1]

    def after(
        self,
        emulator: ALEInterface,
        held: Action,
        reward: int,
        restart: Moment | None,
        attempts: Attempts,
        draw: Callable[[int], float],
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
        attempts : Attempts
            How a lost point is tried again.
        draw : function
            Returns a random number in [0, 1) for each of 0 … 3.

        Returns
        -------
        Moment or None
            Where the emulator is now, if that is not where the step has led.
        """
        if reward < 0 and (_usable(self._moments, self._age) or not attempts.after_wins):
            self._before, self._before_choices, self._lost_at = self._moments, self._choices, self._age
        usable = _usable(self._before, self._lost_at) if reward < 0 or attempts.after_wins else []
        if self.aside is None and reward < 0 and attempts.number and usable:
            self.aside, self._left = restart or remember(0, emulator, held), attempts.number + 1
        if self.aside is None:
            self._begin_point()
            return None
        self._left -= 1
        if self._left > 0 and usable:
            moment = usable[int(draw(0) * len(usable))]
            self._moments = [other for other in self._before if other.age <= moment.age]
            self._age, self._choices = moment.age, self._before_choices[: moment.age]
            self._plan = bytearray()
            if attempts.shifted and draw(1) < attempts.shifted:
                self._shift(moment.age, sooner=draw(2) < 0.5, draw=draw(3))
            if not attempts.after_wins:  # then the next loss is the only one to try again
                self._before = []
        else:
            moment, self.aside = self.aside, None
            self._begin_point()
        emulator.restoreState(moment.state)
        return moment

    def _shift(self, begin: int, sooner: bool, draw: float) -> None:
        """Plan what an attempt that begins after `begin` steps of the point has to do."""
        before_loss = SHIFT_LATEST + int(draw * (SHIFT_EARLIEST - SHIFT_LATEST + 1))
        self._plan_at = max(begin + 1, self._lost_at - before_loss)
        first = self._plan_at + (1 if sooner else -1)
        self._plan = self._before_choices[first : first + SHIFTED]

    def _begin_point(self) -> None:
        self._moments, self._age, self._left = [], 0, 0
        self._before, self._lost_at = [], 0
        self._choices, self._before_choices = bytearray(), bytearray()
        self._plan, self._plan_at = bytearray(), 0

    def dump(self) -> bytes:
        """Everything, for a `load`."""
        moments = [*self._moments, *self._before, *([self.aside] if self.aside else [])]
        counts = len(self._moments), len(self._before), self.aside is not None
        choices = self._choices, self._before_choices, self._plan
        plan = self._plan_at, *map(len, choices)
        parts: list[bytes | bytearray] = [_HEAD.pack(self._age, self._left, self._lost_at, *counts, *plan), *choices]
        for moment in moments:
            state = moment.state.serialize()
            packed = zlib.compress(state + moment.screen.tobytes(), 1)
            parts += [_ENTRY.pack(moment.age, moment.held.value, len(state), len(packed)), packed]
        return b"".join(parts)

    @classmethod
    def load(cls, data: bytes) -> "Practice":
        """Return what a `dump` tells."""
        practice = cls()
        practice._age, practice._left, practice._lost_at, count, before, aside, *plan = _HEAD.unpack_from(data)
        ends = np.cumsum([_HEAD.size, *plan[1:]]).tolist()
        practice._plan_at, at, moments = plan[0], ends[-1], []
        practice._choices, practice._before_choices, practice._plan = (
            bytearray(data[start:end]) for start, end in itertools.pairwise(ends)
        )
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
