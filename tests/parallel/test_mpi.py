"""Real ranks under a real mpiexec: the numbers do not notice them, and their failures are noticed at once."""

import json
import mmap
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong.config import make_config
from fastpong.errors import UsageError
from fastpong.limits import Limits
from fastpong.parallel import mpi as own
from fastpong.parallel.comm import Serial
from fastpong.parallel.mpi import connect
from fastpong.runs.folder import RunFolder
from fastpong.show.progress import PlainProgress
from fastpong.training.loop import train
from tests.support import mpi
from tests.support.commands import wait_for, workers_of
from tests.support.faults import fault

SMALL = {
    "hidden_units": 64, "eval_games": 0, "log_interval": 1000, "checkpoint_interval": 3000, "target_score": 22,
}  # fmt: skip
PPO = {
    "batch_size": 350, "minibatch_size": 96, "update_epochs": 2, "late_win_rate": 0,
}  # fmt: skip


PRESETS: dict[str, dict[str, int]] = {"fast": PPO, "ppg": {"log_interval": 10**9}}


def training(folder: Path, preset: str, steps: int, *more: str, envs: int = 7) -> list[str]:
    changes = SMALL | PRESETS.get(preset, {})
    settings = [text for key, value in changes.items() for text in ("--set", f"{key}={value}")]
    start = [] if "--resume" in more else ["--preset", preset, "--envs", str(envs), *settings]
    return ["train", "--run", str(folder), "--steps", str(steps), *start, *more]


def run(ranks: int, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return mpi.run(ranks, "-m", "fastpong", *arguments, **options)


@pytest.mark.parametrize(("more", "reinits"), [({}, 0), ({"late_win_rate": 0.65, "late_by_step": 700}, 2)])
def test_ranks_go_on_with_a_run_and_make_the_same_updates(more: dict[str, Any], reinits: int, tmp_path: Path) -> None:
    """Seven envs do not divide evenly. Three ranks: tests/learners; REINFORCE: tests/learners/test_reinforce.py."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    config = make_config("fast", SMALL | PPO | more | {"num_envs": 7})
    for folder, steps in ((whole, 1900), (parts, 400)):
        run_folder = RunFolder(folder)
        run_folder.create(config, {})
        train(config, run_folder, PlainProgress(""), workers=1, limits=Limits(steps=steps))
    updates = int(RunFolder(parts).newest()[0]["learner.updates"])
    done = run(2, *training(parts, "fast", 1900, "--resume", "--json"))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 and json.loads(done.stdout)["reason"] == "steps"  # rank 0 alone
    one, other = RunFolder(whole).newest()[0], RunFolder(parts).newest()[0]
    for state in (one, other):
        state["stats.counts"][3:5] = 0  # points since the last line of metrics
    assert one.keys() == other.keys() and int(other["learner.schedule_began"][1]) == reinits
    assert int(other["learner.updates"]) > (0 if reinits else updates) and updates > 0
    for name, array in one.items():  # weights differ by the order of float sums only: 1e-4 of their largest
        tolerance = 1e-4 * max(1e-3, float(np.abs(array).max(initial=0))) if array.dtype.kind == "f" else 0
        np.testing.assert_allclose(other[name], array, rtol=0, atol=tolerance, err_msg=name)


def test_ppg_reports_windows(tmp_path: Path) -> None:
    done = run(2, *training(tmp_path / "run", "ppg", 12_000, "--window-seconds", "0.02"))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.endswith("r/Kup")]
    assert len(lines) >= 3
    form = r" *\d+, \d{10} steps @ +\d+/s: +-?\d+\.\d \| +-?\d+\.\d{4} @ 1\.0e-03 lr, +-?\d+\.\d r/Kup"
    assert all(re.fullmatch(form, line) for line in lines), lines
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) in (len(lines), len(lines) + 1) and -21 <= metrics[-1]["running_reward"] < 0


def test_bad_starts_are_told_once(tmp_path: Path) -> None:
    for arguments, words in (  # before the ranks have met, and after
        (["eval", "--games", "1"], "without mpiexec"),
        (training(tmp_path / "run", "fast", 100, envs=1), "use fewer ranks"),
    ):
        done = run(2, *arguments)
        told = [line for line in done.stderr.splitlines() if line.startswith("fastpong")]
        assert done.returncode == 2 and len(told) == 1 and words in told[0], done.stderr
    assert not list(tmp_path.iterdir())


def test_missing_parts_have_their_own_messages(tmp_path: Path) -> None:
    """Without mpi4py; and with mpi4py, but no MPI library that it could load."""
    for name, source, words in (
        ("mpi4py missing", None, "mpi4py is not installed"),
        ("no library", "raise RuntimeError('cannot load MPI library')", "finds no MPI library"),
    ):
        site = tmp_path / name.replace(" ", "_")
        site.mkdir()
        if source is None:  # a finder that hides the real one
            hide = "import sys, importlib.abc\nclass Hide(importlib.abc.MetaPathFinder):\n"
            hide += "    def find_spec(self, name, path, target=None):\n"
            hide += "        if name == 'mpi4py': raise ModuleNotFoundError(name)\n"
            (site / "sitecustomize.py").write_text(hide + "sys.meta_path.insert(0, Hide())\n")
        else:
            (site / "mpi4py").mkdir()
            (site / "mpi4py" / "__init__.py").write_text("")
            (site / "mpi4py" / "MPI.py").write_text(source)
        done = run(2, *training(tmp_path / "run", "fast", 100), env={**os.environ, "PYTHONPATH": str(site)})
        told = [line for line in done.stderr.splitlines() if line.startswith("fastpong")]
        assert done.returncode == 1 and len(told) == 1 and words in told[0], done.stderr
    assert not (tmp_path / "run").exists()


def started(ranks: int, folder: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """Start a long run, wait for its first checkpoint, and return mpiexec and the ranks."""
    process = subprocess.Popen(
        mpi.python(ranks, "-m", "fastpong", *training(folder, "fast", 10**7, envs=8)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for(RunFolder(folder).checkpoints)
    found = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "train" in child.cmdline() and child.environ().get("PMI_RANK")
    ]
    return process, sorted(found, key=lambda child: int(child.environ()["PMI_RANK"]))


def gone(processes: list[psutil.Process], seconds: float) -> bool:
    return not psutil.wait_procs(processes, timeout=seconds)[1]


@fault("a rank dies", times=10)
def test_a_killed_rank_ends_the_job(tmp_path: Path) -> None:
    process, ranks = started(2, tmp_path / "run")
    everyone = psutil.Process(process.pid).children(recursive=True)
    assert len(ranks) == 2
    ranks[1].kill()
    process.communicate(timeout=20)
    assert process.returncode != 0
    assert gone(everyone, 20), "env subprocesses are left"
    assert RunFolder(tmp_path / "run").newest().facts.steps >= 3000


@fault("a rank hangs", times=10)
def test_a_rank_that_waits_long_says_so(tmp_path: Path) -> None:
    done = mpi.run_script(
        2,
        tmp_path,
        "import time",
        "import numpy as np",
        "from fastpong.parallel import mpi",
        "mpi.WAIT_SECONDS = 1.0",
        "comm = mpi.connect()",
        "time.sleep(2.0 * comm.rank)",
        "comm.allreduce(np.ones(3))",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["rank 0 has waited for 1 s: look at the ranks that do not say so"]


@fault("mpiexec dies", times=10)
def test_ranks_end_with_what_started_them(tmp_path: Path) -> None:
    process, ranks = started(2, tmp_path / "run")
    everyone = psutil.Process(process.pid).children(recursive=True)
    starter = ranks[0].parent()
    assert starter and starter.pid != process.pid
    starter.kill()
    process.communicate(timeout=20)
    assert gone(everyone, 20), "ranks are left"


@fault("an env subprocess dies three times within a minute", times=10)
def test_a_rank_that_loses_subprocesses_tells_it_and_then_ends_the_job(tmp_path: Path) -> None:
    process, ranks = started(2, tmp_path / "run")
    assert process.stdout
    lines = iter(process.stdout.readline, "")
    for _ in range(3):
        wait_for(lambda: workers_of(ranks[1]))
        workers_of(ranks[1])[0].kill()
        assert any("rank 1: env subprocess 0" in line and "takes its place" in line for line in lines)
    output = process.communicate(timeout=30)[0]
    assert process.returncode != 0
    told = [line for line in output.splitlines() if line.startswith("fastpong:")]
    assert len(told) == 1 and "env subprocess 0 was lost 3 times within 60 s" in told[0], output
    assert RunFolder(tmp_path / "run").newest().facts.steps >= 3000


@fault("signals", times=10)
def test_a_signal_to_the_whole_job_saves_first(tmp_path: Path) -> None:
    process, _ = started(2, tmp_path / "run")
    os.killpg(process.pid, signal.SIGTERM)  # mpiexec sends it on: ranks get it twice
    output = process.communicate(timeout=30)[0]
    assert "stopped, interrupted" in output, output
    assert process.returncode == 130, output
    steps = RunFolder(tmp_path / "run").newest().facts.steps
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["steps"] == steps


def test_ranks_share_cores_unless_they_are_bound(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    bind = f"os.sched_setaffinity(0, {{{cores[:2]}[launched()[0]]}})"
    for setup, wanted in (("", 2), (bind, 1)) if len(cores) > 1 else (("", 2),):
        done = mpi.run_script(
            2, tmp_path,
            "import os",
            "from fastpong.parallel.machine import launched",
            "from fastpong.parallel.mpi import connect",
            setup,
            "print(connect().local_size)",
        )  # fmt: skip
        assert "".join(done.stdout.split()) == f"{wanted}{wanted}", done.stderr  # lines of ranks may run together


def test_ranks_exchange_values_and_sums(tmp_path: Path) -> None:
    """Sums are the same on all ranks, bit for bit, and so near to those of float64 as float32 can be."""
    done = mpi.run_script(
        3, tmp_path,
        "from fastpong.parallel.mpi import connect",
        "comm = connect()",
        "import numpy as np",
        "from fastpong.parallel.comm import check_same_weights",
        "parts = [np.random.default_rng(rank).standard_normal(1001) for rank in range(3)]",
        "values = parts[comm.rank].astype(np.float32)",
        "comm.allreduce(values)",
        "check_same_weights(comm, values)",
        "np.testing.assert_allclose(values, sum(parts), rtol=1e-5, atol=1e-6)",
        "counts = np.full(3, comm.rank, np.float64)",
        "comm.allreduce(counts)",
        "assert counts.tolist() == [3.0, 3.0, 3.0]",
        "assert comm.allgather(('rank', comm.rank)) == [('rank', rank) for rank in range(3)]",
        "assert comm.gather(comm.rank) == ([0, 1, 2] if comm.rank == 0 else None)",
        "assert comm.broadcast({'from': comm.rank}) == {'from': 0}",
        "assert comm.size == 3 and comm.seconds > 0",
        "comm.barrier()",
        "if comm.rank == 0: print('done')",
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def test_a_barrier_waits_for_the_last_and_keeps_no_core_busy(tmp_path: Path) -> None:
    done = mpi.run_script(
        2, tmp_path,
        "from fastpong.parallel.mpi import connect",
        "comm = connect()",
        "import time",
        "busy = time.process_time()",
        "if comm.rank: time.sleep(2)",
        "left = time.time()",
        "comm.barrier()",
        "back = time.time()",
        "if comm.rank == 0: assert time.process_time() - busy < 1",
        "assert min(comm.allgather(back)) >= max(comm.allgather(left))",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_drifted_weights_are_noticed_by_all_ranks(tmp_path: Path) -> None:
    done = mpi.run_script(
        2, tmp_path,
        "from fastpong.parallel.mpi import connect",
        "comm = connect()",
        "import numpy as np",
        "from fastpong.errors import RanksError",
        "from fastpong.parallel.comm import check_same_weights",
        "weights = np.ones(5, np.float32)",
        "check_same_weights(comm, weights)",
        "weights[3] += comm.rank * 1e-6",
        "try:",
        "    check_same_weights(comm, weights)",
        "except RanksError as error:",
        "    said = comm.gather(str(error))",
        "    if comm.rank == 0: print(len(said), said[0])",
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.startswith("2 the weights of rank 1 differ from those of rank 0")


def test_without_a_launcher_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(connect(), Serial) and isinstance(connect(mpi=False), Serial)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    with pytest.raises(UsageError, match="--no-mpi"):
        connect(mpi=False)


@fault("kill -9", times=10)
def test_what_killed_jobs_left_is_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Old files that nobody maps; not those of a job that runs, nor of one that starts."""
    monkeypatch.setattr(own, "_SHARED", str(tmp_path / "mpich_shm_*"))
    left, running, starting = (tmp_path / f"mpich_shm_{name}" for name in ("left", "running", "starting"))
    for path in (left, running, starting):
        path.write_bytes(bytes(4096))
    for path in (left, running):
        os.utime(path, (0, 0))
    with running.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        own.sweep()
        assert sorted(tmp_path.iterdir()) == [running, starting]
