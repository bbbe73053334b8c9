"""What the arrays of a checkpoint have to be. Kernels check no bounds, so a resumed run checks all arrays first."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpong.arrays import I64, Arrays, Bool
from fastpong.config import Config
from fastpong.envs.base import images_of
from fastpong.envs.memory import saved_fields
from fastpong.kernels.preprocess import PIXELS, STRIP_ROWS
from fastpong.parallel.sharding import ANY, Field
from fastpong.pong import COURT
from fastpong.rollout.buffer import STRIPS, Encoding, fields
from fastpong.rollout.episode_stats import FIELDS

_GROWING = ("learner.schedule_outcomes", "learner.window_rewards")  # as many as there were
_MAYBE_NAN = ("learner.window_numbers",)  # before the first game


def _fields(config: Config, engine: str, encoding: Encoding) -> dict[str, Field]:
    """Return the arrays of the envs, the rollout and the statistics, by name."""
    parts = {"envs": saved_fields(engine, images_of(config)), "rollout": fields(config, encoding), "stats": FIELDS}
    named = {f"{part}.{name}": field for part, table in parts.items() for name, field in table.items()}
    return {"step": Field(np.int64, ()), **named}


def check_state(
    arrays: Mapping[str, Any], config: Config, engine: str, encoding: Encoding, history: int, fresh: Arrays
) -> None:
    """Raise `ValueError` unless these are arrays that a run with these settings, on this engine, could have saved.

    Those of policy and learner are as in `fresh`. `history` is how many rows the network's inputs reach back.
    """
    known = _fields(config, engine, encoding)
    for name, array in fresh.items():
        shape = (name, *array.shape[1:]) if name in _GROWING else array.shape
        counts = array.dtype.kind == "i" and name != "learner.schedule_late_since"  # −1 before the late phase
        known[name] = Field(array.dtype, shape, 0 if counts else -ANY, maybe_nan=name in _MAYBE_NAN)
    if unknown := sorted({*arrays} ^ {*known}):
        raise ValueError(f"{unknown[0]} is missing, or unknown")
    sizes = {"envs": config.num_envs}
    for name, field in known.items():
        array = arrays[name]
        if array.dtype != field.dtype or array.ndim != len(field.shape):
            raise ValueError(f"{name} is {array.dtype}, {array.ndim} dimensions")
        for size, wanted in zip(array.shape, field.shape, strict=True):
            if size != (sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted):
                raise ValueError(f"{name} has shape {array.shape}")
        good = (array >= field.low) & (array <= field.high) | (np.isnan(array) if field.maybe_nan else False)
        if not good.all():
            raise ValueError(f"{name} has values that are impossible")
    for name, field in known.items():
        if field.lengths and len(arrays[name]) != arrays[f"{name.partition('.')[0]}.{field.lengths}"].sum():
            raise ValueError(f"{name} is not as long as its parts")
    ages, unused = arrays["rollout.steps_since_reset"], arrays["rollout.first_unused"]
    rows = np.arange(len(ages))[:, None]
    if (unused > len(ages)).any() or ((rows >= unused) & (np.minimum(ages, history) > rows)).any():
        raise ValueError("steps reach back before the first row")
    _check_images(arrays["rollout.images"].astype(np.int64), arrays["rollout.lengths"], encoding)


def _check_images(images: I64, lengths: I64, encoding: Encoding) -> None:
    """Check that numbers (all,) are in the court, and ascend within each image; those of env 0 come first.

    `lengths` (rows, envs) are those of the images.
    """
    if encoding is STRIPS:
        first, last, good = _places(images)
    else:
        first = last = abs(images)
        good = (first > 0) & (first <= PIXELS)
    begins = np.zeros(len(images) + 1, bool)
    begins[np.cumsum(lengths.T.reshape(-1))] = True
    if not good.all() or not ((first[1:] > last[:-1]) | begins[1:-1]).all():
        raise ValueError("rollout.images are not in order")


def _places(strips: I64) -> tuple[I64, I64, Bool]:
    """Return where strips begin and end in the order in which they are listed, and whether they are in the court."""
    position, more = strips // STRIP_ROWS, strips % STRIP_ROWS
    row, column = position // COURT[1], position % COURT[1]
    first = ((row // STRIP_ROWS) * COURT[1] + column) * STRIP_ROWS + row % STRIP_ROWS
    return first, first + more, (strips >= 0) & (row < COURT[0]) & (row % STRIP_ROWS + more < STRIP_ROWS)
