"""Threads that wait for each other in compiled code. What they do in between is tested in `test_epochs`."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

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
        progress[other, 0] = 3
    assert arrive(progress, thread, 1)
