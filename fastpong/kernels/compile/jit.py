"""How a kernel is compiled, and matrices that begin at cache lines.

`kernel` is strict IEEE arithmetic. `fused` lets LLVM fuse multiplications and additions, as every x86-64-v3 processor
does it; nothing else of "fast math" is allowed. Neither lets LLVM reorder sums: the order would depend on the kind of
processor, and a seed would be another run there. Where a sum has to be fast, its order is written down as vector code
(`gathers.dot`).

Compiled kernels are kept in `cache.cache_folder`, or where else Numba finds a place. Where none can be written (a
read-only install without a home) every start compiles again; `fastpong doctor` tells.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import njit, types

from fastpong.arrays import F32
from fastpong.kernels.compile.cache import SOURCES, cache_folder
from fastpong.kernels.compile.cache_files import KernelCache
from fastpong.kernels.compile.parts import call_as_part, unchanged

F = TypeVar("F", bound=Callable[..., Any])

_FOLDERS = {package: cache_folder(package) for package in SOURCES}
_NUMBA: Any = numba.config


def _compiled(function: F, fastmath: bool | set[str], widened: Any = unchanged) -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    compiled: Any = njit(**options)(function)
    if not hasattr(compiled, "enable_caching"):
        return cast(F, compiled)  # without the compiler
    call_as_part(compiled, widened, **options)
    before = _NUMBA.CACHE_DIR
    package = "console" if ".console." in function.__module__ else "kernels"  # also in the tests
    _NUMBA.CACHE_DIR = _FOLDERS[package]  # Numba asks for it here and now; what others compile is kept where it was
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
    finally:
        _NUMBA.CACHE_DIR = before
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile with strict IEEE arithmetic."""
    return _compiled(function, False)


def fused(function: F) -> F:
    """Compile with fused multiply-adds."""
    return _compiled(function, {"contract"})


def uncompiled(kernel: F) -> F:
    """Return a kernel as plain Python, for what is called too seldom to be compiled."""
    return cast(F, getattr(kernel, "py_func", kernel))


def once(function: F) -> F:
    """Compile with strict IEEE arithmetic, in one version: an integer among the arguments is an int64 in the function.

    Numba would lower a version for each type, and for each constant, which LLVM finds anyway where it inlines the
    function; the console has many small ones. A uint64 stays what it is: mixed with an int64 it becomes a float64.
    Without the compiler, an integer is an `int`.
    """
    compiled: Any = _compiled(function, False, widened=_widened)
    if compiled is function:
        return cast(F, functools.wraps(function)(lambda *given: function(*map(_as_int, given))))
    return cast(F, compiled)


def _widened(kind: Any) -> Any:
    kind = types.unliteral(kind)
    is_integer = isinstance(kind, (types.Integer, types.Boolean))
    return types.int64 if is_integer and kind != types.uint64 else kind


def _as_int(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) and not isinstance(value, np.uint64) else value


def is_cached(function: Callable[..., Any]) -> bool:
    """Whether the cache has a compiled version of a kernel; also if there is no cache, or no compiler, to wait for."""
    stats = getattr(function, "stats", None)  # without the compiler it has none
    if not stats or not stats.cache_path:
        return True
    module = function.__module__.rpartition(".")[2]
    return any(Path(stats.cache_path).glob(f"{module}.{function.__name__}-*.nbi"))


LINE = 64
"""Bytes of a cache line, and of the longest vectors. A vector that lies across two lines is read in two steps, and
NumPy and Numba place arrays at multiples of 16 and 32 bytes."""

_SLACK = LINE // 4 - 1  # floats that it may take to come to the next line


@kernel
def new_matrix(rows: Any, columns: Any) -> F32:
    """Return a matrix float32 (rows, columns) that begins at a cache line; its numbers are not set."""
    buffer = np.empty(rows * columns + _SLACK, np.float32)
    first = -buffer.ctypes.data % LINE // 4
    return buffer[first : first + rows * columns].reshape(rows, columns)


def zeros(size: int) -> F32:
    """Return zeros float32 (size,) that begin at a cache line."""
    buffer = np.zeros(size + _SLACK, np.float32)
    first = -buffer.ctypes.data % LINE // 4
    return buffer[first : first + size]
