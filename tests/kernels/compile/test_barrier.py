"""Two threads that wait for each other in compiled code. What they do in between is tested in `test_epochs`."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fastpong.kernels.compile.barrier import BOTH, PEER_FAILED, arrive


def test_nobody_is_an_arrival_ahead() -> None:
    progress, came = np.zeros((2, 8), np.int64), list[int]()

    def take_part(thread: int) -> None:
        for number in range(1, 200):
            came.append(number)
            assert arrive(progress, thread, number)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(take_part, (0, 1)))
    assert came == [number for number in range(1, 200) for _ in (0, 1)]


@pytest.mark.parametrize("thread", [0, 1])
def test_nobody_waits_for_a_thread_that_has_failed(thread: int) -> None:
    progress = np.zeros((2, 8), np.int64)
    progress[1 - thread, 0] = PEER_FAILED
    assert not arrive(progress, thread, 1)
    progress[1 - thread, 0] = 3
    assert arrive(progress, thread, 3)


def test_who_does_both_halves_does_not_wait() -> None:
    assert arrive(np.zeros((2, 8), np.int64), BOTH, 1)
