"""Playing in envs, however these are run."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.envs.base import Envs

ENGINES = ["console", "ale"]
"""What the tests of envs run on, each on every one of them."""


class Seen(NamedTuple):
    """What a step of all envs brought, in the order of envs."""

    screens: list[int]  # checksums
    rewards: list[int]
    ended: list[int]


def step(envs: Envs, actions: npt.NDArray[Any]) -> None:
    """Take a step of all envs, actions integer (envs,), and wait for it."""
    for group, members in enumerate(envs.groups):
        envs.recv(group)
        envs.send(group, actions[members].astype(np.uint8))
    for group in range(len(envs.groups)):
        envs.recv(group)


def play(envs: Envs, actions: npt.NDArray[Any]) -> list[Seen]:
    """Take as many steps as there are actions, integer (steps, envs)."""
    seen = []
    for row in actions:
        step(envs, row)
        screens = [hash(screen.tobytes()) for screen in envs.screens]
        seen.append(Seen(screens, envs.rewards.tolist(), envs.ended.tolist()))
    return seen


def play_at_random(envs: Envs, steps: int, first: int = 0) -> list[Seen]:
    """Take steps first … first + steps − 1 with actions that depend on step and env alone."""
    drawn = [np.random.default_rng(number).integers(0, 2, envs.env_count) for number in range(first, first + steps)]
    return play(envs, np.array(drawn))
