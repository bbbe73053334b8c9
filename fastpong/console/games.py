"""Consoles that play Pong for envs: the arrays that they share with their caller, and which core steps them."""

import functools
from typing import Any

import numpy as np

from fastpong.arrays import I8, U8, U64
from fastpong.console.controls import NOOP, boot
from fastpong.console.court import ROM
from fastpong.console.drawing import as_screens
from fastpong.console.masks import PICTURE
from fastpong.console.state import NEVER, STATE, STATE_BYTES, records
from fastpong.console.step import Envs, Extras, Inputs, Rules, Saved, begin_game, step_in_fast_core, step_in_plain_core
from fastpong.courts import WORDS, courts_of, draw_court
from fastpong.kernels.compile.jit import uncompiled
from fastpong.pong import COURT, MAX_FRAMES, SCREEN


class Games:
    """Some games of Pong, each on a console of its own.

    Parameters
    ----------
    rows : uint8 (n, STATE_BYTES)
        The states of the consoles. Whoever writes into them, or into screens or courts, calls `restore`.
    rewards, ended : int8 (n,)
        Points won minus lost in the last step, and whether it ended a game.
    screens : uint8 (n, 210, 160), optional
        Palette indices.
    courts : uint64 (n, 160, 3), optional
        See `fastpong.courts`. Without `screens` they are drawn in their place, and sooner.
    final_screens, earlier_screens : uint8 (n, 210, 160), optional
        Last screens of games that ended, and those of one frame before each screen.
    frame_skip : int
        Frames of a step.
    max_frames : int
        Frames after which a game ends.
    """

    def __init__(
        self, rows: U8, rewards: I8, ended: I8, screens: U8 | None = None, courts: U64 | None = None,
        final_screens: U8 | None = None, earlier_screens: U8 | None = None, frame_skip: int = 4,
        max_frames: int = MAX_FRAMES,
    ):  # fmt: skip
        self._envs = _envs(rows, rewards, ended, screens, courts if screens is None else None)
        self._both = None if screens is None or courts is None else (screens, courts)
        earlier = _screens(earlier_screens)
        self._extras = Extras(_screens(final_screens), earlier, np.zeros(len(earlier), PICTURE))
        state, screen = first_state()
        self._rules = Rules(frame_skip, max_frames, records(state), as_screens(screen), courts_of(screen)[0])
        self._saved = Saved(np.zeros(1, STATE), np.zeros(1, STATE))
        # For others' arrays, a read-only one perhaps, Numba would compile the core once more.
        self._inputs = np.zeros((3, len(rows)), np.uint8)
        self.steps_of_plain_core = 0
        """How many steps the fast core could not take."""
        self.restore()

    def reset(self, envs: range) -> None:
        """Begin the games of some envs anew."""
        for env in envs:
            uncompiled(begin_game)(self._envs, self._extras, self._rules, env)
        self._draw_courts(envs)

    def ram(self, env: int) -> U8:
        """Return the RAM of a console, uint8 (128,)."""
        return self._envs.states[env].ram  # type: ignore[no-any-return]

    def restore(self) -> None:
        """Forget what is on screens and courts: somebody else has written there."""
        self._envs.pictures["uniform"] = 0
        self._extras.pictures["uniform"] = 0
        if len(self._envs.courts):
            self._envs.pictures["court"] = self._envs.courts

    def step(self, envs: range, actions: U8, repeats: U8, others: U8 | None = None) -> None:
        """Take a step of some consecutive envs; arrays are of these envs.

        `actions` and `others`, those of player A on the right and of player B, are indices into `pong.ACTIONS`. Without
        `others` the computer plays.
        """
        own = self._inputs[:, : len(envs)]
        own[0], own[1], own[2] = actions, NOOP if others is None else others, repeats
        inputs = Inputs(own[0], own[1], own[2], 0, 0)
        self.steps_of_plain_core += run(self._envs, self._extras, self._rules, inputs, self._saved, envs.start)
        self._draw_courts(envs)

    def _draw_courts(self, envs: range) -> None:
        """Bring courts, if they are wanted beside screens, to these."""
        if self._both:
            screens, courts = self._both
            for env in envs:
                draw_court(screens[env], courts[env])


def run(envs: Envs, extras: Extras, rules: Rules, inputs: Inputs, saved: Saved, first: int) -> int:
    """Step envs on the fast core, and on the plain one where that cannot; return how many steps those were."""
    begin, plain_steps = 0, 0
    while True:
        begin = step_in_fast_core(envs, extras, rules, inputs, saved, first, begin)
        if begin == len(inputs.actions):
            return plain_steps
        step_in_plain_core(envs, extras, rules, inputs, first, begin)
        begin, plain_steps = begin + 1, plain_steps + 1


def _envs(rows: U8, rewards: I8, ended: I8, screens: U8 | None, courts: U64 | None = None) -> Envs:
    """Return the arrays of a `Games`, of which nothing is drawn yet."""
    words, halves = rows.view(np.int32), rows.view(np.int16)
    courts = np.zeros((0, COURT[0], WORDS), np.uint64) if courts is None else courts
    pictures = np.zeros(len(rows), PICTURE)
    return Envs(records(rows), words, halves, _screens(screens), courts, pictures, rewards, ended)


def _screens(screens: U8 | None) -> Any:
    """Return screens as records, of which there may be none."""
    return as_screens(np.zeros((0, *SCREEN), np.uint8) if screens is None else screens)


@functools.cache
def first_state(mode: int = 0, difficulty: int = 0) -> tuple[U8, U8]:
    """Return how a game begins: a state, uint8 (1, STATE_BYTES), and its screen, uint8 (1, 210, 160)."""
    row, screens = np.zeros((1, STATE_BYTES), np.uint8), np.zeros((1, *SCREEN), np.uint8)
    envs = _envs(row, np.zeros(1, np.int8), np.zeros(1, np.int8), screens)
    extras = Extras(envs.screens[:0], envs.screens[:0], envs.pictures[:0])
    rules = Rules(1, NEVER, envs.states, envs.screens, courts_of(screens)[0])
    saved = Saved(np.zeros(1, STATE), np.zeros(1, STATE))
    noop = np.full(1, NOOP, np.uint8)

    def frame(s: Any, rom: U8, screen: U8) -> None:
        select, reset = (int(s.SWCHB) >> bit & 1 ^ 1 for bit in (1, 0))
        run(envs, extras, rules, Inputs(noop, noop, noop * 0, select, reset), saved, 0)

    boot(frame, envs.states[0], ROM, screens[0], mode, difficulty)
    return row, screens
