"""On which core the parent of env subprocesses wakes up, and what an MPI launcher tells a process."""

import math
import os
from pathlib import Path

import pytest

from fastpong.parallel.machine import STEPS, CoreRotation, allowed_cores, core_quota, launched, usable_cores

linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux lets a thread choose its cores")


@linux
def test_a_rotation_visits_every_core_and_gives_all_back() -> None:
    cores = allowed_cores()
    rotation, seen = CoreRotation(len(cores)), []
    for _ in range(2 * STEPS * len(cores)):
        with rotation:
            seen.append(allowed_cores())
        assert allowed_cores() == cores
    if len(cores) == 1:
        assert seen == [cores] * 2 * STEPS
    else:
        assert all(len(one) == 1 for one in seen)
        assert all(one == seen[i // STEPS * STEPS] for i, one in enumerate(seen))
        once = len(cores) * STEPS
        assert set.union(*seen[:once]) == set.union(*seen[once:]) == cores


@linux
def test_all_cores_are_given_back_after_an_exception() -> None:
    cores = allowed_cores()
    with pytest.raises(KeyboardInterrupt), CoreRotation(len(cores)):
        raise KeyboardInterrupt
    assert allowed_cores() == cores


@linux
def test_with_cores_to_spare_the_system_chooses() -> None:
    cores = allowed_cores()
    with CoreRotation(len(cores) - 1):
        assert allowed_cores() == cores


@linux
def test_a_core_that_is_gone_ends_it() -> None:
    cores = allowed_cores()
    rotation = CoreRotation(len(cores))
    rotation._order = [max(cores) + 1000] * 2
    for _ in range(2):
        with rotation:
            assert allowed_cores() == cores
    assert allowed_cores() == cores


def test_cores_are_counted() -> None:
    assert 1 <= usable_cores() <= len(allowed_cores())


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({}, math.inf),
    ],
)
def test_a_containers_quota_counts(tmp_path: Path, files: dict[str, str], quota: float) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert core_quota(tmp_path) == quota


def test_launchers_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    launchers = ("OMPI_COMM_WORLD_", "PMI_", "MV2_COMM_WORLD_")
    for launcher in launchers:
        monkeypatch.delenv(f"{launcher}RANK", raising=False)
        monkeypatch.delenv(f"{launcher}SIZE", raising=False)
    assert launched() == (0, 1)
    for launcher in launchers:
        with monkeypatch.context() as context:
            context.setenv(f"{launcher}RANK", "2")
            assert launched() == (0, 1)
            context.setenv(f"{launcher}SIZE", "4")
            assert launched() == (2, 4)
    monkeypatch.setenv("PMIX_RANK", "1")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    assert launched() == (1, 3)
