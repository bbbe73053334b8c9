"""States of a run's games, cut into the shares of ranks and joined again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

Layout = Mapping[str, int | str | None]
"""For each array of a state: which axis counts games; or, if it strings together pieces of different length, all of
game 0 first, the name of the array that holds their lengths; or None, if it does not belong to single games."""


def cut(arrays: Arrays, layout: Layout, games: range) -> Arrays:
    """Return the part of a state that belongs to some consecutive games."""
    part = {}
    for name, kind in layout.items():
        array = arrays[name]
        if isinstance(kind, int):
            array = np.take(array, games, axis=kind)
        elif isinstance(kind, str):
            ends = np.concatenate([[0], np.cumsum(_per_game(arrays[kind], layout[kind]))])
            array = array[ends[games.start] : ends[games.stop]]
        part[name] = array
    return part


def join(parts: Sequence[Arrays], layout: Layout) -> Arrays:
    """Return the state of all games from its parts, in the order of games."""
    return {
        name: parts[0][name]
        if kind is None
        else np.concatenate([part[name] for part in parts], axis=kind if isinstance(kind, int) else 0)
        for name, kind in layout.items()
    }


def string_together(parts: Sequence[bytes], name: str, sizes: str) -> Arrays:
    """Return the bytes of all games in one array `name`, and their lengths in an array `sizes`."""
    return {name: np.frombuffer(b"".join(parts), np.uint8), sizes: np.array([len(part) for part in parts], np.int64)}


def pieces(array: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64]) -> list[bytes]:
    """Return what was strung together."""
    ends = np.cumsum(sizes).tolist()
    return [array[end - size : end].tobytes() for end, size in zip(ends, sizes.tolist(), strict=True)]


def _per_game(lengths: npt.NDArray[Any], axis: int | str | None) -> npt.NDArray[np.int64]:
    assert isinstance(axis, int)
    totals: npt.NDArray[np.int64] = np.moveaxis(lengths, axis, 0).reshape(lengths.shape[axis], -1).sum(axis=1)
    return totals
