"""The arrays of a run's state: what each is, and how they are cut by envs for each rank, and joined again."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.arrays import I64, Arrays

Layout = Mapping[str, int | str | None]
"""For each array of a state: which axis counts envs; or, if it holds pieces of different length one after the other,
those of env 0 first, the name of the array that holds their lengths; or None, if it does not belong to single envs."""

ANY = 1 << 60


class Field(NamedTuple):
    """A saved array. Its owner has a table of them, from which `layout_of` and `fastpong.runs.schema` are made.

    A name in `shape` stands for any size, the same wherever it stands; ``envs`` is the axis of envs. Bounds are
    inclusive; with `maybe_nan` it may be NaN as well. `lengths` names the array with the lengths of its pieces, if it
    holds pieces one after the other.
    """

    dtype: Any
    shape: tuple[int | str, ...]
    low: float = 0
    high: float = ANY
    maybe_nan: bool = False
    lengths: str | None = None


def layout_of(fields: Mapping[str, Field]) -> Layout:
    """Return how the arrays of a table are cut."""
    return {
        name: field.shape.index("envs") if "envs" in field.shape else field.lengths for name, field in fields.items()
    }


def cut(arrays: Arrays, layout: Layout, envs: range) -> Arrays:
    """Return the part of a state that belongs to some consecutive envs."""
    part = {}
    for name, kind in layout.items():
        array = arrays[name]
        if isinstance(kind, int):
            array = np.take(array, envs, axis=kind)
        elif isinstance(kind, str):
            ends = np.concatenate([[0], np.cumsum(_per_env(arrays[kind], layout[kind]))])
            array = array[ends[envs.start] : ends[envs.stop]]
        part[name] = array
    return part


def join(parts: Sequence[Arrays], layout: Layout) -> Arrays:
    """Return the state of all envs from its parts, in the order of envs."""
    return {
        name: parts[0][name]
        if kind is None
        else np.concatenate([part[name] for part in parts], axis=kind if isinstance(kind, int) else 0)
        for name, kind in layout.items()
    }


def _per_env(lengths: npt.NDArray[Any], axis: int | str | None) -> I64:
    assert isinstance(axis, int)
    totals: I64 = np.moveaxis(lengths, axis, 0).reshape(lengths.shape[axis], -1).sum(axis=1)
    return totals
