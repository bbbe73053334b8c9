"""What strangers' files say: it is what a run could have written, or an error; nothing large is made of small files."""

import json
import os
import tracemalloc
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong import files
from fastpong.config import Config, changed, make_config
from fastpong.errors import UsageError
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import CheckpointError, DamagedError, load, save
from fastpong.runs.facts import load_facts, parse_metrics, policy_weights, read_metrics
from fastpong.runs.find import SHIPPED, load_weights
from tests.support.runs import SMALL, facts, line
from tests.support.trainings import run, small


def test_facts_come_back(tmp_path: Path) -> None:
    saved = facts(
        800, wall_s=2.5, score=-19.5, best_score=-19.0, best_steps=400, line=line(800), chosen_from=(400, 800)
    )
    save(tmp_path / "x.npz", {}, saved.about())
    assert load_facts(tmp_path / "x.npz")[1] == saved


IMPOSSIBLE: dict[str, list[Any]] = {
    "config": [None, [1], "settings", {}, {"preset": 3}, {"preset": "fast", "gamma": 7}],
    "steps": [None, -1, 2.5, "x", True, 1 << 70, []],
    "wall_s": [None, "x", float("inf"), float("nan"), -1.0, []],
    "score": ["x", [], 400, float("nan"), 10**400],
    "best_score": ["x", [], 400, float("nan"), 10**400],
    "engine": [5, [], "\x1b[31m", None],
    "best_steps": [-1, "x"],
    "chosen_from": [3, ["x"]],
    "line": [7, {"steps": 5}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in IMPOSSIBLE.items() for value in values])
def test_facts_that_no_run_has_written_are_refused(name: str, value: object, tmp_path: Path) -> None:
    about = json.loads(json.dumps(facts(5).about()))
    save(tmp_path / "x.npz", {}, {**about, name: value})
    with pytest.raises(DamagedError, match="not a checkpoint of this fastpong"):
        load_facts(tmp_path / "x.npz")
    if value is None and name != "engine":
        del about[name]
        save(tmp_path / "x.npz", {}, about)
        with pytest.raises(DamagedError, match="not a checkpoint of this fastpong"):
            load_facts(tmp_path / "x.npz")


def test_a_setting_more_or_less_leaves_the_shipped_agent_as_it_is(tmp_path: Path) -> None:
    arrays, about = load(SHIPPED)
    whole = load_weights(None)
    config = {name: value for name, value in about["config"].items() if name != "logit_growth_entropy"}
    save(tmp_path / "x.npz", arrays, {**about, "config": {**config, "reward_scale": 2.0}})
    found, weights = load_weights(tmp_path / "x.npz")
    assert asdict(found) == {**asdict(whole[0]), "logit_growth_entropy": Config().logit_growth_entropy}
    assert all((weights[name] == array).all() for name, array in whole[1].items())
    newer = {*load_facts(SHIPPED)[1].newer, "logit_growth_entropy"}
    assert {*load_facts(tmp_path / "x.npz")[1].newer} == newer


def test_an_older_run_goes_on_with_the_default_of_a_newer_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small("fast", log_interval=200)
    run(tmp_path / "run", config, 300)
    (newest,) = (tmp_path / "run" / "checkpoints").iterdir()
    arrays, about = load(newest)
    del about["config"]["gae_lambda"]
    save(newest, arrays, about)
    run(tmp_path / "run", config, 600, resume=True)
    assert "older than some settings, which have their defaults: gae_lambda = 0.97" in capsys.readouterr().err
    with pytest.raises(UsageError, match="gae_lambda is 0.5 in"):
        run(tmp_path / "run", changed(config, {"gae_lambda": 0.5}), 900, resume=True)


@pytest.mark.parametrize(
    "changes",
    [{"w1": None}, {"w1": np.zeros((3, 2))}, {"w1": "text"}, {"w2": 1e300}, {"w2": np.nan}, {"w2": "integers"}],
)
def test_weights_that_are_none(changes: dict[str, Any], tmp_path: Path) -> None:
    policy = make_policy(SMALL)
    weights = policy.weights.arrays.items()
    arrays: dict[str, Any] = {f"policy.{name}": array.astype(np.float64) for name, array in weights}
    assert policy_weights(tmp_path, arrays, SMALL)["w1"].dtype == np.float32
    for name, value in changes.items():
        if value is None:
            del arrays[f"policy.{name}"]
        elif isinstance(value, float):
            arrays[f"policy.{name}"].flat[0] = value
        elif isinstance(value, str):
            arrays[f"policy.{name}"] = arrays[f"policy.{name}"].astype("U4" if value == "text" else np.int64)
        else:
            arrays[f"policy.{name}"] = value
    save(tmp_path / "x.npz", arrays, facts(5).about())
    with pytest.raises(DamagedError, match=f"x.npz is damaged: {next(iter(changes))} "):
        load_weights(tmp_path / "x.npz")


def test_a_small_file_makes_no_large_network(tmp_path: Path) -> None:
    config = make_config("fast", {"hidden_units": 65536, "frame_stack": 16})
    save(tmp_path / "x.npz", {"policy.w1": np.zeros(3, np.float32)}, facts(5, config).about())
    tracemalloc.start()
    with pytest.raises(CheckpointError, match="kernel is missing"):
        load_weights(tmp_path / "x.npz")
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


NO_LINES: list[dict[str, Any]] = [
    *({name: "x"} for name in line(5)), *({name: float("nan")} for name in line(5)), {"score": 10**400},
    {"score": {}}, {"steps": 0}, {"steps": True}, {"steps": 1 << 63}, {"updates": None}, {"wall_s": None},
    {"phase": "\x1b[31m"}, {"batch_games": 5}, {"window_reward": 1.0, "running_reward": None},
]  # fmt: skip


@pytest.mark.parametrize("changes", NO_LINES)
def test_a_line_of_metrics_that_no_run_has_written_is_left_out(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (line(1), line(5, **changes), line(9))))
    assert parse_metrics(path) == ([line(1), line(9)], [2])
    for name in changes.keys() & line(5).keys():
        path.write_text(json.dumps({key: value for key, value in line(5).items() if key != name}) + "\n")
        assert parse_metrics(path) == ([], [1])


def test_lines_of_older_and_newer_runs_are_read(tmp_path: Path) -> None:
    path, told = tmp_path / "metrics.jsonl", line(5, running_mean=None, mean_steps={"of": "a newer run"}, score=None)
    path.write_text(json.dumps(told) + "\n")
    assert read_metrics(path) == [told]


@pytest.mark.parametrize("kind", ["fifo", "sparse"])
def test_metrics_without_an_end_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        files.write(path, b"")
        os.truncate(path, 40 << 30)
    with pytest.raises(UsageError, match="cannot read"):
        parse_metrics(path)
