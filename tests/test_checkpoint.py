import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.checkpoint import CheckpointError, RunFolder, load, load_weights, read_metrics, save
from fastpong.config import Config
from fastpong.errors import UsageError

ARRAYS: dict[str, Any] = {"a": np.arange(1000), "b": np.array(2.5)}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path / "x.npz", ARRAYS, {"score": -20.5})
    arrays, about = load(tmp_path / "x.npz")
    assert about["score"] == -20.5
    assert arrays.keys() == ARRAYS.keys()
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text", "other"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.npz"
    save(path, ARRAYS, {})
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[len(data) // 3] ^= 1
    elif damage == "empty":
        data.clear()
    elif damage == "text":
        data = bytearray(b"not an archive")
    path.write_bytes(data)
    if damage == "other":
        np.savez(path, **ARRAYS)
    with pytest.raises(CheckpointError, match="damaged or not a checkpoint") as error:
        load(path)
    assert "\n" not in str(error.value)


def test_missing_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load(tmp_path / "x.npz")
    save(tmp_path / "x.npz", ARRAYS, {})
    with pytest.raises(CheckpointError, match="not a checkpoint of this fastpong"):
        load_weights(tmp_path / "x.npz")


def test_a_failed_save_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save(path, ARRAYS, {})
    with pytest.raises(CheckpointError, match="intact"):
        save(tmp_path / "no" / "x.npz", ARRAYS, {})
    assert load(path)[0]["b"] == 2.5


def test_the_newest_good_checkpoint_is_found_and_old_ones_go(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create(Config(), {})
    with pytest.raises(CheckpointError, match="no checkpoint to continue from"):
        run.newest()
    for steps in (1, 2, 30):
        run.save_checkpoint(steps, 2, {"steps": np.array(steps)}, {})
    assert [path.name for path in run.checkpoints()] == ["step_000000000030.npz", "step_000000000002.npz"]
    run.checkpoints()[0].write_bytes(b"broken")
    arrays, _, complaints = run.newest()
    assert arrays["steps"] == 2
    assert len(complaints) == 1 and "step_000000000030" in complaints[0]


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    with pytest.raises(UsageError, match="there is no run"):
        run.config()
    run.create(Config(envs=3), {})
    assert RunFolder(tmp_path / "run").config() == Config(envs=3)
    with pytest.raises(UsageError, match="holds a run already"):
        run.create(Config(), {})
    with run.lock(), pytest.raises(UsageError, match="another fastpong"), RunFolder(tmp_path / "run").lock():
        pass


def test_metrics_after_a_crash(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create(Config(), {})
    for steps in (10, 20, 30):
        run.log({"steps": steps})
    run.close()
    with run.metrics.open("a") as file:
        file.write('{"steps": 4')
    assert [line["steps"] for line in read_metrics(run.metrics)] == [10, 20, 30]
    run.cut_metrics(20)
    run.log({"steps": 25})
    run.close()
    assert [line["steps"] for line in read_metrics(run.metrics)] == [10, 20, 25]
    run.metrics.write_text("oops\n{}\n")
    with pytest.raises(UsageError, match="line 1"):
        read_metrics(run.metrics)
