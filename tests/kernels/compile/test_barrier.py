"""Threads that wait for each other in compiled code. What they do in between is tested in `test_epochs`."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fastpong.arrays import I64
from fastpong.kernels.compile.barrier import PEER_FAILED, arrive


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_nobody_is_an_arrival_ahead(threads: int) -> None:
    progress, came = np.zeros((threads, 8), np.int64), list[int]()

    def take_part(thread: int) -> None:
        for number in range(1, 200):
            came.append(number)
            assert arrive(progress, thread, number)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(take_part, range(threads)))
    assert came == [number for number in range(1, 200) for _ in range(threads)]


@pytest.mark.parametrize("thread", [0, 1, 2])
@pytest.mark.parametrize("other", [0, 1, 2])
def test_nobody_waits_for_a_thread_that_has_failed(thread: int, other: int) -> None:
    progress = np.full((3, 8), 1, np.int64)
    if other != thread:
        progress[other, 0] = PEER_FAILED
        assert not arrive(progress, thread, 1)
        assert progress[thread, 0] == PEER_FAILED  # for those who wait for this one
        progress[other, 0] = 3
    assert arrive(progress, thread, 1)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_nobody_waits_where_one_fails_between_two_arrivals(failing: int) -> None:
    for _ in range(200):  # the order in which the others notice it is chance
        progress = np.zeros((3, 8), np.int64)

        def take_part(thread: int, progress: I64 = progress) -> bool:
            if not arrive(progress, thread, 1):
                return False
            if thread == failing:
                progress[thread, 0] = PEER_FAILED
                return False
            return arrive(progress, thread, 2)

        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(take_part, range(3))) == [False] * 3
