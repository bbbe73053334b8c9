import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastpong.show.events import Event
from fastpong.show.tensorboard import TensorBoard
from tests.support.commands import one_line


def session(folder: Path, *steps: int) -> TensorBoard:
    write = TensorBoard()
    write.folder = folder
    for step in steps:
        write(Event("update", step - 500, {}, print))
        write(Event("metrics", step, {"score": 1.0, "entropy": None}, print))
    return write


def records(path: Path) -> Iterator[Any]:
    """Read an event file: of each record its length, a sum, the data and another sum."""
    from tensorboardX.proto.event_pb2 import Event as Record

    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Record.FromString(data[12 : 12 + length])
        data = data[16 + length :]


def test_a_run_that_goes_on_hides_what_a_killed_session_wrote_later(tmp_path: Path) -> None:
    """TensorBoard drops what it has of this step and later ones at a session log that says START."""
    write = session(tmp_path, 2000, 3000, 4000)
    (file,) = tmp_path.iterdir()
    read = list(records(file))  # before it is closed: a session that is killed does not close it
    write.close()
    assert [record.step for record in read if record.summary.value] == [2000, 3000, 4000]
    assert [record.step for record in read if record.session_log.status == 1] == [2000]


def test_a_full_disk_ends_only_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write = session(tmp_path, 2000)
    (file,) = tmp_path.iterdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, before[1]))
    try:
        for step in range(3000, 9000, 100):
            write(Event("metrics", step, {"score": 1.0}, print))
        write.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert one_line(capfd.readouterr().err) == (
        "fastpong: File too large: no more is logged for TensorBoard; training goes on"
    )
    assert [record.step for record in records(file) if record.summary.value] == [2000]
