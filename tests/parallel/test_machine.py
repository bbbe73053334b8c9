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
    assert core_quota(tmp_path, tmp_path / "none") == quota


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        ("0::/user/job/step\n", {"user/cpu.max": "150000 100000\n", "user/job/step/cpu.max": "max 100000\n"}, 1.5),
        ("0::/user/job\n", {"cpu.max": "3000 1000\n", "user/cpu.max": "2000 1000\n", "user/job/cpu.max": "4 1\n"}, 2),
        ("0::/user/job\n", {"user/job/cpu.max": "50000 100000\n", "other/cpu.max": "1000 100000\n"}, 0.5),
        ("0::/docker/abc\n", {"cpu.max": "250000 100000\n"}, 2.5),  # seen from within: the path is the host's
        ("0::/../neighbour\n", {"cpu.max": "max 100000\n"}, math.inf),
        (
            "5:cpuset:/a\n4:cpu,cpuacct:/a/b\n1:name=systemd:/c\n0::/c\n",
            {"cpu/a/cpu.cfs_quota_us": "300000\n", "cpu/a/cpu.cfs_period_us": "100000\n",
             "cpu/a/b/cpu.cfs_quota_us": "-1\n", "cpu/a/b/cpu.cfs_period_us": "100000\n"},
            3,
        ),
        ("anything", {"cpu.max": "100000 100000\n"}, 1),
    ],
)  # fmt: skip
def test_quotas_below_the_root_count_and_the_smallest_on_the_way_up(
    tmp_path: Path, own: str, files: dict[str, str], quota: float
) -> None:
    root, file = tmp_path / "cgroup", tmp_path / "own"
    file.write_text(own)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert core_quota(root, file) == quota


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
