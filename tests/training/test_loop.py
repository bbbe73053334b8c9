"""A run from its start to its end: what it writes, why it stops, and that an interruption changes no bit."""

import json
from pathlib import Path

import numpy as np
import pytest

from fastpong.config_sources import read_toml
from fastpong.errors import DivergedError
from fastpong.limits import Limits
from fastpong.parallel.machine import versions
from fastpong.runs import history
from fastpong.runs.checkpoint import CheckpointError, load, save
from fastpong.runs.facts import read_metrics
from fastpong.runs.find import load_weights
from fastpong.runs.folder import RunFolder
from fastpong.show.progress import PlainProgress
from fastpong.training import loop
from fastpong.training.loop import train
from tests.support.faults import fault
from tests.support.runs import line
from tests.support.trainings import run, small


@pytest.mark.parametrize(("name", "steps"), [("fast", 4000), ("late", 4000), ("reinit", 4000), ("karpathy", 8000)])
def test_an_interrupted_run_goes_on_bit_for_bit(
    name: str, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history, "BEGINS", (0, steps // 4, steps * 5 // 9 - 200))  # the last one: just before the break
    every = 3 * steps // 8
    config = small(name, log_interval=500, checkpoint_interval=every)
    run(tmp_path / "whole", config, steps)
    told = [text for text in capsys.readouterr().err.splitlines() if "other weights begin" in text]
    run(tmp_path / "parts", config, steps * 5 // 9)
    run(tmp_path / "parts", config, steps, workers=3, resume=True)
    whole, facts, _ = RunFolder(tmp_path / "whole").newest()
    parts, facts_of_parts, _ = RunFolder(tmp_path / "parts").newest()
    assert int(whole["learner.updates"]) >= 2
    assert whole.keys() == parts.keys()
    for key in whole.keys() - {"stats.counts"}:
        np.testing.assert_array_equal(whole[key], parts[key], err_msg=key)
    # Points are counted since the last line of the metrics.
    np.testing.assert_array_equal(np.delete(whole["stats.counts"], [3, 4]), np.delete(parts["stats.counts"], [3, 4]))
    assert facts.score == facts_of_parts.score
    assert whole["learner.schedule_late_since"] >= 0 if name == "late" else True
    told_again = [text for text in capsys.readouterr().err.splitlines() if "other weights begin" in text]
    assert told == told_again and len(told) == (2 if name == "reinit" else 0)
    assert whole["learner.schedule_began"][1] == 2 if name == "reinit" else True
    kept, again = (
        {path.name: path for path in RunFolder(tmp_path / part).history.paths()} for part in ("whole", "parts")
    )
    assert kept.keys() == again.keys() and len(kept) >= (1 if name == "reinit" else 2)
    for key, path in kept.items():
        assert load_weights(path)[0] == config
        for array, other in zip(load(path)[0].values(), load(again[key])[0].values(), strict=True):
            np.testing.assert_array_equal(array, other, err_msg=key)
    # Checkpoints at 3/8 (deleted since) and 6/8 of the steps, and at the end; the weights of each are a candidate.
    folder = RunFolder(tmp_path / "whole")
    saved = [int(path.stem.removeprefix("step_")) for path in folder.candidates()]
    assert [steps // 6 for steps in saved] == [-(-at // 6) for at in (every, 2 * every, steps)]
    assert [path.name for path in folder.checkpoints()] == [path.name for path in reversed(folder.candidates()[1:])]


def test_other_weights_are_told_once_and_the_history_begins_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, folder = small("reinit"), RunFolder(tmp_path / "run")
    run(folder.path, config, 1600)
    assert "too few points are won after 1,536 steps: other weights begin" in capsys.readouterr().err
    weights = folder.newest()[0]
    for steps in (1650, 2400):  # the first session ends before it learns
        run(folder.path, config, steps, resume=True)
        assert "other weights begin" not in capsys.readouterr().err
    (path,) = folder.history.paths()
    for name, array in load(path)[0].items():
        np.testing.assert_array_equal(array, weights[name].astype(np.float16), err_msg=name)
    assert not weights["learner.exp_avg"].any()


def test_the_first_line_of_metrics_comes_soon_and_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = []
    for first, steps in ((10**9, [1602]), (100, [102, 1602])):
        monkeypatch.setattr(loop, "FIRST_LINE", first)
        folder = RunFolder(tmp_path / str(first))
        run(folder.path, small("fast"), 1600)
        assert [line["steps"] for line in read_metrics(folder.metrics)] == steps
        states.append(folder.newest()[0])
    assert int(states[0]["learner.updates"]) >= 1
    for key, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][key], err_msg=key)


def test_a_run_of_another_version_is_told(tmp_path: Path) -> None:
    run(tmp_path / "run", small("fast"), 200)
    folder = RunFolder(tmp_path / "run")
    arrays, facts, _ = folder.newest()
    del arrays["learner.exp_avg_sq"]
    save(folder.checkpoints()[0], arrays, facts.about())
    with pytest.raises(CheckpointError, match="learner.exp_avg_sq is missing"):
        run(tmp_path / "run", small("fast"), 400, resume=True)


@fault("a damaged checkpoint", times=100)
def test_a_checkpoint_that_no_run_saved_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, folder = small("fast", log_interval=200, checkpoint_interval=200), RunFolder(tmp_path / "run")
    run(folder.path, config, 600)
    expected, newest = folder.newest()[0], folder.checkpoints()[0]
    arrays, about = load(newest)
    save(newest, arrays | {"rollout.actions": arrays["rollout.actions"] + np.uint8(7)}, about)
    run(folder.path, config, 600, resume=True)
    assert "rollout.actions has values that are impossible" in capsys.readouterr().err
    for name, array in folder.newest()[0].items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


@fault("NaN in weights", times=100)
def test_nan_ends_a_run_and_is_neither_saved_nor_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, folder = small("fast", log_interval=200, checkpoint_interval=400), RunFolder(tmp_path / "run")
    run(folder.path, config, 1000)
    newest = folder.checkpoints()[0]
    arrays, about = load(newest)
    arrays["policy.w1"].flat[0] = np.nan
    save(newest, arrays, about)
    with pytest.raises(CheckpointError, match="w1 holds NaN"):
        load_weights(newest)
    assert run(folder.path, config, 1200, resume=True).metrics["steps"] >= 1200
    assert (
        "policy.w1 has values that are impossible: going on from an older one\ngoing on from 804 steps"
        in capsys.readouterr().err
    )

    newest = folder.checkpoints()[0]
    arrays, about = load(newest)
    arrays["learner.exp_avg_sq"][:] = -1.0  # the next update takes its root
    save(newest, arrays, about)
    before = {path: path.read_bytes() for path in folder.checkpoints()}
    with pytest.raises(DivergedError, match="nothing of it is saved"):
        run(folder.path, config, 4000, resume=True)
    assert {path: path.read_bytes() for path in folder.checkpoints()} == before
    assert "NaN" not in folder.metrics.read_text()


@fault("--resume before the first checkpoint", times=100)
def test_a_run_without_a_checkpoint_begins_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small("fast", log_interval=200)
    killed, whole = RunFolder(tmp_path / "killed"), RunFolder(tmp_path / "whole")
    killed.create(config, {})
    killed.log(line(200))  # it was killed after this
    run(killed.path, config, 600, resume=True)
    assert "the run begins again" in capsys.readouterr().err
    run(whole.path, config, 600)
    assert [line["steps"] for line in read_metrics(killed.metrics)] == [204, 402, 600]
    for name, array in whole.newest()[0].items():
        np.testing.assert_array_equal(killed.newest()[0][name], array, err_msg=name)


def test_metrics_are_the_contracts(tmp_path: Path) -> None:
    result = run(tmp_path / "run", small("karpathy", log_interval=1200), 6200)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1] == result.metrics and result.reason == "steps"
    assert [line["steps"] for line in lines] == [1200, 2400, 3600, 4800, 6000, 6204 - 6204 % 6]
    assert {"wall_s", "steps", "steps_per_s", "games", "score", "point_rate"} <= lines[0].keys()
    assert lines[0]["score"] is None and lines[-1]["score"] < -15
    assert all(a["wall_s"] < b["wall_s"] for a, b in zip(lines, lines[1:], strict=False))
    assert all(0 <= line["point_rate"] <= 1 for line in lines)


def test_a_run_stops_when_its_time_is_up_or_its_target_is_reached(tmp_path: Path) -> None:
    config = small("fast", log_interval=100)
    folder = RunFolder(tmp_path / "minutes")
    folder.create(config, versions())
    result = train(config, folder, PlainProgress(""), workers=1, limits=Limits(steps=10**6, minutes=0.001))
    assert result.reason == "minutes" and result.metrics["steps"] < 10**4
    assert read_toml(folder.path / "config.toml")[1] == versions()
    # Of windows the running reward counts: with a target of −21, the end of the hundredth is enough.
    config = small("ppg", target_score=-21, window_seconds=0.01)
    folder = RunFolder(tmp_path / "target")
    folder.create(config, {})
    result = train(config, folder, PlainProgress(""), workers=1, limits=Limits(steps=10**6))
    assert result.reason == "target"
    assert len(read_metrics(folder.metrics)) == 100 and len(folder.checkpoints()) == 1
