import dataclasses
import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong import __version__
from fastpong.config import Config, changed, make_config
from fastpong.config_sources import read_toml
from fastpong.errors import UsageError
from fastpong.policy import make_policy
from fastpong.training.checkpoint import CheckpointError, load, save
from fastpong.training.run_folder import (
    CANDIDATES,
    CHECKPOINTS,
    RunFolder,
    load_weights,
    new_run,
    read_metrics,
    resumed_run,
)
from tests.support.candidates import add_candidate
from tests.support.faults import disk, fault


def made(path: Path, config: Config | None = None, about: dict[str, object] | None = None) -> RunFolder:
    run = RunFolder(path)
    run.create(config or Config(), about or {})
    return run


def test_the_newest_good_checkpoint_is_found_and_old_ones_go(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with pytest.raises(CheckpointError, match="no checkpoint to continue from"):
        run.newest()
    for steps in (1, 2, 30):
        run.save_checkpoint(steps, {"steps": np.array(steps)}, {})
    assert CHECKPOINTS == 2
    assert [path.name for path in run.checkpoints()] == ["step_000000000030.npz", "step_000000000002.npz"]
    run.checkpoints()[0].write_bytes(b"broken")
    arrays, _, complaints = run.newest()
    assert arrays["steps"] == 2
    assert len(complaints) == 1 and "step_000000000030" in complaints[0]


def test_the_newest_and_the_best_few_candidates_are_kept(tmp_path: Path) -> None:
    run, config = made(tmp_path / "run"), Config()
    for steps, score in enumerate((None, 3.0, -5.0, 4.0, 2.0, -20.0), 1):
        add_candidate(config, run, steps, score, action=0)
    assert CANDIDATES == 3
    assert [int(load(path)[1]["steps"]) for path in run.candidates()] == [2, 4, 5, 6]
    run.candidates()[1].write_bytes(b"half a file")
    add_candidate(config, run, 7, None, action=0)
    assert [int(load(path)[1]["steps"]) for path in run.candidates()] == [2, 5, 6, 7]


@fault("a full disk", times=100)
def test_candidates_make_room_for_a_checkpoint(tmp_path: Path) -> None:
    run, config = made(tmp_path / "run"), Config()
    for steps in (1, 2):
        add_candidate(config, run, steps, None, action=0)
    with disk(1, errno.ENOSPC):
        run.save_checkpoint(3, {"steps": np.array(3)}, {})
    assert run.newest()[0]["steps"] == 3 and not run.candidates()
    with disk(1, errno.ENOSPC), pytest.raises(CheckpointError, match="No space left"):
        run.save_checkpoint(4, {"steps": np.array(4)}, {})


def test_nothing_of_others_is_deleted(tmp_path: Path) -> None:
    """Files that a killed process left half written go, by their names; others' files of the same ending stay."""
    run, victim = made(tmp_path / "run"), tmp_path / "victim"
    victim.mkdir()
    ours = [run.path / ".config.toml.12.tmp", run.path / "checkpoints" / ".step_000000000640.npz.7.tmp"]
    theirs = [run.path / "notes.tmp", run.path / "docs" / "thesis.tmp", run.path / "docs" / ".best.npz.1.tmp"]
    theirs += [run.path / ".notes.12.tmp", victim / ".step_000000000640.npz.7.tmp"]
    (run.path / "docs").mkdir()
    (run.path / "candidates").symlink_to(victim)
    for path in ours + theirs:
        path.touch()
    with run.lock():
        assert not any(path.exists() for path in ours)
        assert all(path.exists() for path in theirs)


@pytest.mark.parametrize("other", ["notes.tmp", "docs/thesis.tmp", "checkpoints.bak"])
def test_no_run_is_made_among_other_files(tmp_path: Path, other: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / other).touch()
    with pytest.raises(UsageError, match="holds other files, as '[a-z.]+': choose a new --run"):
        RunFolder(tmp_path).create(Config(), {})
    assert (tmp_path / other).exists() and not (tmp_path / "config.toml").exists()


def test_a_run_is_made_in_an_empty_folder_and_where_one_was_killed_as_it_was_made(tmp_path: Path) -> None:
    RunFolder(tmp_path / "new").create(Config(), {})
    (tmp_path / "empty").mkdir()
    RunFolder(tmp_path / "empty").create(Config(), {})
    (tmp_path / "killed" / "checkpoints").mkdir(parents=True)
    (tmp_path / "killed" / ".config.toml.12.tmp").touch()
    RunFolder(tmp_path / "killed").create(Config(), {})


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    with pytest.raises(UsageError, match="there is no run"):
        run.config()
    run.create(Config(num_envs=3), {})
    assert RunFolder(tmp_path / "run").config() == Config(num_envs=3)
    with pytest.raises(UsageError, match="holds a run already"):
        run.create(Config(), {})
    with run.lock(), pytest.raises(UsageError, match="another fastpong"), RunFolder(tmp_path / "run").lock():
        pass


def test_a_run_goes_on_whatever_its_command_line_was(tmp_path: Path) -> None:
    """Control characters, and bytes that are no UTF-8, which Python passes on as lone surrogates."""
    command = "train --run a\x1b[31m\r\x7fb " + os.fsdecode(b"\xff\xfe")
    run = made(tmp_path / "run", make_config("ray"), {"command": command})
    assert run.config() == make_config("ray")
    assert read_toml(run.path / "config.toml")[1]["command"] == "train --run a\x1b[31m\r\x7fb ??"


def test_a_run_of_another_version_names_the_one_that_reads_it(tmp_path: Path) -> None:
    run = made(tmp_path / "run", about={"fastpong": "0.1.3"})
    with pytest.raises(UsageError) as error:
        run.config()
    path = run.path / "config.toml"
    assert str(error.value) == f"{path} is of fastpong 0.1.3, which reads it; this is fastpong {__version__}"


@fault("kill -9", times=100)
def test_metrics_after_a_crash(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    for steps in (10, 20, 30):
        run.log({"steps": steps})
    with run.metrics.open("a") as file:
        file.write('{"steps": 4')
    assert [line["steps"] for line in read_metrics(run.metrics)] == [10, 20, 30]
    run.cut_metrics(20)
    run.log({"steps": 25})
    assert [line["steps"] for line in read_metrics(run.metrics)] == [10, 20, 25]


@fault("damaged metrics", times=100)
@pytest.mark.parametrize("damage", [b"\0\0\0", b"", b"5", b"{}", b'{"steps": "x"}', b"\xff\xfe", b"[" * 100_000])
def test_damaged_metrics_are_told_and_kept_beside_the_mended_ones(damage: bytes, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    run.metrics.write_bytes(b'{"steps": 10}\n' + damage + b'\n{"steps": 20}\n')
    with pytest.raises(UsageError, match="line 2"):
        read_metrics(run.metrics)
    before = run.metrics.read_bytes()
    last, complaints = run.cut_metrics(20)
    assert last == {"steps": 20} and "metrics.bad.jsonl" in complaints[0]
    assert read_metrics(run.metrics) == [{"steps": 10}, {"steps": 20}]
    assert run.metrics.with_name("metrics.bad.jsonl").read_bytes() == before


@fault("an edited config.toml", times=100)
def test_an_edited_config_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    saved = dataclasses.asdict(run.config())
    run.check_settings(changed(run.config(), {"target_score": 3.0}), saved)
    with pytest.raises(UsageError, match="gamma is 0.5 in .*config.toml, but 0.985 in the run"):
        run.check_settings(changed(run.config(), {"gamma": 0.5}), saved)


def test_weights_come_from_a_file_or_from_the_best_of_a_run(tmp_path: Path) -> None:
    config = make_config("karpathy", {"hidden_units": 8})
    run = made(tmp_path / "run", config)

    def saved(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
        policy = make_policy(config)
        policy.weights.flat[:] = value
        arrays = {f"policy.{name}": array for name, array in policy.weights.arrays.items()}
        return {**arrays, "step": np.array(3)}, {"config": dataclasses.asdict(config)}

    for steps in (1, 2):
        run.save_checkpoint(steps, *saved(steps))
    for path, value in ((run.checkpoints()[1], 1.0), (run.path, 2.0)):  # of the run: the newest
        found, weights = load_weights(path)
        assert found == config and set(weights) == {"w1", "w2"}
        assert all((array == value).all() for array in weights.values())
    save(run.best, *saved(3.0))
    assert all((array == 3.0).all() for array in load_weights(run.path)[1].values())


def test_weights_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load_weights(tmp_path / "x.npz")
    with pytest.raises(CheckpointError, match=r"there is no checkpoint .*best\.npz"):
        load_weights(made(tmp_path / "run").path)
    for about in ({}, {"config": "settings"}, {"config": {"preset": 3}}):
        save(tmp_path / "x.npz", {"a": np.arange(3)}, about)
        with pytest.raises(CheckpointError, match="not a checkpoint of this fastpong"):
            load_weights(tmp_path / "x.npz")


def test_a_new_run_gets_the_first_free_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        config, run = new_run(None, {"preset": "ray", "seed": number})
        assert config == make_config("ray", {"seed": number})
        assert run.path == Path("runs") / f"ray-{number}" and not run.exists()
        run.create(config, {})
    assert new_run(None, {})[1].path == Path("runs/fast-1")
    assert new_run(tmp_path / "x", {})[1].path == tmp_path / "x"


def test_a_resumed_run_may_change_only_what_its_results_do_not_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no run in runs"):
        resumed_run(None, {})
    config = make_config("fast", {"num_envs": 5})
    for number, name in enumerate(("last", "first")):
        made(tmp_path / "runs" / name, changed(config, {"seed": number}))
        os.utime(tmp_path / "runs" / name / "config.toml", (1000 - number, 1000 - number))
    found, run = resumed_run(None, {"target_score": 3, "num_envs": 5})  # the same number again is no change
    assert run.path == Path("runs/last") and found == changed(config, {"target_score": 3})
    assert resumed_run(tmp_path / "runs/first", {})[0].seed == 1
    with pytest.raises(UsageError, match="num_envs is 5 in runs/last and cannot change to 8"):
        resumed_run(None, {"num_envs": 8})
