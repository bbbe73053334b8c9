"""The arrays that envs are stepped in, and memory for them that the main process and its env subprocesses share."""

import math
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import reduction
from typing import Any

import numpy as np

from fastpong.arrays import Arrays
from fastpong.courts import WORDS
from fastpong.envs.engine import SAVED_IMAGES, STATE_BYTES, check_engine
from fastpong.errors import UsageError
from fastpong.parallel.sharding import Field
from fastpong.pong import COURT, SCREEN
from fastpong.system import unnamed_file

SCREENS = ("screens",)
"""What is drawn if nobody says what is wanted."""

_ALIGN = 64  # bytes of a line of the caches


def fields(engine: str, images: Sequence[str] = SCREENS) -> dict[str, Field]:
    """Return the arrays that an engine steps envs in by name, with some of `fastpong.envs.engine.IMAGES`.

    ``rows`` are the states, ``screens`` palette indices, ``courts`` bits, ``rewards`` points won minus lost in the last
    step; ``ended`` is 1 where it ended a game, and the image is the first one of the next game, also after a reset.
    Raises `UsageError` for images that no engine draws.
    """
    if "screens" not in images and tuple(images) != ("courts",):
        raise UsageError(f"screens or courts are drawn, and other images beside screens alone, not {', '.join(images)}")
    screens, courts = Field(np.uint8, ("envs", *SCREEN)), Field(np.uint64, ("envs", COURT[0], WORDS), 0, 2**64 - 1)
    return {
        "rows": Field(np.uint8, ("envs", STATE_BYTES[check_engine(engine)])),
        **{name: courts if name == "courts" else screens for name in images},
        "rewards": Field(np.int8, ("envs",), -128),
        "ended": Field(np.int8, ("envs",), 0, 1),
    }


def saved_fields(engine: str, images: Sequence[str]) -> dict[str, Field]:
    """Return the arrays of a snapshot: these, and how many steps each env has taken."""
    saved = [name for name in images if name in SAVED_IMAGES]
    return {"steps": Field(np.int64, ("envs",)), **fields(engine, saved)}


def zeros(envs: int, engine: str, images: Sequence[str] = SCREENS) -> Arrays:
    """Return such arrays of so many envs, in memory of this process alone."""
    table = fields(engine, images)
    return {name: np.zeros(_shape(field, envs), field.dtype) for name, field in table.items()}


def _shape(field: Field, envs: int) -> tuple[int, ...]:
    return tuple(envs if size == "envs" else int(size) for size in field.shape)


class SharedArrays:
    """Arrays of so many envs, zero at first, that several processes see. A subprocess can be given them as it starts.

    The memory has no name: nothing is left of it when its last process has ended, however it ended.
    """

    _file = -1

    def __init__(self, envs: int, table: Mapping[str, Field], file: int | None = None):
        shapes = [_shape(field, envs) for field in table.values()]
        sizes = [math.prod(s) * np.dtype(field.dtype).itemsize for s, field in zip(shapes, table.values(), strict=True)]
        places = np.cumsum([0, *(-(-size // _ALIGN) * _ALIGN for size in sizes)]).tolist()
        if file is None:
            file = unnamed_file("fastpong")
            os.ftruncate(file, places[-1])
        self._args, self._file = (envs, table), file
        memory = mmap.mmap(file, places[-1])
        self.arrays: Arrays = {
            name: np.frombuffer(memory, field.dtype, math.prod(shape), place).reshape(shape)
            for (name, field), shape, place in zip(table.items(), shapes, places, strict=False)
        }

    def close(self) -> None:
        """Give it to no more subprocesses; arrays stay as long as somebody has them."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _open, (*self._args, reduction.DupFd(self._file))


def _open(envs: int, table: Mapping[str, Field], file: Any) -> SharedArrays:
    shared = SharedArrays(envs, table, file.detach())
    shared.close()
    return shared
