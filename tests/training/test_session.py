import shlex
from pathlib import Path

import pytest

from fastpong.config import make_config
from fastpong.runs.folder import RunFolder
from fastpong.training.loop import Result
from fastpong.training.session import to_go_on, what_next


@pytest.mark.parametrize("name", ["runs/fast-1", "a b", "it's", "$(rm x)", "é;"])
def test_how_to_go_on_is_what_a_shell_reads(name: str) -> None:
    folder = RunFolder(Path(name))
    assert shlex.split(to_go_on(folder, "console")) == ["fastpong", "train", "--run", name, "--resume"]
    assert shlex.split(to_go_on(folder, "ale"))[-2:] == ["--engine", "ale"]
    go_on, see = what_next(make_config("karpathy"), folder, Result("interrupted", {}), "console")
    assert go_on == f"go on:        {to_go_on(folder, 'console')}"
    assert shlex.split(see.removeprefix("see it play:")) == ["fastpong", "play", name, "--terminal"]


def test_a_run_that_has_reached_its_target_does_not_go_on() -> None:
    told = what_next(make_config("fast"), RunFolder(Path("run")), Result("target", {}), "console")
    assert told == ["see it play:  fastpong play run --out game.html"]
