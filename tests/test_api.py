"""fastpong from Python: real runs, real subprocesses."""

import math
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpong
from fastpong.errors import UsageError
from fastpong.runs.checkpoint import load as load_checkpoint
from fastpong.runs.folder import RunFolder
from tests.support.commands import here

TINY: dict[str, Any] = {
    "preset": "karpathy", "envs": 2, "workers": 1, "hidden_units": 8, "batch_games": 1, "seed": 5,
    "eval_games": 0,
}  # fmt: skip


def last_arrays(run: fastpong.Run) -> Any:
    return load_checkpoint(RunFolder(run.path).checkpoints()[0])[0]


def test_what_the_package_has() -> None:
    assert set(fastpong.__all__) <= set(dir(fastpong))
    for name in fastpong.__all__:
        assert getattr(fastpong, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        fastpong.trian  # noqa: B018
    assert fastpong.presets()["karpathy"]["hidden_units"] == 200
    gamma = fastpong.settings()["gamma"]
    assert (gamma.default, gamma.allowed, gamma.group) == (0.995, "0 … 1", "learner")


def test_to_import_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, fastpong; dir(fastpong); print([m for m in ('numba', 'numpy', 'gymnasium') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_run_tells_its_callback_everything_and_goes_on_exactly(tmp_path: Path) -> None:
    events: list[fastpong.Event] = []
    options = {**TINY, "log_interval": 500, "progress": "none"}
    whole = fastpong.train(run=tmp_path / "whole", steps=6000, callback=events.append, **options)
    assert (whole.reason, whole.path) == ("steps", tmp_path / "whole")
    kinds = {event.kind for event in events}
    assert kinds == {"metrics", "update", "game", "checkpoint"}
    assert [event.data for event in events if event.kind == "metrics"] == whole.metrics
    assert whole.last == whole.metrics[-1]
    assert whole.last["games"] == sum(event.kind == "game" for event in events)
    assert all(-21 <= event.data["score"] <= 21 for event in events if event.kind == "game")

    def stop(event: fastpong.Event) -> None:
        if event.kind == "game":
            event.stop()

    half = fastpong.train(run=tmp_path / "half", steps=6000, callback=stop, **options)
    assert half.reason == "callback" and half.last["steps"] < 6000
    assert half.resume(steps=6000, progress="none").reason == "steps"
    ref, comp = last_arrays(whole), last_arrays(half)
    assert all(np.array_equal(ref[name], comp[name], equal_nan=True) for name in ref)
    assert isinstance(half.best, fastpong.Agent)
    assert half.best.config.hidden_units == 8


def test_an_error_in_a_callback_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    def fail(event: fastpong.Event) -> None:
        if event.kind == "update":
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        fastpong.train(run=tmp_path / "run", steps=50_000, callback=fail, progress="none", **TINY)
    assert any(entry.name == "fail" for entry in caught.traceback)
    assert len(RunFolder(tmp_path / "run").checkpoints()) == 1


def test_in_another_thread(tmp_path: Path) -> None:
    runs: list[fastpong.Run] = []

    def work() -> None:
        runs.append(fastpong.train(run=tmp_path / "run", steps=400, progress="none", **TINY))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)
    assert runs[0].last["steps"] == 400


SCRIPT = """
import fastpong
run = fastpong.train("karpathy", envs=2, steps=200, progress="none", eval_games=0)
print(run.reason, fastpong.evaluate(run.best, games=1, workers=1).games)
"""


@pytest.mark.parametrize("how", ["script.py", "-"])
def test_a_script_needs_no_guard(how: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, how], cwd=tmp_path, input=SCRIPT * (how == "-"), capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("steps 1\n", "")


def test_an_evaluation_is_that_of_the_command(tmp_path: Path) -> None:
    run = fastpong.train(run=tmp_path / "run", steps=200, progress="none", **TINY)
    result = fastpong.evaluate(run.path, games=3, seed=4, workers=1)
    assert len(result.scores) == len(result.lengths) == 3
    assert sum(result.lengths) == result.steps
    assert result.mean == np.mean(result.scores)
    done = here("eval", str(run.path), "--games", "3", "--seed", "4", "--json", cwd=tmp_path)
    assert f'"mean": {result.mean}' in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"preset": "fats"}, "did you mean 'fast'"), ({"gama": 1}, "did you mean 'gamma'"), ({"envs": 0}, "1 … 65536"),
        ({"progress": "loud"}, "live, lines, none"), ({"workers": 0}, "1 or more"), ({"resume": True}, "no run in"),
        ({"engine": "stella"}, "the engine is one of"), ({"workers": 1.5}, "workers must be an integer, 1 or more"),
        ({"workers": "2"}, "an integer"), ({"callback": 3}, "callback is a"), ({"callback": [print]}, "callback is a"),
        *(({"steps": steps}, "steps must be an integer, 1 or more") for steps in (0, -5, 2.5, "100", math.nan, True)),
        *(({"minutes": m}, "minutes must be a number, 0.001 or more") for m in (0, -1, "1", math.nan, math.inf)),
        *(({"run": run}, "run is a path") for run in ("", 3, b"run", "a\0b")), ({"preset": []}, "there is no preset"),
    ],
)  # fmt: skip
def test_wrong_options_begin_nothing(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        fastpong.train(**{"run": tmp_path / "run", **options})
    assert not (tmp_path / "run").exists()


def test_wrong_options_of_an_evaluation() -> None:
    for games in (0, 2.0, "2", None):
        with pytest.raises(UsageError, match="games must be an integer, 1 or more"):
            fastpong.evaluate(games=games)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="seed must be an integer, 0 or more"):
        fastpong.evaluate(seed=-1)
    with pytest.raises(UsageError, match="workers must be an integer"):
        fastpong.evaluate(workers=0)
    with pytest.raises(UsageError, match="agent is a path, not ''"):
        fastpong.evaluate("")
    with pytest.raises(UsageError, match="the engine is one of"):
        fastpong.evaluate(engine="stella")
