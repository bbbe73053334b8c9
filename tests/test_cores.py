"""On which core the parent of game subprocesses wakes up."""

import os

import pytest

from fastpong.cores import STEPS, Turns, allowed_cores

if not hasattr(os, "sched_setaffinity"):
    pytest.skip("only Linux lets a thread choose its cores", allow_module_level=True)


def test_turns_visit_every_core_and_give_all_back() -> None:
    cores = allowed_cores()
    turns, seen = Turns(len(cores)), []
    for _ in range(2 * STEPS * len(cores)):
        with turns:
            seen.append(allowed_cores())
        assert allowed_cores() == cores
    if len(cores) == 1:
        assert seen == [cores] * 2 * STEPS
    else:
        assert all(len(one) == 1 for one in seen)
        assert all(one == seen[i // STEPS * STEPS] for i, one in enumerate(seen))
        once = len(cores) * STEPS
        assert set.union(*seen[:once]) == set.union(*seen[once:]) == cores


def test_all_cores_are_given_back_after_an_exception() -> None:
    cores = allowed_cores()
    with pytest.raises(KeyboardInterrupt), Turns(len(cores)):
        raise KeyboardInterrupt
    assert allowed_cores() == cores


def test_with_cores_to_spare_the_system_chooses() -> None:
    cores = allowed_cores()
    with Turns(len(cores) - 1):
        assert allowed_cores() == cores


def test_a_core_that_is_gone_ends_it() -> None:
    cores = allowed_cores()
    turns = Turns(len(cores))
    turns._order = [max(cores) + 1000] * 2
    for _ in range(2):
        with turns:
            assert allowed_cores() == cores
    assert allowed_cores() == cores
