import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fastpong.commands.plot import plot
from fastpong.errors import UsageError


def write_run(path: Path, scores: list[float | None]) -> Path:
    path.mkdir()
    lines = [json.dumps({"steps": 1000 * i, "score": score}) for i, score in enumerate(scores)]
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return path


def test_two_runs_in_one_picture(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", [None, -21, -20, -10]), write_run(tmp_path / "b", [-21, -20, 5])]
    plot(runs, tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as image:
        assert image.size == (1200, 675)
        colours = {tuple(c) for c in np.asarray(image.convert("RGB")).reshape(-1, 3)}
    assert (31, 119, 180) in colours and (255, 127, 14) in colours  # a line each


def test_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        plot([tmp_path], tmp_path / "x.png")
    with pytest.raises(UsageError, match="no finished game"):
        plot([write_run(tmp_path / "a", [None])], tmp_path / "x.png")
    with pytest.raises(UsageError, match="cannot write"):
        plot([write_run(tmp_path / "b", [1.0])], tmp_path / "x.what")
