"""The ways of compiling a kernel, chosen in one place.

`kernel` keeps IEEE order: what it sums, it sums in the order that is written. `reassociated` lets LLVM reorder
float sums and fuse multiply-adds, which a vectorised dot product needs; nothing else of "fast math" is allowed,
so infinities and NaN stay what they are. `inlined` is `kernel` for what only large kernels call.

Compiled kernels are kept in `cache.cache_folder`, or where else Numba finds a place. Where none can be written (a
read-only install without a home) every start compiles again; `fastpong doctor` tells.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import njit

from fastpong.kernels.cache import cache_folder

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = cache_folder()
_NUMBA: Any = numba.config


def _compiled(function: F, fastmath: bool | set[str], inline: str = "never") -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, "inline": inline}
    before = _NUMBA.CACHE_DIR
    _NUMBA.CACHE_DIR = _FOLDER  # Numba asks for it here and now; what others compile is kept where it was
    try:
        return cast(F, njit(cache=True, **options)(function))
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        return cast(F, njit(**options)(function))
    finally:
        _NUMBA.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile with strict IEEE arithmetic."""
    return _compiled(function, False)


def reassociated(function: F) -> F:
    """Compile with reordered float sums and fused multiply-adds."""
    return _compiled(function, {"reassoc", "contract", "nsz"})


def inlined(function: F) -> F:
    """Compile with strict IEEE arithmetic, into what calls it: to link many kernels once more takes seconds."""
    return _compiled(function, False, "always")
