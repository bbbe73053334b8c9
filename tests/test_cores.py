"""On which core the parent of game subprocesses wakes up."""

import os

import pytest

from fastpong.cores import STEPS, Turns, allowed_cores

if not hasattr(os, "sched_setaffinity"):
    pytest.skip("only Linux lets a thread choose its cores", allow_module_level=True)


def test_turns_visit_every_core_and_give_all_back() -> None:
    cores = allowed_cores()
    turns, seen = Turns(len(cores)), []
    for _ in range(2):
        for _ in range(len(cores)):
            for _ in range(STEPS):
                turns.take()
                seen.append(allowed_cores())
        turns.leave()
        assert allowed_cores() == cores
    if len(cores) == 1:
        assert seen == [cores] * 2 * STEPS
    else:
        assert all(len(one) == 1 for one in seen)
        assert all(one == seen[i // STEPS * STEPS] for i, one in enumerate(seen))
        once = len(cores) * STEPS
        assert set.union(*seen[:once]) == set.union(*seen[once:]) == cores


def test_turns_go_on_where_they_were_left() -> None:
    cores = allowed_cores()
    turns, seen = Turns(len(cores)), []
    for _ in range(len(cores) * STEPS):
        turns.take()
        seen.append(allowed_cores())
        turns.leave()
    assert set.union(*seen) == cores


def test_with_cores_to_spare_the_system_chooses() -> None:
    cores = allowed_cores()
    turns = Turns(len(cores) - 1)
    turns.take()
    assert allowed_cores() == cores


def test_a_core_that_is_gone_ends_it() -> None:
    cores = allowed_cores()
    turns = Turns(len(cores))
    turns._order = [max(cores) + 1000] * 2
    for _ in range(2 * STEPS):
        turns.take()
        assert allowed_cores() == cores
    turns.leave()
    assert allowed_cores() == cores
