"""Playing in envs, however these are run."""

from typing import NamedTuple

import numpy as np

from fastpong.envs.base import Envs


class Seen(NamedTuple):
    """What a step of all envs brought, in the order of envs."""

    screens: list[int]  # checksums
    rewards: list[int]
    ended: list[int]


def play_at_random(envs: Envs, steps: int, first: int = 0) -> list[Seen]:
    """Take steps first … first + steps − 1 with actions that depend on step and env alone."""
    seen = []
    for step in range(first, first + steps):
        actions = np.random.default_rng(step).integers(0, 2, envs.env_count).astype(np.uint8)
        for group, members in enumerate(envs.groups):
            envs.recv(group)
            envs.send(group, actions[members])
        for group in range(len(envs.groups)):
            envs.recv(group)
        screens = [hash(screen.tobytes()) for screen in envs.screens[envs.rows]]
        seen.append(Seen(screens, envs.rewards[envs.rows].tolist(), envs.ended[envs.rows].tolist()))
    return seen
