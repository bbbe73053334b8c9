"""What is printed: one printable line, whatever is in it; and which extra a message asks for."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fastpong.agent import load
from fastpong.commands import export
from fastpong.errors import FastpongError, UsageError, explain, install, tell
from fastpong.parallel.ray import Cluster, Placing
from fastpong.show import film, window
from fastpong.show.tensorboard import TensorBoard
from fastpong.training.remote import RayActor
from tests.commands.test_plot import draw, write_run

ROOT = Path(__file__).parent.parent
HOSTILE = "\x1b]0;owned\x07\x7f\x9b\u202e\u2066\u2028\r\nfastpong: all is well"


def is_one_printable_line(text: str) -> bool:
    return text.endswith("\n") and text[:-1].isprintable()


def test_what_is_printed_is_one_printable_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell("é … · 雪", HOSTILE)
    readable, escaped = capsys.readouterr().err.split("\n")[:-1]
    assert readable == "é … · 雪"
    assert escaped == r"\x1b]0;owned\x07\x7f\x9b\u202e\u2066\u2028\r\nfastpong: all is well"
    tell(HOSTILE, result=True)
    assert is_one_printable_line(capsys.readouterr().out)
    for error in (UsageError(HOSTILE), FastpongError(HOSTILE), KeyError(HOSTILE), OSError(2, "none", HOSTILE)):
        explain(error)
        assert is_one_printable_line(capsys.readouterr().err)


def film_to(name: str) -> Callable[[Path], object]:
    return lambda folder: film.write(iter(np.zeros((1, 210, 160, 3), np.uint8)), folder / name, 0.1, str)


def cluster(folder: Path) -> None:
    with Cluster(RayActor, Placing(), 2):
        pass


@pytest.mark.parametrize(
    ("library", "extra", "command"),
    [
        ("tensorboardX", "log", lambda folder: TensorBoard()),
        ("ray", "ray", cluster),
        ("matplotlib.figure", "plot", lambda folder: draw([write_run(folder / "a", [1, 2])], folder / "x.png")),
        ("onnx", "export", lambda folder: export.run(load(), "onnx", folder / "x.onnx")),
        ("PIL", "play", film_to("x.gif")),
        ("imageio_ffmpeg", "video", film_to("x.mp4")),
        ("pygame", "play", lambda folder: window.show(iter(()), str)),
    ],
)
def test_a_missing_library_is_the_same_error_everywhere(
    library: str, extra: str, command: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with pytest.raises(FastpongError, match=re.escape(f": pip install -e '.[{extra}]' in a checkout")) as caught:
        command(tmp_path)
    assert not isinstance(caught.value, UsageError) and f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()


def test_nobody_is_sent_to_a_package_index_that_does_not_have_it() -> None:
    assert install("play") == "pip install -e '.[play]' in a checkout of fastpong"
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.ipynb")]
    for path in [*pages, *ROOT.glob("fastpong/**/*.py"), *ROOT.glob("bench/*.py")]:
        assert not re.search(r"pip install .?fastpong", path.read_text()), path
