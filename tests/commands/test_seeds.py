"""``train --seeds``: a run for each seed, whatever becomes of the others; and what is no list of seeds."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from fastpong.commands.seeds import MOST, parse
from fastpong.commands.seeds import run as train_seeds
from fastpong.errors import UsageError
from fastpong.limits import Limits
from fastpong.runs.folder import RunFolder
from fastpong.training.session import Request
from tests.support.commands import SMALL, settings, wait_for
from tests.support.runs import SMALL as CONFIG
from tests.support.runs import line


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("31-35", [31, 32, 33, 34, 35]), ("31,33,40-42", [31, 33, 40, 41, 42]), ("7", [7]), ("5, 4-5,0", [5, 4, 0])],
)
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse(text) == seeds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "numbers and ranges"), ("1,", "numbers and ranges"), ("5-4", "not '5-4'"), ("a-b", "not 'a-b'"),
        ("-1", "not '-1'"), ("1-2-3", "not '1-2-3'"), ("1.5", "not '1.5'"), ("9" * 30, "numbers and ranges"),
        ("9" * 19, "seed must be"), ("0-9223372036854775807", f"at most {MOST:,}"), ("0-600,700-1400", "at most"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_seeds(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse(text)


def test_a_run_fails_one_is_interrupted_and_the_command_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r-seed1").mkdir()
    (tmp_path / "r-seed1" / "mine").touch()
    first, second, third = (RunFolder(tmp_path / f"r-seed{seed}") for seed in (1, 2, 3))

    def train(*more: str, resume: bool = False, steps: int, as_json: bool = False) -> int:
        arguments = ["train", *SMALL, *settings(log_interval=400), "--steps", str(steps), *more]
        request = Request({"preset": "karpathy"}, Path("r"), resume, limits=Limits(steps), command=arguments)
        return train_seeds(more[-1].partition("=")[2], request, None, None, as_json)

    def interrupt() -> None:
        wait_for(lambda: second.metrics.exists() and second.metrics.stat().st_size)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    assert train("--seeds=1-3", steps=10**9) == 130
    watcher.join()
    out, err = capsys.readouterr()
    head, *rows = out.splitlines()
    assert head.split("  ")[-1] == "how it ended" and [row.split()[0] for row in rows] == ["1", "2", "3"]
    assert rows[0].endswith("failed: r-seed1 holds other files, as 'mine': choose a new --run")
    assert rows[1].endswith("  interrupted") and rows[2].endswith("  not started")
    assert "go on: the same command with --resume · compare them: fastpong plot r-seed*" in err
    steps = second.newest().facts.steps
    assert f"{steps:,}" in rows[1] and not first.exists() and not third.exists()

    with pytest.raises(UsageError, match="no run in r-seed8, and none of another seed: leave out --resume"):
        train("--resume", "--seeds=8,9", resume=True, steps=400)
    with pytest.raises(UsageError, match="r-seed2 holds a run already: go on with --resume"):
        train("--seeds=2-3", steps=400)
    assert train("--resume", "--seeds=2-3", resume=True, steps=steps + 400, as_json=True) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(one["seed"], one["run"], one["reason"]) for one in runs] == [
        (2, "r-seed2", "steps"), (3, "r-seed3", "steps"),
    ]  # fmt: skip
    for run, one in zip((second, third), runs, strict=True):
        assert run.newest().facts.steps == one["steps"] == steps + 400 and run.config().seed == one["seed"]


def test_minutes_are_those_of_all_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunFolder(tmp_path / "r-seed5")
    run.create(CONFIG, {})
    run.log(line(60_000, wall_s=60.0))
    command = ["train", "--seeds", "5", "--resume"]
    request = Request({}, tmp_path / "r", resume=True, limits=Limits(minutes=1.0), command=command)
    assert train_seeds("5", request, "none", None, False) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split() == ["5", "60", "60,000", "-20.00", "10.0", "%", "minutes"] and not err
