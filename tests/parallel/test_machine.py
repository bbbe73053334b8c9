"""The cores that a process may use, and what an MPI launcher tells it."""

import math
from pathlib import Path

import pytest

from fastpong.parallel.machine import core_quota, launched, usable_cores
from fastpong.system import allowed_cores


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
