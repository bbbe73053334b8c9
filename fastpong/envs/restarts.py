"""Restarts: after a lost point an env goes back to shortly before, and plays on from there, until it wins a point.

An agent that wins most points seldom meets the balls that it misses. So it gets some more attempts at them, with other
noise, each from a little earlier. Then its game goes on as if nothing had been: attempts change neither its score nor
its course, they only cost steps. See Tavakoli et al., "Exploring restart distributions", 2018; ever further back, as in
Salimans and Chen, "Learning Montezuma's Revenge from a single demonstration", 2018.
"""

from typing import NamedTuple

from ale_py import Action, ALEInterface, ALEState

from fastpong.config import MAX_ATTEMPTS
from fastpong.pong import ATTEMPT, ENDED, GOES_BACK

SPACING = 12
"""Steps between two moments of a point that are remembered: to copy an emulator takes a tenth of a step."""

MAX_MOMENTS = MAX_ATTEMPTS + 2
"""Of an env: those of a point, the last of which is too near to its end, and where its game goes on."""


class Moment(NamedTuple):
    """Where an env can go back to."""

    state: ALEState
    last_action: Action  # what a sticky action repeats


class Restarts:
    """What one env remembers of the present point and, during attempts, of its game.

    Attributes
    ----------
    moments : list of Moment
        Latest moments of the present point, or during attempts of the lost one, `SPACING` steps apart.
    age : int
        Steps since the last of them, or since the point began.
    attempt : int
        The number of the present attempt, from 1 on; 0: the game goes on.
    game : Moment or None
        Where the game goes on after the attempts.
    """

    moments: list[Moment]
    age: int
    attempt: int
    game: Moment | None

    def __init__(self) -> None:
        self.begin_point()

    def after_step(
        self, emulator: ALEInterface, last_action: Action, reward: int, over: bool, attempts: int
    ) -> tuple[int, Action]:
        """Take note of a step, and put the emulator elsewhere if attempts begin, go on or end.

        The first attempt begins 12 to 23 steps before the point was lost, and each further one 12 steps earlier.

        Parameters
        ----------
        emulator : ALEInterface
            After the step; if that ended the game, where the next one begins.
        last_action : Action
            What a sticky action would repeat.
        reward : int
            Points won minus lost in the step.
        over : bool
            Whether the step ended the game.
        attempts : int
            How many a point gets that is lost now, at most.

        Returns
        -------
        tuple of int and Action
            What ``ended`` says of the step, see `fastpong.pong`, and what a sticky action repeats now.
        """
        ended = ATTEMPT if self.game else ENDED if over else 0
        if not reward and not over:
            if not self.game:
                self._remember(emulator, last_action, attempts)
            return ended, last_action
        if reward < 0 and self.attempt + 1 < len(self.moments):
            self.game = self.game or moment(emulator, last_action)
            self.attempt += 1
            there, ended = self.moments[-1 - self.attempt], ended | GOES_BACK
        elif self.game:
            there, ended = self.game, ended | ENDED
            self.begin_point()
        else:
            self.begin_point()
            return ended, last_action
        emulator.restoreState(there.state)
        return ended, there.last_action

    def begin_point(self) -> None:
        """Forget everything."""
        self.moments, self.age, self.attempt, self.game = [], 0, 0, None

    def save(self) -> tuple[list[Moment], list[int]]:
        """Return everything, for a `load`: moments, and numbers."""
        moments = [*self.moments, *([self.game] if self.game else [])]
        return moments, [self.age, self.attempt, len(self.moments)]

    def load(self, moments: list[Moment], numbers: list[int]) -> None:
        """Go on from what `save` returned; raises `ValueError` for what it cannot have returned."""
        self.age, self.attempt, count = numbers
        if self.age >= SPACING or self.attempt >= max(1, count) or len(moments) != count + (self.attempt > 0):
            raise ValueError("no state of restarts")
        self.moments, self.game = moments[:count], moments[count] if self.attempt else None

    def _remember(self, emulator: ALEInterface, last_action: Action, attempts: int) -> None:
        """Keep every twelfth moment of a point, and of these what so many attempts need."""
        self.age = (self.age + 1) % SPACING
        if self.age == 0:
            self.moments = [*self.moments, moment(emulator, last_action)][-1 - attempts :]


def moment(emulator: ALEInterface, last_action: Action) -> Moment:
    """Return where an env is."""
    # ALE's own noise is never drawn from, and to copy its generator takes twice as long as the rest.
    return Moment(emulator.cloneState(include_rng=False), last_action)
