"""What the arrays of a checkpoint have to be. Kernels check no bounds, so a resumed run checks all arrays first."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import I64, Arrays, Bool
from fastpong.config import Config
from fastpong.envs.engine import array_layout
from fastpong.kernels.preprocess import PIXELS
from fastpong.kernels.strips import STRIP_ROWS
from fastpong.pong import COURT
from fastpong.rollout.buffer import STRIPS, Encoding

_ANY = 1 << 60
_GROWING = ("learner.schedule_outcomes", "learner.window_rewards")  # as many as there were
_MAYBE_NAN = ("stats.running", "learner.window_numbers")  # before the first game
_LISTS = {"rollout.images": "rollout.lengths", "rollout.last_pixels": "rollout.last_counts"}
"""Arrays that hold pieces one after the other, and those of the pieces' lengths."""


class _Field(NamedTuple):
    """An array. A name in `shape` stands for any size, the same wherever it stands; bounds are inclusive."""

    dtype: Any
    shape: tuple[int | str, ...]
    low: float = 0
    high: float = _ANY


def _fields(config: Config, engine: str, encoding: Encoding) -> dict[str, _Field]:
    """Return the arrays of the envs, the rollout and the statistics, by name."""
    n, rows = config.num_envs, ("rows", config.num_envs)
    envs = {name: _Field(dtype, shape, -128) for name, (shape, dtype) in array_layout(n, engine).items()}
    return {
        "step": _Field(np.int64, ()),
        "envs.steps": _Field(np.int64, (n,)),
        **{f"envs.{name}": field for name, field in envs.items()},
        "envs.ended": _Field(np.int8, (n,), 0, 1),
        "rollout.lengths": _Field(np.int64, rows, 0, 2 * PIXELS),
        "rollout.steps_since_reset": _Field(np.int64, rows),
        "rollout.forced": _Field(np.int16, rows, -config.exploring_start_steps, config.exploring_start_steps),
        "rollout.actions": _Field(np.uint8, rows, 0, config.num_actions - 1),
        "rollout.log_probs": _Field(np.float32, rows, -_ANY),
        "rollout.values": _Field(np.float32, rows, -_ANY),
        "rollout.rewards": _Field(np.int8, rows, -128),
        "rollout.ended": _Field(np.int8, rows, 0, 1),
        "rollout.images": _Field(encoding.dtype, ("images",), -_ANY),
        "rollout.first_unused": _Field(np.int64, (n,)),
        "rollout.last_pixels": _Field(np.int16, ("pixels",), 0, PIXELS - 1),
        "rollout.last_counts": _Field(np.int64, (n,), 0, encoding.pixels),
        "stats.running": _Field(np.float64, (), -_ANY),
        "stats.counts": _Field(np.int64, (6,), -_ANY),
        "stats.recent": _Field(np.int64, ("games", 2), -_ANY),
        "stats.score": _Field(np.int64, (n,), -_ANY),
        "stats.length": _Field(np.int64, (n,)),
    }


def check_state(
    arrays: Mapping[str, Any], config: Config, engine: str, encoding: Encoding, history: int, fresh: Arrays
) -> None:
    """Raise `ValueError` unless these are arrays that a run with these settings, on this engine, could have saved.

    Those of policy and learner are as in `fresh`. `history` is how many rows the network's inputs reach back.
    """
    fields = _fields(config, engine, encoding)
    for name, array in fresh.items():
        shape = (name, *array.shape[1:]) if name in _GROWING else array.shape
        counts = array.dtype.kind == "i" and name != "learner.schedule_late_since"  # −1 before the late phase
        fields[name] = _Field(array.dtype, shape, 0 if counts else -_ANY)
    if unknown := sorted({*arrays} ^ {*fields}):
        raise ValueError(f"{unknown[0]} is missing, or unknown")
    sizes: dict[str, int] = {}
    for name, field in fields.items():
        array = arrays[name]
        if array.dtype != field.dtype or array.ndim != len(field.shape):
            raise ValueError(f"{name} is {array.dtype}, {array.ndim} dimensions")
        for size, wanted in zip(array.shape, field.shape, strict=True):
            if size != (sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted):
                raise ValueError(f"{name} has shape {array.shape}")
        good = (array >= field.low) & (array <= field.high) | (np.isnan(array) if name in _MAYBE_NAN else False)
        if not good.all():
            raise ValueError(f"{name} has values that are impossible")
    for name, parts in _LISTS.items():
        if len(arrays[name]) != arrays[parts].sum():
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
