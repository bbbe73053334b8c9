"""Ranks that are threads of this process: what they compute can be compared at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

import numpy.typing as npt

T = TypeVar("T")


class ThreadComm:
    """The communicator of one of them. See `fastpong.parallel.comm.Communicator`."""

    local_size, seconds = 1, 0.0

    def __init__(self, rank: int, size: int, board: list[Any], barrier: threading.Barrier):
        self.rank, self.size, self._board, self._barrier = rank, size, board, barrier

    def allgather(self, value: Any) -> list[Any]:
        self._board[self.rank] = value
        self._barrier.wait()
        values = list(self._board)
        self._barrier.wait()
        return values

    def allreduce(self, array: npt.NDArray[Any]) -> None:
        array[:] = sum(self.allgather(array.copy()))

    def gather(self, value: Any) -> list[Any] | None:
        values = self.allgather(value)
        return None if self.rank else values

    def broadcast(self, value: Any) -> Any:
        return self.allgather(value)[0]

    def barrier(self) -> None:
        self._barrier.wait()

    def abort(self, code: int) -> NoReturn:
        self._barrier.abort()
        raise SystemExit(code)


def run_ranks(size: int, work: Callable[[ThreadComm], T]) -> list[T]:
    """Call `work` in so many ranks at the same time, and return what each returned; an error ends all of them."""
    board, barrier = [None] * size, threading.Barrier(size, timeout=120)

    def start(rank: int) -> T:
        try:
            return work(ThreadComm(rank, size, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(start, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error  # that of the rank that failed, rather than of those that waited for it
    return [future.result() for future in futures]
