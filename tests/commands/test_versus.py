import base64
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fastpong.agent import Agent
from fastpong.cli import app
from fastpong.commands.versus import page, run
from fastpong.config import make_config
from fastpong.console import cartridge
from fastpong.errors import FastpongError, UsageError
from fastpong.policy import make_policy
from tests.support.commands import fastpong
from tests.support.v8 import PAGE


def an_agent(preset: str = "fast", name: str = "an agent") -> Agent:
    config = make_config(preset, {"hidden_units": 64})
    return Agent(config, make_policy(config).weights.arrays, name)


def write(agent: Agent, out: Path | None) -> None:
    run(agent, out, 1.0, False)


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)


def test_a_page_in_the_temporary_folder_is_shown_by_the_browser(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > shown\n')
    browser.chmod(0o700)
    environment = os.environ | {"BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}
    done = fastpong("play", "--versus", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    (written,) = tmp_path.glob("fastpong-*/versus.html")
    said = f"written to {written}\nit contains the cartridge of your ale-py: for you, not to publish\n"
    assert done.stdout == said
    assert (tmp_path / "shown").read_text() == f"{written.as_uri()}\n"
    text = written.read_text()
    assert base64.b64encode(cartridge.read().tobytes()).decode() in text
    assert "You against the shipped agent" in text


def test_the_page_needs_nothing_else(tmp_path: Path, no_browser: None, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "Page.HTML"
    write(an_agent(name="</h1><script>alert(1)</script>\x1b[2J"), out)
    assert capsys.readouterr().out.startswith(f"written to {out}\n")
    text = out.read_text()
    assert "&lt;script&gt;alert(1)" in text and "<script>alert" not in text and "\x1b" not in text
    assert not [part for part in ("http:", "https:", "src=", "import ", "__", str(tmp_path)) if part in text]
    facts = json.loads(text.partition('type="application/json">')[2].partition("</script>")[0])
    assert facts["network"] == {"frames": 3, "history": 3, "actions": 3, "units": 64}
    assert facts["rules"] == {"frameSkip": 4, "sticky": 0.25, "sample": False}


def test_what_is_in_the_package_has_nothing_of_the_cartridge() -> None:
    """Neither its bytes, nor these in base64 or as numbers."""
    rom = cartridge.read().tobytes()
    parts = [rom[at : at + 12] for at in range(0, len(rom), 12) if len(set(rom[at : at + 12])) > 1]
    for path in PAGE.iterdir():
        data = b" ".join(path.read_bytes().split())
        for part in parts:
            assert part not in data and base64.b64encode(part) not in data
            assert ", ".join(map(str, part)).encode() not in data


def test_as_json(tmp_path: Path, no_browser: None, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    run(an_agent(), out, 1.0, True)
    assert json.loads(capsys.readouterr().out) == {"out": str(out)}


def test_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="preset fast, and mine is of karpathy"):
        page(an_agent("karpathy", "mine"))
    with pytest.raises(UsageError, match=".html, not '.gif'"):
        write(an_agent(), tmp_path / "x.gif")
    for more, words in (
        (["--terminal"], "leave out --terminal and --steps"),
        (["--steps", "3"], "leave out --terminal and --steps"),
        (["--follow"], "leave out --versus and --out"),
    ):
        error = CliRunner().invoke(app, ["play", "--versus", *more]).exception
        assert isinstance(error, UsageError) and words in str(error)
    with pytest.raises(FastpongError, match="cannot write .*no/x.html: No such file"):
        write(an_agent(), tmp_path / "no" / "x.html")
