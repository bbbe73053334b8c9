"""Threads: who does which part, and what happens to the others if one fails."""

import threading

import numpy as np
import pytest

from fastpong.arrays import I64
from fastpong.kernels.compile.barrier import arrive
from fastpong.kernels.patches import PARTS
from fastpong.learners.threads import Threads


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_each_part_is_done_once_by_threads_that_share_them(count: int) -> None:
    threads, seen, together = Threads(count), dict[int, list[int]](), threading.Barrier(count)

    def work(part: int) -> int:
        if threading.get_ident() not in seen:
            together.wait(30.0)  # or one thread could do what was meant for two
        seen.setdefault(threading.get_ident(), []).append(part)
        return 10 * part

    assert threads.run(work) == [10 * part for part in range(PARTS)]
    assert len(seen) == count and seen[threading.get_ident()][0] == 0
    assert sorted(part for parts in seen.values() for part in parts) == list(range(PARTS))
    assert max(map(len, seen.values())) == -(-PARTS // count)
    threads.close()


@pytest.mark.parametrize("failing", range(PARTS))
def test_a_failure_is_told_when_all_have_ended(failing: int) -> None:
    threads, done, failed = Threads(3), list[int](), threading.Event()

    def fail(part: int) -> None:
        if part == failing:
            failed.set()
            raise KeyError(part)
        failed.wait(0.1)  # so that others are at work when one fails
        done.append(part)

    with pytest.raises(KeyError, match=str(failing)):
        threads.run(fail)
    own = next(share for share in (range(2), range(2, 5), range(5, 8)) if failing in share)
    assert sorted(done) == [part for part in range(PARTS) if part not in own or part < failing]
    threads.close()


def test_threads_do_not_wait_for_one_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, arrived, start = Threads(3), list[bool](), threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if threading.active_count() > before:
            raise RuntimeError("can't start new thread")
        start(thread)

    def work(thread: int, progress: I64) -> bool:
        arrived.append(arrive(progress, thread, 1))
        return True

    before = threading.active_count()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start"):
        threads.run_with_barrier(work)
    threads.close()
    assert arrived == [False, False]  # one thread has done the other's work as well


@pytest.mark.parametrize("count", [1, 2, 8])
def test_all_that_has_a_barrier_is_done_once(count: int) -> None:
    threads, seen = Threads(count), list[int]()

    def work(thread: int, progress: I64) -> bool:
        seen.append(thread)
        return arrive(progress, thread, 1) and bool(np.all(progress[:, 0] == 1))

    threads.run_with_barrier(work)
    assert sorted(seen) == list(range(count))
    threads.close()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_threads_do_not_wait_for_one_that_fails(failing: int) -> None:
    threads, arrived = Threads(3), list[bool]()

    def work(thread: int, progress: I64) -> bool:
        if thread == failing:
            raise KeyboardInterrupt
        arrived.append(arrive(progress, thread, 1))
        return True

    with pytest.raises(KeyboardInterrupt):
        threads.run_with_barrier(work)
    assert arrived == [False, False]
    threads.close()
