"""The two ways of compiling a kernel, chosen in one place.

`kernel` keeps IEEE order: what it sums, it sums in the order that is written. `reassociated` lets LLVM reorder
float sums and fuse multiply-adds, which a vectorised dot product needs; nothing else of "fast math" is allowed,
so infinities and NaN stay what they are.

Compiled kernels are kept where Numba finds a place: `NUMBA_CACHE_DIR`, beside the source, or the user's home. Where
none can be written (a read-only install without a home) every start compiles again; `fastpong doctor` tells.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F, fastmath: bool | set[str]) -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return cast(F, njit(cache=True, **options)(function))
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        return cast(F, njit(**options)(function))


def kernel(function: F) -> F:
    """Compile with strict IEEE arithmetic."""
    return _compiled(function, False)


def reassociated(function: F) -> F:
    """Compile with reordered float sums and fused multiply-adds."""
    return _compiled(function, {"reassoc", "contract", "nsz"})
