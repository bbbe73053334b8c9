import shlex
from pathlib import Path

import pytest

from fastpong.config import make_config
from fastpong.training.loop import Result
from fastpong.training.session import to_go_on, what_next


@pytest.mark.parametrize("name", ["runs/fast-1", "a b", "it's", "$(rm x)", "é;"])
def test_how_to_go_on_is_what_a_shell_reads(name: str) -> None:
    path = Path(name)
    assert shlex.split(to_go_on(path, "console")) == ["fastpong", "train", "--run", name, "--resume"]
    assert shlex.split(to_go_on(path, "ale"))[-2:] == ["--engine", "ale"]
    go_on, see = what_next(Result(make_config("karpathy"), path, "interrupted", {}), "console")
    assert go_on == f"go on:        {to_go_on(path, 'console')}"
    assert shlex.split(see.removeprefix("see it play:")) == ["fastpong", "play", name, "--terminal"]


def test_a_run_that_has_reached_its_target_does_not_go_on() -> None:
    told = what_next(Result(make_config("fast"), Path("run"), "target", {}), "console")
    assert told == ["see it play:  fastpong play run --out game.html"]
