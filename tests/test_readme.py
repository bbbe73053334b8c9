"""What the documents promise is run here."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Commands are run as they stand in the README, but for what makes them long.
SHORTER = {"--minutes 10": "--minutes 0.05", "--envs 64": "--envs 4", "--games 100": "--games 2"}
EXTRA = {"bench": "--rounds 1 --seconds 0.2", "play": "--steps 5", "train": "--set eval_games=1"}


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("fastpong ")]


def test_the_readmes_commands_work_in_their_order(tmp_path: Path) -> None:
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
                file.write('{"steps": 10, "score": -20.0}\n')
        arguments = [command, *rest, *EXTRA.get(command, "").split()]
        done = subprocess.run(
            [sys.executable, "-m", "fastpong", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert (tmp_path / "game.gif").exists() and (tmp_path / "curve.png").exists()


def test_the_first_command_is_the_main_job() -> None:
    first = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    assert "fastpong train --envs 64" in first


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("*/*.md")), ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_settings_page_is_up_to_date() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "make_settings.py"))["text"]()
    assert (ROOT / "docs" / "settings.md").read_text() == text
