"""A run has the same weights on either engine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.config import make_config
from fastpong.limits import Limits
from fastpong.runs.checkpoint import load
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from fastpong.show.progress import PlainProgress
from fastpong.training.loop import train

STEPS = {"fast": 6_000, "karpathy": 6_000, "ray": 6_000, "ppg": 2_000}
CHANGES: dict[str, dict[str, Any]] = {
    "fast": {"batch_size": 2048, "minibatch_size": 512, "late_by_step": 4_000, "reinit_win_rate": 0.0},
    "karpathy": {"batch_games": 2},
    "ray": {"batch_games": 2},
    "ppg": {"window_seconds": 86_400.0},  # its windows are cut by the clock: none ends
}
TIMES = ("wall_s", "steps_per_s", "comm_s", "batch_s")


@pytest.mark.parametrize("preset", CHANGES)
def test_all_arrays_of_the_checkpoint_are_equal(preset: str, tmp_path: Path) -> None:
    common = {"num_envs": 4, "seed": 3, "eval_games": 0, "log_interval": 2000, "target_score": 22}
    config, states, lines = make_config(preset, {**common, **CHANGES[preset]}), [], []
    for engine in ("console", "ale"):
        folder = RunFolder(tmp_path / engine)
        folder.create(config, {})
        train(config, folder, PlainProgress(""), workers=2, limits=Limits(steps=STEPS[preset]), engine=engine)
        arrays, about = load(folder.checkpoints()[0])
        assert about["engine"] == engine
        states.append(arrays)
        told = read_metrics(folder.metrics)
        lines.append([{key: value for key, value in line.items() if key not in TIMES} for line in told])
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        if name != "envs.rows":
            np.testing.assert_array_equal(array, states[1][name], err_msg=name)
    assert lines[0] == lines[1] and (preset == "ppg" or lines[0][-1]["updates"] > 0)
