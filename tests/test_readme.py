"""What the pages promise: commands work, links lead somewhere, nothing is too long, and the settings are right."""

import json
import os
import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from bench import records
from fastpong.cli import app
from fastpong.config import settings
from fastpong.runs.metrics import METRICS
from tests.support.runs import line as metrics_line

ROOT = Path(__file__).parent.parent
# Commands are run as they stand in the README, but for what makes them long.
SHORTER = {"--minutes 10": "--minutes 0.05", "--envs 64": "--envs 4", "--games 100": "--games 2"}
EXTRA = {"bench": "--envs 2 --rounds 1 --seconds 0.2", "play": "--steps 5", "train": "--set eval_games=0"}

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/**/*.md"), *ROOT.glob(".ci/*.md")])
LINES = {
    "README.md": 130,
    "docs/one-image.md": 180,
    "docs/console.md": 150,
    "docs/algorithm.md": 240,
    "docs/kernels.md": 240,
    "docs/performance.md": 140,
    "docs/scaling.md": 110,
    "docs/ray.md": 70,
    "docs/python.md": 150,
    "docs/reliability.md": 70,
    "docs/security.md": 40,
    "docs/reference-programs.md": 100,
    "docs/description.md": 30,
    "docs/machines.md": 40,
    "bench/RECORDS.md": 168,
    "CHANGELOG.md": 80,
    "CONTRIBUTING.md": 80,
}
"""How many lines each page may have, as a guard; a page of the log is a screen."""
LINES |= {f"docs/log/{path.name}": 45 for path in ROOT.glob("docs/log/*.md")}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("fastpong ")]


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, with their numbers, that are neither code nor a table."""
    code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.lstrip().startswith("|"):
            yield number, line
    assert not code, f"{page} ends within code"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    heads = [line.lstrip("#").strip().lower() for _, line in prose(page) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}


def test_the_readmes_commands_work_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the program around them, and what it loads, is tested in tests/test_cli.py."""
    monkeypatch.chdir(tmp_path)
    assert [line.split()[1] for line in commands()] == [
        "play",
        "train",
        "train",
        "eval",
        "play",
        "plot",
        "bench",
        "doctor",
    ]
    for line in commands():
        for long, short in SHORTER.items():
            line = line.replace(long, short)
        _, command, *rest = shlex.split(line)
        if command == "plot":  # ten minutes have finished games, three seconds may not
            with (tmp_path / "runs/first/metrics.jsonl").open("a") as file:
                file.write(json.dumps(metrics_line(10)) + "\n")
        arguments = [command, *rest, *EXTRA.get(command, "").split()]
        with mock.patch.dict(os.environ):  # EnvPool, which bench tries, sets a variable of matplotlib
            assert not app(arguments, standalone_mode=False), line
    assert (tmp_path / "game.html").exists() and (tmp_path / "curve.png").exists()


def test_the_first_command_is_the_main_job() -> None:
    first = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    assert "fastpong train --minutes 10" in first


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|mailto:)([^)]+)\)", page.read_text())
    for target in targets:
        path, _, anchor = target.partition("#")
        to = page.parent / path if path else page
        assert to.exists(), target
        assert not anchor or to.suffix != ".md" or anchor in anchors(to), target


def test_what_a_package_index_shows_needs_no_checkout() -> None:
    readme = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"]
    assert not re.findall(r"!\[|\]\((?!https?://)", (ROOT / readme).read_text())
    copied = re.findall(r"^COPY (.*) /src", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {"pyproject.toml", "LICENSE", "fastpong", readme} <= set(" ".join(copied).split())  # else no image is built


@pytest.mark.parametrize("name", LINES)
def test_a_page_is_no_longer_than_its_reader_has_time_for(name: str) -> None:
    assert (ROOT / name).exists()
    assert len((ROOT / name).read_text().splitlines()) <= LINES[name]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_line_of_prose_is_long(page: Path) -> None:
    long = [number for number, line in prose(page) if len(line) > 120]
    assert not long, f"{name_of(page)}, lines {long}"


def test_there_is_no_page_without_a_limit() -> None:
    free = {"docs/settings.md", "bench/research/README.md"}  # one is generated, one stands outside the documentation
    assert {name_of(page) for page in PAGES} - set(LINES) <= free


def test_every_run_file_is_named_by_a_page() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    files = [path for path in (ROOT / "bench/runs").rglob("*.json*")]
    names = {path.stem if path.parent.name == "runs" else path.parent.name for path in files}
    assert names
    unnamed = [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    assert not unnamed


@pytest.mark.parametrize("name", [name for name in LINES if re.match(r"README|docs/(?!log)", name)])
def test_settings_that_a_page_sets_exist(name: str) -> None:
    """Pages of the log and the records name the settings of their time."""
    for setting in re.findall(r"--set[ =]`?(\w+)=", (ROOT / name).read_text()):
        assert setting in settings() or setting == "key", setting


def test_the_settings_page_is_up_to_date() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "make_settings.py"))["text"]()
    assert (ROOT / "docs" / "settings.md").read_text() == text
    for name in [*settings(), *METRICS]:
        assert f"| `{name}` |" in text


def test_the_records_are_up_to_date_and_each_cell_is_short() -> None:
    page = (ROOT / "bench/RECORDS.md").read_text()
    assert page == records.text()  # if not: python -m bench.records
    table = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    assert not [cell for row in table for cell in row if len(cell.strip()) > records.CELL]
    assert {len(row) for row in table} == {len(records.HEAD)}
