import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SESSION = """
from pathlib import Path
from fastpong.show.events import Event
from fastpong.show.tensorboard import tensorboard

write = tensorboard()(Path())
for step in (2000, 3000, 4000):
    write(Event("update", step - 500, {}, print))
    write(Event("metrics", step, {"score": 1.0, "entropy": None}, print))
"""


def records(path: Path) -> Iterator[Any]:
    """Read an event file: of each record its length, a sum, the data and another sum."""
    from tensorboardX.proto.event_pb2 import Event

    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]


def test_a_run_that_goes_on_hides_what_a_killed_session_wrote_later(tmp_path: Path) -> None:
    """TensorBoard drops what it has of this step and later ones at a session log that says START."""
    subprocess.run([sys.executable, "-c", SESSION], cwd=tmp_path, check=True)
    (file,) = tmp_path.iterdir()
    read = list(records(file))
    assert [record.step for record in read if record.summary.value] == [2000, 3000, 4000]
    assert [record.step for record in read if record.session_log.status == 1] == [2000]
