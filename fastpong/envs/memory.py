"""Memory that the main process and its env subprocesses share."""

import math
import mmap
import os
from collections.abc import Callable, Mapping
from multiprocessing import reduction
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.arrays import Arrays
from fastpong.system import unnamed_file

Layout = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
"""Shape and dtype of each array, by name."""

_ALIGN = 64  # bytes of a line of the caches


def zeros(layout: Layout) -> Arrays:
    """Return such arrays in memory of this process alone."""
    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}


class SharedArrays:
    """Arrays, zero at first, that several processes see. A subprocess can be given them as it starts.

    The memory has no name: nothing is left of it when its last process has ended, however it ended.
    """

    _file = -1

    def __init__(self, layout: Layout, file: int | None = None):
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in layout.values()]
        places = np.cumsum([0, *(-(-size // _ALIGN) * _ALIGN for size in sizes)]).tolist()
        if file is None:
            file = unnamed_file("fastpong")
            os.ftruncate(file, places[-1])
        self._layout, self._file = layout, file
        memory = mmap.mmap(file, places[-1])
        self.arrays: Arrays = {
            name: np.frombuffer(memory, dtype, math.prod(shape), place).reshape(shape)
            for (name, (shape, dtype)), place in zip(layout.items(), places, strict=False)
        }

    def close(self) -> None:
        """Give it to no more subprocesses; arrays stay as long as somebody has them."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _open, (self._layout, reduction.DupFd(self._file))


def _open(layout: Layout, file: Any) -> SharedArrays:
    shared = SharedArrays(layout, file.detach())
    shared.close()
    return shared
