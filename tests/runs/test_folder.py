import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong import __version__, files
from fastpong.config import Config, changed, make_config, new_config
from fastpong.config_sources import read_toml
from fastpong.errors import UsageError
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import CheckpointError, load, save
from fastpong.runs.facts import load_facts, read_metrics
from fastpong.runs.find import create_run, load_weights, resumed_run
from fastpong.runs.folder import CANDIDATES, CHECKPOINTS, RunFolder
from tests.support.candidates import add_candidate
from tests.support.faults import fault, full_disk
from tests.support.runs import SMALL, facts, line


def made(path: Path, config: Config | None = None, about: dict[str, object] | None = None) -> RunFolder:
    run = RunFolder(path)
    run.create(config or Config(), about or {})
    return run


def saved(run: RunFolder, *steps: int) -> None:
    """Save checkpoints after so many steps."""
    for at in steps:
        run.save_checkpoint({"step": np.array(at), "policy.w": np.zeros(3)}, facts(at))


def steps_of(run: RunFolder) -> list[int]:
    """Return the steps of the checkpoints, newest first."""
    return [int(path.stem.removeprefix("step_")) for path in run.checkpoints()]


def test_the_newest_good_checkpoint_is_found_and_old_ones_go(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with pytest.raises(CheckpointError, match="no checkpoint to continue from"):
        run.newest()
    saved(run, 1, 2, 30)
    assert CHECKPOINTS == 2
    assert steps_of(run) == [30, 2]
    newest = run.checkpoints()[0]
    newest.write_bytes(b"broken")
    arrays, facts, complaints = run.newest()
    assert arrays["step"] == facts.steps == 2
    assert list(complaints) == [newest] and "step_000000000030" in str(complaints[newest])


def test_a_damaged_checkpoint_takes_no_slot(tmp_path: Path) -> None:
    """Two faults in a row: the newest is damaged; then, after another session, the newest once more."""
    run = made(tmp_path / "run")
    saved(run, 4, 6)
    run.checkpoints()[0].write_bytes(b"broken")
    next_session = RunFolder(run.path)
    next_session.go_on_from(next_session.newest())
    saved(next_session, 8)
    assert steps_of(run) == [8, 4]
    assert run.path.joinpath("checkpoints", "step_000000000006.npz.damaged").read_bytes() == b"broken"
    run.checkpoints()[0].write_bytes(b"broken")
    assert RunFolder(run.path).newest().facts.steps == 4


def test_a_checkpoint_that_was_put_back_and_those_after_it_stay(tmp_path: Path) -> None:
    run, others = made(tmp_path / "run"), ("step_x.npz", "step_000000000009.npz.bak")
    saved(run, 4, 6, 8)
    for path in run.checkpoints():
        path.write_bytes(b"broken")
    saved(RunFolder(run.path), 3)
    for name in others:
        (run.path / "checkpoints" / name).touch()
    session = RunFolder(run.path)
    session.go_on_from(session.newest())
    saved(session, 5)
    assert steps_of(run) == [5, 3]
    saved(session, 7)
    assert steps_of(run) == [7, 5] and all((run.path / "checkpoints" / name).exists() for name in others)


def test_what_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    """It stays under its name, and while two good ones are not newer it is not deleted either."""
    run, session = made(tmp_path / "run"), RunFolder(tmp_path / "run")
    saved(run, 4, 8)
    of_another_version = run.checkpoints()[0]
    of_another_version.unlink()
    np.savez(of_another_version, about=np.array('{"format": 9, "fastpong": "0.9.1"}'))
    session.go_on_from(session.newest())
    saved(session, 9)
    assert steps_of(run) == [9, 8, 4]
    saved(session, 10)
    assert steps_of(run) == [10, 9]


def test_the_newest_and_the_best_few_candidates_are_kept(tmp_path: Path) -> None:
    run, config = made(tmp_path / "run"), Config()
    for steps, score in enumerate((None, 3.0, -5.0, 4.0, 2.0, -20.0), 1):
        add_candidate(config, run, steps, score, action=0)
    assert CANDIDATES == 3
    assert [int(load(path)[1]["steps"]) for path in run.candidates()] == [2, 4, 5, 6]
    run.candidates()[1].write_bytes(b"half a file")
    add_candidate(config, run, 7, None, action=0)
    assert [int(load(path)[1]["steps"]) for path in run.candidates()] == [2, 5, 6, 7]
    save(run.candidates()[0], {}, {"steps": [1], "score": "best"})
    add_candidate(config, run, 8, None, action=0)
    assert [int(load(path)[1]["steps"]) for path in run.candidates()] == [5, 6, 7, 8]


def filled(path: Path, *checkpoints: int) -> RunFolder:
    """Return a run with such checkpoints of 1 MB, and three candidates of 0.2 MB."""
    run = made(path)
    for steps in checkpoints:
        run.save_checkpoint({"step": np.full(125_000, steps)}, facts(steps))
    for steps in (1, 2, 3):
        run.add_candidate({"policy.w": np.zeros(25_000)}, facts(steps, score=-steps))
    return run


@fault("a full disk", times=100)
def test_on_a_full_disk_the_older_checkpoint_goes_first(tmp_path: Path) -> None:
    run = filled(tmp_path / "run", 10, 20)
    with full_disk(run.path, left=100_000):
        run.save_checkpoint({"step": np.full(125_000, 30)}, facts(30))
    assert steps_of(run) == [30, 20]
    assert len(run.candidates()) == 3 and run.newest().facts.steps == 30


@fault("a full disk", times=100)
def test_on_a_full_disk_candidates_go_only_if_that_helps(tmp_path: Path) -> None:
    run, larger = filled(tmp_path / "run", 10, 20), {"step": np.zeros(200_000)}  # 1.6 MB
    with full_disk(run.path, left=100_000), pytest.raises(CheckpointError, match="No space left"):
        run.save_checkpoint({"step": np.zeros(400_000)}, facts(30))
    assert steps_of(run) == [20, 10] and len(run.candidates()) == 3
    with full_disk(run.path, left=300_000):
        run.save_checkpoint(larger, facts(30))
    assert steps_of(run) == [30, 20] and [path.name[-5] for path in run.candidates()] == ["1"], "the best is left"


@fault("a full disk", times=100)
def test_on_a_full_disk_the_history_goes_before_candidates(tmp_path: Path) -> None:
    run = filled(tmp_path / "run", 10, 20)
    for steps in (0, 20_000, 50_000):
        run.history.add({"w": np.zeros(200_000)}, facts(steps))  # 0.4 MB
    with full_disk(run.path, left=100_000):
        run.save_checkpoint({"step": np.zeros(230_000)}, facts(30))  # 1.8 MB: as much as the oldest and two more
    assert steps_of(run) == [30, 20] and len(run.history.paths()) == 1 and len(run.candidates()) == 3


@fault("a full disk", times=100)
def test_a_quota_is_a_full_disk_too(tmp_path: Path) -> None:
    run = filled(tmp_path / "run", 10, 20)
    with full_disk(run.path, left=0, quota=True):
        run.save_checkpoint({"step": np.zeros(125_000)}, facts(30))
    assert steps_of(run) == [30, 20] and len(run.candidates()) >= 2


def test_the_newest_checkpoint_is_never_deleted_for_room(tmp_path: Path) -> None:
    run = filled(tmp_path / "run", 10)
    with full_disk(run.path, left=0), pytest.raises(CheckpointError, match="No space left"):
        run.save_checkpoint({"step": np.zeros(125_000)}, facts(20))
    assert steps_of(run) == [10] and len(run.candidates()) == 3


def test_nothing_of_others_is_deleted(tmp_path: Path) -> None:
    """Files that a killed process left half written go, by their names; others' files of the same ending stay."""
    run = made(tmp_path / "run")
    ours = [run.path / ".config.toml.12.tmp", run.path / "checkpoints" / ".step_000000000640.npz.7.tmp"]
    ours += [run.path / "history" / ".step_000000020480.npz.7.tmp"]
    theirs = [run.path / "notes.tmp", run.path / "docs" / "thesis.tmp", run.path / "docs" / ".best.npz.1.tmp"]
    theirs += [run.path / ".notes.12.tmp"]
    (run.path / "docs").mkdir()
    (run.path / "history").mkdir()
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


def test_what_cannot_be_looked_at_is_not_called_missing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long"):
        RunFolder(tmp_path / ("x" * 256)).exists()


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
        run.log(line(steps))
    with run.metrics.open("a") as file:
        file.write('{"steps": 4')
    assert read_metrics(run.metrics) == [line(10), line(20), line(30)]
    run.cut_metrics(20, line(20))
    run.log(line(25))
    assert read_metrics(run.metrics) == [line(10), line(20), line(25)]
    assert run.cut_metrics(27, line(27)) == (line(27), []), "killed after the checkpoint, before its line"
    assert read_metrics(run.metrics) == [line(10), line(20), line(25), line(27)]


@fault("damaged metrics", times=100)
@pytest.mark.parametrize("damage", [b"\0\0\0", b"", b"5", b"{}", b'{"steps": "x"}', b"\xff\xfe", b"[" * 100_000])
def test_damaged_metrics_are_told_and_kept_beside_the_mended_ones(damage: bytes, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    run.log(line(10))
    files.append(run.metrics, damage + b"\n")
    run.log(line(20))
    with pytest.raises(UsageError, match="line 2"):
        read_metrics(run.metrics)
    before = run.metrics.read_bytes()
    last, complaints = run.cut_metrics(20)
    assert last == line(20) and "metrics.bad.jsonl" in complaints[0]
    assert read_metrics(run.metrics) == [line(10), line(20)]
    assert run.metrics.with_name("metrics.bad.jsonl").read_bytes() == before


@fault("an edited config.toml", times=100)
def test_an_edited_config_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    saved = run.config()
    run.check_settings(changed(saved, {"target_score": 3.0}), saved)
    with pytest.raises(UsageError, match="gamma is 0.5 in .*config.toml, but 0.995 in the run"):
        run.check_settings(changed(saved, {"gamma": 0.5}), saved)


def test_a_run_outlives_a_setting(tmp_path: Path) -> None:
    run, notes = made(tmp_path / "run", Config(num_envs=3)), list[str]()
    path = run.path / "config.toml"
    path.write_text(path.read_text().replace("[about]", "[practice]\nrestarts = 3\n[about]") + "\n")
    assert run.config(notes.append) == Config(num_envs=3)
    assert notes == [f"{path} has 'restarts', which is no setting of fastpong {__version__}: it is left out"]
    path.write_text("".join(text for text in path.read_text().splitlines(True) if not text.startswith("gamma =")))
    assert run.config() == Config(num_envs=3), "a setting that is newer has its default"


@pytest.mark.parametrize("name", ["candidates", "checkpoints", "history"])
def test_no_part_of_a_run_is_a_link(name: str, tmp_path: Path) -> None:
    victim, run = filled(tmp_path / "victim", 10), RunFolder(tmp_path / "run")
    run.create(SMALL, {})
    if (run.path / name).exists():
        (run.path / name).rmdir()
    (run.path / name).symlink_to(victim.path / name)
    with pytest.raises(UsageError, match=f"{name} is a link"), run.lock():
        pass
    assert steps_of(victim) == [10] and len(victim.candidates()) == 3


@pytest.mark.parametrize("at", ["best.npz", "candidate", "both"])
def test_what_a_kill_after_a_checkpoint_left_undone_is_done(at: str, tmp_path: Path) -> None:
    run, weights = made(tmp_path / "run"), {"policy.w": np.arange(3.0)}
    run.save_best({"policy.w": np.zeros(3)}, facts(5, score=-20.0))
    run.save_checkpoint({**weights, "step": np.array(3)}, facts(10, score=-19.0, best_score=-19.0, best_steps=10))
    if at == "best.npz":
        run.add_candidate(weights, facts(10, score=-19.0))
    elif at == "candidate":
        run.save_best(weights, facts(10, score=-19.0))
    session = RunFolder(run.path)
    session.go_on_from(session.newest())
    assert load_facts(run.best)[1].steps == 10
    assert [load_facts(path)[1].steps for path in run.candidates()] == [10]
    for path in (run.best, *run.candidates()):
        np.testing.assert_array_equal(load_facts(path)[0]["policy.w"], weights["policy.w"])


def test_the_best_of_an_ended_run_stays_when_it_goes_on(tmp_path: Path) -> None:
    run, weights = made(tmp_path / "run"), {"policy.w": np.arange(3.0)}
    run.save_checkpoint(weights, facts(10, best_steps=10))
    run.add_candidate(weights, facts(10))
    run.save_best({"policy.w": np.zeros(3)}, facts(5, chosen_from=(5, 10)))
    session = RunFolder(run.path)
    session.go_on_from(session.newest())
    assert load_facts(run.best)[1].steps == 5


def test_weights_come_from_a_file_or_from_the_best_of_a_run(tmp_path: Path) -> None:
    config = make_config("karpathy", {"hidden_units": 8})
    run = made(tmp_path / "run", config)

    def weights(value: float) -> dict[str, Any]:
        policy = make_policy(config)
        policy.weights.flat[:] = value
        return {f"policy.{name}": array for name, array in policy.weights.arrays.items()}

    for steps in (1, 2):
        run.save_checkpoint({**weights(steps), "step": np.array(3)}, facts(steps, config))
    for path, value in ((run.checkpoints()[1], 1.0), (run.path, 2.0)):  # of the run: the newest
        found, loaded = load_weights(path)
        assert found == config and set(loaded) == {"w1", "w2"}
        assert all((array == value).all() for array in loaded.values())
    run.save_best(weights(3.0), facts(3, config))
    assert all((array == 3.0).all() for array in load_weights(run.path)[1].values())


def test_a_new_run_gets_the_first_free_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = new_config({"preset": "ray", "seed": 1})
    assert config == make_config("ray", {"seed": 1})
    assert create_run(None, config, {}).path == Path("runs/ray-1")
    with ThreadPoolExecutor(8) as pool:  # several begin at once
        runs = list(pool.map(lambda _: create_run(None, config, {}), range(8)))
    assert {run.path for run in runs} == {Path("runs") / f"ray-{number}" for number in range(2, 10)}
    assert create_run(None, Config(), {}).path == Path("runs/fast-1")
    assert create_run(tmp_path / "x", Config(), {}).path == tmp_path / "x"


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
