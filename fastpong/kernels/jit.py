"""The two ways of compiling a kernel, chosen in one place.

`kernel` keeps IEEE order: what it sums, it sums in the order that is written. `reassociated` lets LLVM reorder
float sums and fuse multiply-adds, which a vectorised dot product needs; nothing else of "fast math" is allowed,
so infinities and NaN stay what they are.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile with strict IEEE arithmetic."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", fastmath=False)(function))


def reassociated(function: F) -> F:
    """Compile with reordered float sums and fused multiply-adds."""
    fast = {"reassoc", "contract", "nsz"}
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", fastmath=fast)(function))
