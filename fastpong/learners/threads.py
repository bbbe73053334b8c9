"""The threads that learn."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from fastpong.arrays import I64
from fastpong.kernels.compile.barrier import PEER_FAILED
from fastpong.kernels.patches import PARTS
from fastpong.parallel.comm import Communicator
from fastpong.parallel.machine import usable_cores

T = TypeVar("T")


def learner_threads(comm: Communicator) -> int:
    """Return how many threads a rank learns on: one for each of its cores, but no more than there are parts.

    The emulators wait while the weights change, so the cores are free for it, unless they are other ranks'.
    """
    return max(1, min(PARTS, usable_cores() // comm.local_size))


class Threads:
    """So many threads, of which the calling one is the first."""

    def __init__(self, count: int):
        self.count = count
        self._pool = ThreadPoolExecutor(max(1, count - 1), "learner")  # which starts a thread when it is needed

    def run(self, work: Callable[[int], T]) -> list[T]:
        """Return what `work` does for each part, 0 … `PARTS` − 1."""

        def share(thread: int) -> list[T]:
            return [work(part) for part in range(thread * PARTS // self.count, (thread + 1) * PARTS // self.count)]

        return [result for results in self._on_each(share) for result in results]

    def run_with_barrier(self, work: Callable[[int, I64], bool]) -> None:
        """Call ``work(thread, progress)`` on each thread; see `fastpong.kernels.epochs`."""
        progress = np.zeros((self.count, 8), np.int64)

        def take_part(thread: int) -> bool:
            try:
                return work(thread, progress)
            except BaseException:
                progress[thread, 0] = PEER_FAILED
                raise

        def give_up() -> None:
            progress[0, 0] = PEER_FAILED

        self._on_each(take_part, give_up)

    def _on_each(self, work: Callable[[int], T], give_up: Callable[[], None] = lambda: None) -> list[T]:
        """Return what `work` does on each thread, once all have ended; `give_up` tells the others that this one fails.

        It may fail before it works: the system can refuse a thread, and Ctrl-C comes at any time.
        """
        others: list[Future[T]] = []
        try:
            for thread in range(1, self.count):
                others.append(self._pool.submit(work, thread))
            first = work(0)
        except BaseException:
            give_up()
            raise
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown()
