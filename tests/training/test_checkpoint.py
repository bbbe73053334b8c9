import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong import __version__
from fastpong.training.checkpoint import CheckpointError, load, save

ARRAYS: dict[str, Any] = {"a": np.arange(1000), "b": np.array(2.5)}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path / "x.npz", ARRAYS, {"score": -20.5})
    arrays, about = load(tmp_path / "x.npz")
    assert about["score"] == -20.5 and about["fastpong"] == __version__
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


@pytest.mark.parametrize(
    ("about", "version"),
    [({"format": 1, "steps": 5}, "0.1"), ({"format": 3, "fastpong": "0.9.1"}, "0.9.1")],  # as 0.1 wrote it
)
def test_a_checkpoint_of_another_version_names_the_one_that_reads_it(
    about: dict[str, Any], version: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, about=np.array(json.dumps(about)), **ARRAYS)
    with pytest.raises(CheckpointError) as error:
        load(path)
    assert str(error.value) == f"{path} is of fastpong {version}, which reads it; this is fastpong {__version__}"


def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load(tmp_path / "x.npz")


def test_a_failed_save_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save(path, ARRAYS, {})
    with pytest.raises(CheckpointError, match="intact"):
        save(tmp_path / "no" / "x.npz", ARRAYS, {})
    assert load(path)[0]["b"] == 2.5
