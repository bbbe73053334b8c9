"""Spin barrier for two threads inside compiled code; a barrier in Python costs many times more.

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

BOTH = 2
"""The id of a thread that does the work of both, and waits for nobody."""

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
    progress: I64,  # (2, 8) 0 at first; column 0 holds how often each thread has arrived
    thread: int,  # 0 or 1: this thread; BOTH: there is no other
    number: int,  # of this arrival, from 1 on
) -> bool:
    """Wait until the other thread has arrived; False if it failed. Both can read after it what either wrote before."""
    if thread == BOTH:
        return True
    _publish(progress, thread, number)
    spins = 0
    while True:
        other = _poll(progress, 1 - thread)
        if other == PEER_FAILED:
            return False
        if other >= number:
            return True
        spins += 1
        if spins > _SPINS:
            _yield_core()
