"""What envs show, and what they save: arrays by name."""

from typing import Any

import gymnasium
import numpy as np

from fastpong.envs.memory import Layout
from fastpong.envs.restarts import MAX_MOMENTS
from fastpong.pong import ATTEMPT, ENDED, GOES_BACK, SCREEN

MAX_STATE = 8192
"""Bytes that there are for the state of an emulator; that of ALE 0.12 has 7,717."""

STATES = 1 + MAX_MOMENTS
"""How many there are of an env at most."""


def observation_space(rows: int) -> Any:
    """Observation of some envs: their screens, and the outcome of their last step.

    ``screens`` uint8 (rows, 210, 160) palette indices; ``rewards`` int8 (rows,) points won minus lost; ``ended`` int8
    (rows,) bits of `fastpong.pong`, 1 where the step ended a game, and the screen is the first one of the next game,
    also 1 after a reset.
    """
    box = gymnasium.spaces.Box
    return gymnasium.spaces.Dict(
        {
            "screens": box(0, 255, (rows, *SCREEN), np.uint8),
            "rewards": box(-21, 21, (rows,), np.int8),
            "ended": box(0, ENDED | GOES_BACK | ATTEMPT, (rows,), np.int8),
        }
    )


def state_layout(rows: int) -> Layout:
    """Arrays for the states of so many envs, rows in their order.

    ``steps`` since the run began; in ``emulators`` the bytes of the emulator's present state and of those to which it
    may go back, of which the first ``emulator_sizes`` count; the ``last_actions`` before each of them, which a sticky
    action repeats; and the numbers of `Restarts.save`.
    """
    return {
        "steps": ((rows,), np.int64),
        "last_actions": ((rows, STATES), np.uint8),
        "restarts": ((rows, 3), np.uint8),
        "emulators": ((rows, STATES * MAX_STATE), np.uint8),
        "emulator_sizes": ((rows,), np.int64),
    }


def extra_layout(rows: int) -> Layout:
    """Screens that somebody may want besides: arrays for so many envs, of which `Emulators` fill those that they get.

    ``final_screens`` are the last screens of games that ended, ``earlier_screens`` those of one frame before each
    screen (zeros where a game begins).
    """
    return {name: ((rows, *SCREEN), np.uint8) for name in ("final_screens", "earlier_screens")}
