"""Options and seeds of the envs: both envs take the same ones, and refuse the same ones before anything starts."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpong.config import check, unknown
from fastpong.errors import UsageError
from fastpong.gym.observations import KINDS
from fastpong.pong import ACTION_SETS

RULES = ("num_envs", "frame_skip", "repeat_action_probability")
"""Options that are settings of a run as well, with its ranges."""


def check_options(env: type, others: Mapping[str, object], obs: str, actions: int, render_mode: str | None) -> None:
    """Raise `UsageError` for an impossible option of an env, or if there are `others`, which it does not know."""
    for name in others:
        known = inspect.signature(env).parameters.values()
        raise unknown("option", name, [one.name for one in known if one.kind != one.VAR_KEYWORD])
    if obs not in tuple(KINDS):
        raise UsageError(f"obs is one of {', '.join(KINDS)}, not {obs!r}")
    if not isinstance(actions, int | np.integer) or actions not in ACTION_SETS:
        raise UsageError(f"actions is one of {', '.join(map(str, ACTION_SETS))}, not {actions!r}")
    if render_mode not in (None, "rgb_array"):
        raise UsageError(f"render_mode is 'rgb_array' or None, not {render_mode!r}: fastpong play has a window")


def checked_rules(*values: object) -> tuple[Any, ...]:
    """Return values for `RULES` as what they are to be; raises `UsageError` with the range."""
    return tuple(check(name, value) for name, value in zip(RULES, values, strict=True))


def checked_seed(seed: Any) -> int:
    """Return a seed that gymnasium takes, any integer from 0; raises `UsageError`."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise UsageError(f"seed is one integer for all games, 0 or more, not {seed!r}")
    return int(seed)


def games_seed(seed: int) -> int:
    """Return the seed of the games' noise, 0 … 2⁶³ − 1: the seed itself, or what NumPy makes of a larger one."""
    return seed if seed < 2**63 else int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]) // 2
