"""Real ranks under a real mpiexec: the numbers do not notice them, and their failures are noticed at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong import shards
from fastpong.checkpoint import RunFolder
from fastpong.errors import RanksError, UsageError
from fastpong.launcher import launched
from fastpong.ranks import Alone, check_equal, connect, from_bfloat16, share_of, to_bfloat16

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
SMALL = {
    "hidden": 16, "batch_games": 2, "batch_steps": 350, "minibatch": 96, "epochs": 2, "eval_games": 0,
    "log_steps": 1000, "checkpoint_steps": 3000, "target": 22, "practice_points": 0.0, "pass_share": 0.6,
    "critic": 2, "sharpen_latest": 0,
}  # fmt: skip


def command(ranks: int, *arguments: str) -> list[str]:
    assert MPIEXEC, "pip install mpich brings it"
    return [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "fastpong", *arguments]


def training(folder: Path, preset: str, steps: int, *more: str, envs: int = 7) -> list[str]:
    settings = [text for key, value in SMALL.items() for text in ("--set", f"{key}={value}")]
    start = [] if "--resume" in more else ["--preset", preset, "--envs", str(envs), *settings]
    return ["train", "--run", str(folder), "--steps", str(steps), *start, *more]


def run(ranks: int, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(ranks, *arguments), capture_output=True, text=True, timeout=120, **options)


def checkpoint(folder: Path) -> dict[str, Any]:
    return RunFolder(folder).newest()[0]


@pytest.mark.parametrize(("preset", "steps", "sizes"), [("fast", 1500, (1, 3)), ("karpathy", 8400, (1, 3))])
def test_any_number_of_ranks_makes_the_same_updates(
    preset: str, steps: int, sizes: tuple[int, ...], tmp_path: Path
) -> None:
    """Seven games do not divide evenly. Weights differ by the order of float sums only: 1e-4 of their largest."""
    states = {}
    for size in sizes:
        done = run(size, *training(tmp_path / str(size), preset, steps, "--json"))
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 1 and json.loads(done.stdout)["reason"] == "steps"  # rank 0 alone
        states[size] = checkpoint(tmp_path / str(size))
    one = states[sizes[0]]
    assert int(one["learner.updates"]) >= 2
    for size in sizes[1:]:
        for name in one:
            close = dict(rtol=0, atol=1e-4 * max(1e-3, float(np.abs(one[name]).max(initial=0))))
            kind = close if one[name].dtype.kind == "f" else dict(rtol=0, atol=0)
            np.testing.assert_allclose(states[size][name], one[name], **kind, err_msg=f"{name}, {size} ranks")


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(1, *training(whole, "fast", 1500)).returncode == 0
    for size, steps, more in ((3, 500, []), (2, 1500, ["--resume"])):
        done = run(size, *training(parts, "fast", steps, *more))
        assert done.returncode == 0, done.stderr
    one, other = checkpoint(whole), checkpoint(parts)
    np.testing.assert_allclose(other["policy.w1"], one["policy.w1"], rtol=0, atol=1e-4 * np.abs(one["policy.w1"]).max())
    for name in ("rollout.items", "rollout.actions", "games.emulators", "tally.recent", "tally.length", "step"):
        np.testing.assert_array_equal(other[name], one[name], err_msg=name)


def test_local_steps_keep_ranks_together_with_fewer_sums(tmp_path: Path) -> None:
    """Weights are compared every eight batches of the run: they are the same on all ranks, but other ones."""
    states = {}
    for steps in (1, 3):
        done = run(2, *training(tmp_path / str(steps), "fast", 3500, "--set", f"local_steps={steps}"))
        assert done.returncode == 0, done.stderr
        states[steps] = checkpoint(tmp_path / str(steps))
    assert states[1]["learner.updates"] == states[3]["learner.updates"] > 60
    difference = np.abs(states[1]["policy.w1"] - states[3]["policy.w1"]).max()
    assert 1e-5 < difference < 0.1


def test_ppg_reports_windows(tmp_path: Path) -> None:
    done = run(3, *training(tmp_path / "run", "ppg", 4000, "--window-seconds", "0.3"))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.endswith("r/Kup")]
    assert len(lines) >= 3
    import re

    form = r" *\d+, \d{10} steps @ +\d+/s: +-?\d+\.\d \| +-?\d+\.\d{4} @ 1\.0e-03 lr, +-?\d+\.\d r/Kup"
    assert all(re.fullmatch(form, line) for line in lines), lines
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) in (len(lines), len(lines) + 1) and -21 <= metrics[-1]["running_reward"] < 0


def test_bad_starts_are_told_once(tmp_path: Path) -> None:
    for arguments, code, words in (
        (training(tmp_path / "a", "fast", 100, "--no-mpi"), 2, "--no-mpi"),
        (training(tmp_path / "b", "fast", 100, envs=1), 2, "use fewer ranks"),
        (training(tmp_path / "c", "nonsense", 100), 2, "there is no preset"),
        (["eval", "--games", "1"], 2, "without mpiexec"),
    ):
        done = run(2, *arguments)
        told = [line for line in done.stderr.splitlines() if line.startswith("fastpong")]
        assert done.returncode == code and len(told) == 1 and words in told[0], done.stderr
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
        command(ranks, *training(folder, "fast", 10**7, envs=8)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not RunFolder(folder).checkpoints() and time.monotonic() < deadline:
        time.sleep(0.1)
    found = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "train" in child.cmdline() and child.environ().get("PMI_RANK")
    ]
    return process, sorted(found, key=lambda child: int(child.environ()["PMI_RANK"]))


def gone(processes: list[psutil.Process], seconds: float) -> bool:
    return not psutil.wait_procs(processes, timeout=seconds)[1]


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_job(victim: int, tmp_path: Path) -> None:
    process, ranks = started(2, tmp_path / "run")
    everyone = psutil.Process(process.pid).children(recursive=True)
    assert len(ranks) == 2
    ranks[victim].kill()
    process.communicate(timeout=20)
    assert process.returncode != 0
    assert gone(everyone, 20), "game subprocesses are left"
    assert RunFolder(tmp_path / "run").newest()[1]["steps"] >= 3000


def test_a_failing_rank_tells_why_and_ends_the_job(tmp_path: Path) -> None:
    process, ranks = started(2, tmp_path / "run")
    games = [child for child in ranks[1].children(recursive=True) if "forkserver" in " ".join(child.cmdline())]
    leaves = [child for child in games if not child.children()]
    leaves[-1].kill()
    output = process.communicate(timeout=20)[0]
    assert process.returncode != 0
    assert "fastpong: rank 1: game subprocess" in output and "was killed by SIGKILL" in output, output
    assert RunFolder(tmp_path / "run").newest()[1]["steps"] >= 3000


def test_ctrl_c_saves_first(tmp_path: Path) -> None:
    process, _ = started(2, tmp_path / "run")
    os.kill(process.pid, signal.SIGINT)
    output = process.communicate(timeout=30)[0]
    assert "stopped, interrupted" in output, output
    assert process.returncode == 130, output
    steps = RunFolder(tmp_path / "run").newest()[1]["steps"]
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["steps"] == steps


def test_ranks_share_cores_unless_they_are_bound() -> None:
    assert MPIEXEC
    cores = sorted(os.sched_getaffinity(0))
    script = "import os, fastpong.ranks as r\n"
    bind = f"os.sched_setaffinity(0, {{{cores[:2]}[r.launched()[0]]}})\n"
    for setup, wanted in (("", 2), (bind, 1)) if len(cores) > 1 else (("", 2),):
        code = script + setup + "print(r.connect().neighbours)"
        done = subprocess.run([MPIEXEC, "-n", "2", sys.executable, "-c", code], capture_output=True, text=True)
        assert "".join(done.stdout.split()) == f"{wanted}{wanted}", done.stderr  # lines of ranks may run together


def test_shares_are_even_and_complete() -> None:
    for count, size in ((64, 4), (7, 3), (5, 5), (64, 1)):
        shares = [share_of(count, rank, size) for rank in range(size)]
        assert [game for share in shares for game in share] == list(range(count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_states_are_cut_and_joined() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 4, (3, 5))
    layout: shards.Layout = {"lengths": 1, "items": "lengths", "score": 0, "total": None}
    items = np.concatenate([np.full(int(lengths[:, game].sum()), game) for game in range(5)])
    whole = {"lengths": lengths, "items": items, "score": np.arange(5), "total": np.array(9)}
    parts = [shards.cut(whole, layout, share_of(5, rank, 3)) for rank in range(3)]
    assert set(parts[1]["items"].tolist()) <= set(share_of(5, 1, 3))
    joined = shards.join(parts, layout)
    for name, array in whole.items():
        np.testing.assert_array_equal(joined[name], array)


def test_bfloat16_is_the_nearest() -> None:
    values = np.array([0.0, 1.0, -1.0, 1.00390625, 3.14159274, -1e-30, 2.5e30, 1 + 2**-9], np.float32)
    rounded = from_bfloat16(to_bfloat16(values))
    np.testing.assert_allclose(rounded, values, rtol=2**-8)
    assert rounded[:3].tolist() == [0.0, 1.0, -1.0]


def test_rounded_sums_are_the_same_on_all_ranks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from fastpong.ranks import check_equal, connect\n"
        "ranks = connect()\n"
        "values = np.random.default_rng(ranks.rank).standard_normal(1001).astype(np.float32)\n"
        "exact, rounded = values.copy(), values.copy()\n"
        "ranks.sum(exact)\n"
        "ranks.sum(rounded, 'bfloat16')\n"
        "check_equal(ranks, exact)\n"
        "check_equal(ranks, rounded)\n"
        "if ranks.rank == 0: print(np.abs(rounded - exact).max())\n"
    )
    done = subprocess.run([str(MPIEXEC), "-n", "3", sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 0.05


class Pair(Alone):
    """Rank 0 of two, whose other one has different weights."""

    def share(self, value: Any) -> list[Any]:
        return [value, value + 1]


def test_drifting_weights_are_noticed() -> None:
    weights = np.ones(3, np.float32)
    check_equal(Alone(), weights)
    with pytest.raises(RanksError, match="rank 1 differ from those of rank 0"):
        check_equal(Pair(), weights)


def test_launchers_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert launched() == (0, 1) and isinstance(connect(), Alone)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert launched() == (2, 4)
    with pytest.raises(UsageError, match="--no-mpi"):
        connect(mpi=False)
