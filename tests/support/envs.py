"""Playing in envs, however these are run."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.envs.base import Envs
from fastpong.envs.engine import SAVED_IMAGES

ENGINES = ["console", "ale"]
"""What the tests of envs run on, each on every one of them."""


class Seen(NamedTuple):
    """What a step of all envs brought, in the order of envs."""

    images: list[int]  # checksums
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
        seen.append(Seen(checksums(envs), envs.rewards.tolist(), envs.ended.tolist()))
    return seen


def checksums(envs: Envs) -> list[int]:
    """Return one of each env's images: a screen, a court, or both."""
    images = [envs.arrays[name] for name in SAVED_IMAGES if name in envs.arrays]
    return [hash(b"".join(image[env].tobytes() for image in images)) for env in range(envs.env_count)]


def play_at_random(envs: Envs, steps: int, first: int = 0) -> list[Seen]:
    """Take steps first … first + steps − 1 with actions that depend on step and env alone."""
    drawn = [np.random.default_rng(number).integers(0, 2, envs.env_count) for number in range(first, first + steps)]
    return play(envs, np.array(drawn))
