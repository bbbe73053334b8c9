"""The examples in docstrings and in docs/python.md, run as they stand or shorter."""

import ast
import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import gymnasium
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import fastpong
import fastpong.gym

ROOT = Path(__file__).parent.parent
SHORTER = {"envs=64": "envs=4", "minutes=10": 'steps=200, progress="none", eval_games=0', "games=20": "games=1"} | {
    "minutes=5": 'steps=400, progress="none"', "while not over:": "for _ in range(20):", '"envs": 64': '"envs": 4',
}  # fmt: skip
MODULES = ("agent", "api", "gym.vector", "gym.single", "show.events", "training.evaluate")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_public_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    globs = {"fastpong": fastpong, "gymnasium": gymnasium}
    failed, tried = doctest.testmod(import_module(f"fastpong.{name}"), extraglobs=globs)
    assert tried and not failed


def test_every_public_name_has_an_example() -> None:
    for name in fastpong.__all__:
        thing = getattr(fastpong, name)
        assert issubclass(thing, Exception) if name.endswith("Error") else ">>>" in thing.__doc__, name


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)


def shorter(text: str) -> str:
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


@pytest.mark.parametrize("number", range(len(blocks())))
def test_the_examples_of_the_page(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: that a script needs no guard is tested in tests/test_api.py and tests/gym/test_gym.py."""
    monkeypatch.chdir(tmp_path)
    exec(shorter(blocks()[number]), {"__name__": "example"})


def test_the_numpy_example() -> None:
    command = [str(ROOT / "examples/karpathy.py"), "--minutes", "0.01", "--envs", "2", "--steps", "150"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert first == "2 games, a line after each 300 steps" and " 300 steps" in second


@pytest.mark.parametrize("env", ["fastpong", "ale"])
@pytest.mark.parametrize("name", ["ppo_torch", "sb3_ppo"])
def test_the_examples_that_need_pytorch(name: str, env: str) -> None:
    """Only where PyTorch is installed: see .ci/torch."""
    pytest.importorskip("stable_baselines3")
    script = [str(ROOT / f"examples/{name}.py"), "--env", env, "--envs", "2", "--minutes", "0.15"]
    done = subprocess.run([sys.executable, *script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "256 steps" in done.stdout


def images(notebook: nbformat.NotebookNode) -> int:
    """Return how many pictures an executed notebook shows."""
    return sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ()))


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINUTES", "0.02")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # EnvPool, which `bench` tries, sets it
    notebook = nbformat.read(ROOT / "docs/pong.ipynb", 4)
    for cell in notebook.cells:
        cell.source = shorter(cell.source)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    panel = next(cell for cell in notebook.cells if "fastpong.train(envs" in cell.source).outputs[0].data["text/html"]
    assert "see it play:  fastpong play runs/fast-1" in panel and "<polyline" in panel and "0:00 left of 0:01" in panel
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("preset fast" in output.get("data", {}).get("text/html", "") for output in shown)  # the growing curve
    assert images(notebook) == 3
    assert (tmp_path / "rally.gif").stat().st_size > 10_000


def answers() -> list[list[str]]:
    """Return the answers to each exercise of the lecture: the right one first, then wrong ones."""
    parts = (ROOT / "tests/data/lecture.md").read_text().split("\n## ")[1:]
    return [re.findall(r"```python\n(.*?)```", part, re.DOTALL) for part in parts]


def test_the_lecture_and_its_exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs without answers, says so, and each check passes the right answer and fails the wrong ones."""
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(ROOT / "docs/lecture.ipynb", 4)
    exercises = [place for place, cell in enumerate(notebook.cells) if "exercise" in cell.metadata.get("tags", ())]
    assert len(exercises) == len(answers()) == 5
    begin = next(cell for cell in notebook.cells if "STEPS = 32, 4000" in cell.source)
    begin.source = begin.source.replace("4000", "2000")
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT / "docs")}})

    def told(cell: nbformat.NotebookNode, place: int) -> str:
        outputs = client.execute_cell(cell, place).get("outputs", ())
        return "".join(output.get("text", "") for output in outputs)

    with client.setup_kernel():
        for place, cell in enumerate(notebook.cells):
            text = told(cell, place)
            if place - 1 not in exercises:
                continue
            number = exercises.index(place - 1)
            assert f"exercise {number + 1}: no answer yet" in text
            right, *wrong = answers()[number]
            for answer in wrong:
                told(nbformat.v4.new_code_cell(answer), place - 1)
                with pytest.raises(CellExecutionError, match="AssertionError"):
                    told(cell, place)
            told(nbformat.v4.new_code_cell(right), place - 1)
            assert f"exercise {number + 1}: right" in told(cell, place)
    assert images(notebook) == 12


def test_the_lecture_uses_public_names_only() -> None:
    cells = nbformat.read(ROOT / "docs/lecture.ipynb", 4).cells
    tree = ast.parse("\n".join(cell.source for cell in cells if cell.cell_type == "code"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"fastpong", "gymnasium", "json", "matplotlib.pyplot", "numpy", "pathlib"}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes if ast.unparse(node.value) == "fastpong"}
    assert used <= set(fastpong.__all__)
