import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fastpong.commands.plot import AXES, names_of, plot
from fastpong.config import make_config
from fastpong.errors import UsageError
from fastpong.training.run_folder import RunFolder
from tests.support.runs import line


def write_run(path: Path, scores: list[float | None]) -> Path:
    lines = [json.dumps(line(1000 * i, wall_s=60 * i, score=score)) for i, score in enumerate(scores, 1)]
    RunFolder(path).create(make_config("fast"), {})
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return path


def test_two_runs_in_one_picture(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", [None, -21, -20, -10]), write_run(tmp_path / "b", [-21, -20, 5])]
    plot(runs, tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as image:
        assert image.size == (1200, 675)
        colours = {tuple(c) for c in np.asarray(image.convert("RGB")).reshape(-1, 3)}
    assert (31, 119, 180) in colours and (255, 127, 14) in colours  # a line each


@pytest.mark.parametrize("x", AXES)
def test_many_runs_have_their_legend_beside_the_picture(tmp_path: Path, x: str) -> None:
    runs = [write_run(tmp_path / f"run-{number}", [-21, number]) for number in range(30)]
    plot(runs, tmp_path / "curve.png", x)
    with Image.open(tmp_path / "curve.png") as image:
        picture = np.asarray(image.convert("L"))
    framed = np.flatnonzero((picture < 128).mean(axis=0) > 0.7)  # columns of the frame's left and right side
    assert len(framed) >= 2 and framed.max() < 0.85 * picture.shape[1] and (picture[:, framed.max() + 20 :] < 128).any()


def test_runs_of_one_file(tmp_path: Path) -> None:
    """What the README's picture is drawn from, and files that are something else."""
    plot([Path(__file__).parents[2] / "bench" / "runs" / "console-seeds.json"], tmp_path / "curve.svg", "minutes")
    assert all(f"<!-- seed {seed} -->" in (tmp_path / "curve.svg").read_text() for seed in (31, 35, 48))
    other = tmp_path / "other.json"
    for text, message in (
        ("{", "is not JSON"),
        ("[1]", "is not a metrics"),
        ('{"arms": {"a": 1}}', "is not a metrics"),
    ):
        other.write_text(text)
        with pytest.raises(UsageError, match=message):
            plot([other], tmp_path / "x.png")


def test_a_run_without_a_curve_is_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, short = write_run(tmp_path / "good", [-21, 3]), write_run(tmp_path / "short", [None])
    old = write_run(tmp_path / "old", [-21, -20])
    (old / "config.toml").write_text('envs = 64\n[about]\nfastpong = "0.1.0"\n')
    (tmp_path / "README.md").write_text("# A page\n\nText.\n")
    plot([good, short, old, tmp_path / "README.md", tmp_path / "x" / ("y" * 256)], tmp_path / "curve.svg")
    drawn = (tmp_path / "curve.svg").read_text()
    assert "<!-- good -->" in drawn and "<!-- old -->" in drawn and "<!-- short -->" not in drawn
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3 and all(line.endswith(": left out") for line in told)
    assert "short/metrics.jsonl has no finished game yet" in told[0] and "README.md is not a metrics" in told[1]


def test_each_run_has_its_name_in_the_legend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["_base", "a$b$c", "lr_$x_$y^", "é", "exp1/seed0", "exp2/seed0", "0.5"]
    runs = [write_run(tmp_path / name, [-21, 3]) for name in names]
    plot(runs, tmp_path / "curve.svg")
    drawn = (tmp_path / "curve.svg").read_text()
    assert all(f"<!-- {name} -->" in drawn for name in names)
    monkeypatch.chdir(runs[0])
    assert names_of([Path(), runs[1] / "metrics.jsonl", Path("../runs.jsonl")]) == ["_base", "a$b$c", "runs"]
    assert names_of([Path("a/b/s0"), Path("c/b/s0"), Path("c/b/s1"), Path("c/b/s1")]) == [
        "a/b/s0",
        "c/b/s0",
        "s1",
        "s1",
    ]


def test_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        plot([tmp_path], tmp_path / "x.png")
    with pytest.raises(UsageError, match="no finished game"):
        plot([write_run(tmp_path / "a", [None])], tmp_path / "x.png")
    with pytest.raises(UsageError, match="--x is one of steps, frames, minutes"):
        plot([tmp_path / "a"], tmp_path / "x.png", "games")
    other = tmp_path / "other.jsonl"
    for text in ('{"step": 3}\n', "[1]\n"):
        other.write_text(text)
        with pytest.raises(UsageError, match="is not a metrics.jsonl of fastpong"):
            plot([other], tmp_path / "x.png")
    empty = {"columns": ["steps", "score"], "arms": {"a": {"seeds": {"1": [[1, 2.0]], "2": [[1, None]]}}}}
    (tmp_path / "some.json").write_text(json.dumps(empty))
    with pytest.raises(UsageError, match="other.*some.json has no finished game"):
        plot([other, tmp_path / "some.json"], tmp_path / "x.png")
    with pytest.raises(UsageError, match="cannot write"):
        plot([write_run(tmp_path / "b", [1.0])], tmp_path / "x.what")
