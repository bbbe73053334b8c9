"""Two threads that meet in compiled code: to meet in Python takes many times as long.

A wait is some microseconds, for which a thread that sleeps would not wake up in time; if it takes longer, the thread
gives way to whatever else wants its core.
"""

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding
from numba import types
from numba.extending import intrinsic

from fastpong.kernels.jit import kernel
from fastpong.kernels.vectors import PLAIN

I64 = npt.NDArray[np.int64]

GONE = np.iinfo(np.int64).max
"""What a thread that will not come says at the meeting place."""

ALONE = 2
"""Which thread one is that has nobody to meet."""

_PATIENCE = 2000  # looks, about 10 µs


def _atomic(load: bool) -> Any:
    """Make ``look(place, which)`` or ``tell(place, which, number)``, for int64 (2, 8): a row is a line of the cache."""

    def address(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.gep(view.data, [builder.mul(values[1], builder.extract_value(view.shape, 1))])

    def look(typing: Any, place: Any, which: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.load_atomic(address(context, builder, signature, values), "acquire", 8)

        return types.int64(place, types.int64), code

    def tell(typing: Any, place: Any, which: Any, number: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            builder.store_atomic(values[2], address(context, builder, signature, values), "release", 8)
            return context.get_dummy_value()

        return types.void(place, types.int64, types.int64), code

    def plain_look(place: I64, which: int) -> int:
        return int(place[which, 0])

    def plain_tell(place: I64, which: int, number: int) -> None:
        place[which, 0] = number

    if PLAIN:
        return plain_look if load else plain_tell
    return intrinsic(look if load else tell)


def _make_give_way() -> Any:
    """Return a function that lets others have the core, or does nothing where the system has none for that."""
    if PLAIN:
        return lambda: time.sleep(0)
    if binding.address_of_symbol("sched_yield"):
        return types.ExternalFunction("sched_yield", types.int32())
    return kernel(lambda: 0)


_look, _tell, _give_way = _atomic(load=True), _atomic(load=False), _make_give_way()


@kernel
def meet(
    place: I64,  # (2, 8) the meeting place: 0, and then in column 0 how often each thread has come
    which: int,  # 0 or 1: this thread; ALONE: there is no other
    number: int,  # of this meeting, from 1 on
) -> bool:
    """Wait for the other thread; False if it will not come. What either wrote before, both can read after."""
    if which == ALONE:
        return True
    _tell(place, which, number)
    looks = 0
    while True:
        other = _look(place, 1 - which)
        if other == GONE:
            return False
        if other >= number:
            return True
        looks += 1
        if looks > _PATIENCE:
            _give_way()
