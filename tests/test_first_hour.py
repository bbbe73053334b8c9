"""The first hour of a new user, command by command, as a terminal of any size, a pipe or a plain console shows it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import SMALL, fastpong, here, one_line, settings
from tests.support.terminal import Terminal, plain

COLUMNS = (40, 60, 80, 120)
OFTEN = [*SMALL, *settings(log_interval=200)]
PRESETS = {
    "fast": ([*settings(batch_size=256, minibatch_size=256)], "points won"),
    "karpathy": ([*settings(hidden_units=8), "--batch-games", "1"], "resetting env. episode reward total was -"),
    "ray": ([*settings(hidden_units=8), "--batch-games", "1"], "Batch 1 computed 1 rollouts in "),
    "ppg": ([*settings(hidden_units=8), "--window-seconds", "0.02"], " @ 1.0e-03 lr, "),
}
"""What makes a run of each preset short, and a part of the lines that it alone has."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run, ``run``, which has told nothing but its result."""
    folder = tmp_path_factory.mktemp("hour")
    done = here("train", *OFTEN, "--steps", "5200", "--progress", "none", "--run", "run", cwd=folder)
    assert done.returncode == 0 and not done.stderr and "5,200 steps" in one_line(done.stdout)
    return folder


@pytest.mark.parametrize("columns", (COLUMNS[0], COLUMNS[-1]))
def test_help_fits_the_terminal(columns: int) -> None:
    bare = Terminal(columns=columns)
    bare.read()
    overview = plain(bare.seen)
    pages = [overview] + [Terminal(name, "-h", columns=columns).run() for name in ("train", "eval")]
    assert bare.process.wait(60) == 2 and "Commands:" in overview
    assert all(len(line) <= max(columns, 50) for page in pages for line in page)  # click folds no narrower
    assert [line for line in pages[1] if line in ("Settings:", "Run:", "Options:")] == ["Settings:", "Run:", "Options:"]
    assert "[1 … 65_536; default: 128]" in " ".join(" ".join(pages[1]).split())


def test_training_in_a_terminal_that_changes_its_size(tmp_path: Path) -> None:
    one = Terminal("train", *OFTEN, "--run", "run", "--steps", "400000", columns=COLUMNS[0], cwd=tmp_path, NO_COLOR="1")
    one.read(b"points")
    for columns in (COLUMNS[0], COLUMNS[-1]):  # those between: tests/show/test_panel.py
        one.resize(columns, 24)
        if columns > COLUMNS[0]:
            one.read(b"\x1b[2J")  # a clean screen
        one.seen = b""
        while one.seen.count("╯".encode()) < 2:
            one.read("╯".encode())
        panel = plain(one.seen)[-20:]
        text = " ".join(part for line in panel for part in line.strip("│ ").split())
        assert b"[32m" not in one.seen  # green
        assert all(len(line) <= columns for line in panel) and "points won" in text and "steps" in text
    one.process.send_signal(signal.SIGINT)
    one.read()
    assert one.process.wait(60) == 130
    stopped, go_on, see = plain(one.seen)[-3:]
    assert stopped.startswith("stopped, interrupted: ")
    assert go_on == "go on:        fastpong train --run run --resume"
    assert see == "see it play:  fastpong play run --terminal"


def test_a_terminal_that_cannot_redraw_gets_lines(folder: Path) -> None:
    dumb = Terminal("train", *OFTEN, "--steps", "800", "--run", "dumb", cwd=folder, TERM="dumb", FORCE_COLOR="1")
    lines = dumb.run()
    assert b"\x1b" not in dumb.seen and len([line for line in lines if "points won" in line]) == 4


@pytest.mark.parametrize("preset", PRESETS)
def test_into_a_pipe_goes_what_the_reference_program_printed(preset: str, tmp_path: Path) -> None:
    options, words = PRESETS[preset]
    often = settings(log_interval=400, eval_games=0)
    run = ["train", "--preset", preset, "--envs", "4", "--run", "run", *options, *often]
    done = here(*run, "--steps", "5200", cwd=tmp_path, FORCE_COLOR="1")
    assert done.returncode == 0 and words in done.stderr and "\x1b" not in done.stderr
    assert one_line(done.stdout).startswith("stopped, the limit of steps is reached: ")


def test_eval_says_who_plays_and_counts_games_and_time_where_somebody_looks(folder: Path) -> None:
    lines = Terminal("eval", "run", "--games", "2", "--sample", cwd=folder).run()
    assert lines[0] == lines[-1] == "run, sampled actions, sticky 0.25, seed 0"
    assert lines[1] == "0 of 2 games 0:00:00" and any(line.startswith("2 of 2 games 0:0") for line in lines)
    assert lines[-2].startswith("mean score -") and "confidence" not in lines[-2] and "over 2 games" in lines[-2]
    dumb = Terminal("eval", "run", "--games", "2", "--sample", cwd=folder, TERM="dumb").run()
    assert dumb == [lines[0], *lines[-2:]]


def test_no_result_is_lost_for_want_of_an_alphabet_or_a_stdout(folder: Path) -> None:
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = fastpong("settings", "gamma", cwd=folder, env=latin, encoding="latin-1")
    assert done.returncode == 0 and "gamma = 0.995  (0 ? 1)" in done.stdout
    command = f"{sys.executable} -m fastpong play run --steps 20 --terminal >&-"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.startswith("agent 0, opponent 0, after 20 steps\n")


def test_a_curve_is_drawn_and_nonsense_is_told_in_one_line(folder: Path) -> None:
    done = here("plot", "run", "--x", "minutes", "--out", "curve.svg", cwd=folder)
    assert done.returncode == 0 and done.stdout == "written to curve.svg\n" and not done.stderr
    (folder / "wrong.jsonl").write_text('{"a": 1}\n')
    for command in (["plot", "wrong.jsonl"], ["eval", "wrong.jsonl"], ["train", "--set", "epoch=3"]):
        done = here(*command, cwd=folder)
        assert done.returncode in (1, 2) and one_line(done.stderr).startswith("fastpong: ") and not done.stdout
