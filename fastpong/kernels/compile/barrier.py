"""Spin barrier for threads inside compiled code; a barrier in Python costs many times more.

A wait is some microseconds, for which a thread that sleeps would not wake up in time; if it takes longer, the thread
yields its core.
"""

import time
from typing import Any

import numpy as np
from llvmlite import binding
from numba import types

from fastpong.arrays import I64
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.compile.simd import PLAIN, vector_code

PEER_FAILED = np.iinfo(np.int64).max
"""What a thread publishes that will not arrive any more."""

_SPINS = 2000  # about 10 µs


def _plain_poll(progress: I64, thread: int) -> int:
    """Return how often a thread has arrived."""
    return int(progress[thread, 0])


@vector_code(_plain_poll, types.int64)
def _poll(builder: Any, progress: Any, thread: Any) -> Any:
    return builder.load_atomic(progress.at(thread), "acquire", 8)


def _plain_publish(progress: I64, thread: int, number: int) -> None:
    """Tell how often a thread has arrived."""
    progress[thread, 0] = number


@vector_code(_plain_publish)
def _publish(builder: Any, progress: Any, thread: Any, number: Any) -> None:
    builder.store_atomic(number, progress.at(thread), "release", 8)


def _make_yield() -> Any:
    """Return a function that yields the core, or does nothing where the system has none for that."""
    if PLAIN:
        return lambda: time.sleep(0)
    if binding.address_of_symbol("sched_yield"):
        return types.ExternalFunction("sched_yield", types.int32())
    return kernel(lambda: 0)


_yield_core = _make_yield()


@kernel
def arrive(
    progress: I64,  # (threads, 8) 0 at first; column 0 holds how often each thread has arrived
    thread: int,  # 0 …: this thread
    number: int,  # of this arrival, from 1 on
) -> bool:
    """Wait until all threads have arrived; False if one failed. All can read after it what any wrote before.

    Who finds a failure passes it on: others may wait for this thread, and have seen the failed one arrive before.
    """
    _publish(progress, thread, number)
    for other in range(len(progress)):
        spins = 0
        while True:
            arrived = _poll(progress, other)
            if arrived == PEER_FAILED:
                _publish(progress, thread, PEER_FAILED)
                return False
            if arrived >= number:
                break
            spins += 1
            if spins > _SPINS:
                _yield_core()
    return True
