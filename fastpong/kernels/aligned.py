"""Arrays that begin where a cache line begins: a vector of 64 bytes that lies across two lines is read in two steps.

NumPy and Numba place arrays at multiples of 16 and 32 bytes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import kernel

F32 = npt.NDArray[np.float32]

LINE = 64
"""Bytes of a cache line, and of the longest vectors."""

_ROOM = LINE // 4 - 1  # floats that it may take to come to the next line


@kernel
def new_matrix(
    rows: Any,
    columns: Any,
) -> F32:
    """Return an aligned matrix (rows, columns) whose numbers are whatever was there before."""
    room = np.empty(rows * columns + _ROOM, np.float32)
    first = -room.ctypes.data % LINE // 4
    return room[first : first + rows * columns].reshape(rows, columns)


def zeros(size: int) -> F32:
    """Return aligned zeros (size,)."""
    room = np.zeros(size + _ROOM, np.float32)
    first = -room.ctypes.data % LINE // 4
    return room[first : first + size]
