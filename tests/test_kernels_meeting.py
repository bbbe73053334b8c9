"""Two threads that meet in compiled code. What they do between two meetings is tested with the learner."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fastpong.kernels.meeting import ALONE, GONE, meet


def test_nobody_is_a_meeting_ahead() -> None:
    place, came = np.zeros((2, 8), np.int64), list[int]()

    def take_part(which: int) -> None:
        for number in range(1, 200):
            came.append(number)
            assert meet(place, which, number)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(take_part, (0, 1)))
    assert came == [number for number in range(1, 200) for _ in (0, 1)]


@pytest.mark.parametrize("which", [0, 1])
def test_nobody_waits_for_one_that_has_gone(which: int) -> None:
    place = np.zeros((2, 8), np.int64)
    place[1 - which, 0] = GONE
    assert not meet(place, which, 1)
    place[1 - which, 0] = 3
    assert meet(place, which, 3)


def test_one_that_is_alone_does_not_wait() -> None:
    assert meet(np.zeros((2, 8), np.int64), ALONE, 1)
