import copy
import hashlib
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from fastpong import __version__
from fastpong.runs.checkpoint import FORMAT, CheckpointError, load, save
from tests.support.faults import fault

ARRAYS: dict[str, Any] = {"a": np.arange(1000), "b": np.array(2.5)}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path / "x.npz", ARRAYS, {"score": -20.5})
    arrays, about = load(tmp_path / "x.npz")
    assert about["score"] == -20.5 and about["fastpong"] == __version__
    assert arrays.keys() == ARRAYS.keys()
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    assert os.listdir(tmp_path) == ["x.npz"]


@fault("a damaged checkpoint", times=100)
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


def test_a_flipped_bit_in_any_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save(path, {"policy.w1": np.ones((3, 4), np.float32), "b": np.array(2.5)}, {"score": None})
    data = path.read_bytes()
    for byte in range(len(data)):
        flipped = bytearray(data)
        flipped[byte] ^= 1 << byte % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError):
            load(path)


def npy_bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def shaped(*shape: int) -> bytes:
    """Return an ``.npy`` file of six numbers whose header tells another shape."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": "<i8"})
    return file.getvalue() + bytes(6 * 8)


HOSTILE = {
    "an object": ({"x.npy": npy_bytes(np.array([{}], object))}, "no array"),
    "too large a shape": ({"x.npy": shaped(1 << 44)}, "no array"),
    "a smaller shape": ({"x.npy": shaped(5)}, "no array"),
    "a negative shape": ({"x.npy": shaped(-2, -3)}, "no array"),
    "no array": ({"x.npy": b"MZ, a program"}, "magic"),
    "deep JSON": ({"about.npy": npy_bytes(np.array("[" * 100_000))}, "recursion|Stack overflow"),
    "zeros without an end": ({"x.npy": npy_bytes(np.zeros(1 << 26, np.uint8))}, "too much is compressed"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strangers_file_with_a_right_digest_is_refused(name: str, tmp_path: Path) -> None:
    changes, words = HOSTILE[name]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if "compressed" in words else zipfile.ZIP_STORED) as archive:
        for member, data in {"about.npy": npy_bytes(np.array(json.dumps({"format": FORMAT}))), **changes}.items():
            archive.writestr(member, data)
    path = tmp_path / "x.npz"
    path.write_bytes(sealed(buffer.getvalue()))
    with pytest.raises(CheckpointError, match=words):
        load(path)


def sealed(archive: bytes) -> bytes:
    """Return an archive without a comment with a right digest as its comment."""
    data = archive[:-2] + (32).to_bytes(2, "little")
    return data + hashlib.blake2b(data, digest_size=32).digest()


def test_members_that_lie_inside_each_other_are_refused(tmp_path: Path) -> None:
    """Each of the directory's entries is of the same 8 MB: read as they stand they would be 300 times as much."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("about.npy", npy_bytes(np.array(json.dumps({"format": FORMAT}))))
        archive.writestr("x000.npy", npy_bytes(np.zeros(1 << 20)))
        for number in range(1, 300):
            again = copy.copy(archive.filelist[-1])
            again.filename = f"x{number:03d}.npy"
            archive.filelist.append(again)
    (tmp_path / "x.npz").write_bytes(sealed(buffer.getvalue()))
    tracemalloc.start()
    with pytest.raises(CheckpointError, match="its parts overlap"):
        load(tmp_path / "x.npz")
    assert tracemalloc.get_traced_memory()[1] < 40e6
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "sparse", "link to a device"])
def test_what_is_no_regular_file_of_a_size_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 33)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=r"cannot read .*(not a regular file|larger than [\d,]+ bytes)"):
        load(Path("/dev/zero") if kind == "device" else path)
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("about", "version"),
    [({"format": 1, "steps": 5}, "0.1"), ({"format": 9, "fastpong": "0.9.1"}, "0.9.1")],  # as 0.1 wrote it
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
    with pytest.raises(CheckpointError, match="cannot save"):
        save(tmp_path / "no" / "x.npz", ARRAYS, {})
    assert load(path)[0]["b"] == 2.5
