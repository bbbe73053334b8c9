import json
import re
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bench.ablation_tables import reached
from fastpong.commands.histories import names_of, read_groups
from fastpong.commands.plot import AXES, run, table
from fastpong.config import make_config
from fastpong.errors import UsageError
from fastpong.runs.folder import RunFolder
from tests.support.runs import line

STORED = Path(__file__).parents[2] / "bench" / "runs"


def write_run(path: Path, scores: list[float | None], **changes: Any) -> Path:
    """Write a run with a line, of a hundred games, for each score: each thousand steps, and each minute."""
    lines = [json.dumps(line(1000 * i, wall_s=60 * i, games=100, score=s)) for i, s in enumerate(scores, 1)]
    RunFolder(path).create(make_config("fast", changes), {})
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return path


def draw(runs: list[Path], out: Path, by: str | None = None, x: str = "steps", to: str | None = None) -> list[str]:
    """Draw runs as SVG, and return the texts in it."""
    run(runs, by, x, to, out)
    return re.findall("<!-- (.*?) -->", out.read_text())


def test_two_runs_in_one_picture(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", [None, -21, -20, -10]), write_run(tmp_path / "b", [-21, -20, 5])]
    run(runs, None, "steps", None, tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as image:
        assert image.size == (1200, 675)
        colours = {tuple(c) for c in np.asarray(image.convert("RGB")).reshape(-1, 3)}
    assert (0x23, 0x69, 0xC9) in colours and (0xD9, 0x73, 0x0D) in colours  # a line each


def test_a_run_that_began_anew_has_no_score_for_a_while(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", [-21, None, -19, 3])
    assert {"a", "to 0"} <= set(draw([path], tmp_path / "curve.svg", to="0"))
    lines = [json.loads(text) for text in (path / "metrics.jsonl").read_text().splitlines()]
    assert reached(lines, "steps", 0) == 4000


def test_what_the_readmes_picture_is_drawn_from(tmp_path: Path) -> None:
    texts = draw([STORED / "preset-fast.json"], tmp_path / "curve.svg", x="minutes", to="0,10,17")
    assert texts.count("preset-fast, 8 runs") == 1 and texts.count("minutes") == 2
    assert {"to 0", "to 10", "to 17", "3 of 8 not by 2.40 min"} <= set(texts)


def test_runs_are_grouped_by_settings_or_by_their_folder(tmp_path: Path) -> None:
    for seed in range(5):
        write_run(tmp_path / "low" / f"s{seed}", [-21, seed], gamma=0.9, seed=seed)
        write_run(tmp_path / "high" / f"s{seed}", [-21, seed, 17], gamma=0.99, seed=seed)  # of another length
    runs = [*(tmp_path / "low").iterdir(), *(tmp_path / "high").iterdir()]
    assert {"gamma 0.9, 5 runs", "gamma 0.99, 5 runs"} <= set(draw(runs, tmp_path / "a.svg", "gamma"))
    texts = draw([tmp_path / "low", tmp_path / "high"], tmp_path / "b.svg", to="17")
    assert [texts.count(name) for name in ("low, 5 runs", "high, 5 runs", "5 of 5 not by 0.00 M")] == [1, 1, 1]
    assert "gamma 0.9, seed 3" in draw(runs, tmp_path / "c.svg", "gamma,seed")
    alone = draw(runs, tmp_path / "d.svg")
    assert all(alone.count(name) == 1 for name in ("low/s0", "high/s4")) and "low, 5 runs" not in alone


def test_bands_are_drawn_from_five_runs_on(tmp_path: Path) -> None:
    for seed in range(5):
        write_run(tmp_path / "five" / f"s{seed}", [-21, seed, seed])
    (few := tmp_path / "four").mkdir()
    for seed in range(4):
        (few / f"s{seed}").symlink_to(tmp_path / "five" / f"s{seed}")
    for folder, bands in ((tmp_path / "five", 1), (few, 0)):
        draw([folder], tmp_path / "x.svg")
        assert (tmp_path / "x.svg").read_text().count('id="FillBetweenPolyCollection') == bands


def test_the_files_of_the_ablation_and_the_arms_of_a_file_are_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = STORED / "ablation-first"
    texts = draw([first / "control.json", first / "clip.json", STORED / "five-seeds.json"], tmp_path / "x.svg")
    assert {"control, 15 runs", "clip, 5 runs", "five-seeds, left, 5 runs"} <= set(texts)
    with pytest.raises(UsageError, match="control.json has no times: take --x steps"):
        draw([first / "control.json"], tmp_path / "x.svg", x="minutes")


def test_without_a_picture_a_terminal_shows_curve_and_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # which it does not need
    monkeypatch.setenv("COLUMNS", "70")
    run([STORED / "preset-fast.json"], None, "minutes", None, None)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 70 and "\x1b" not in "".join(lines)
    curve, told = lines[: lines.index("")], [line.split() for line in lines[lines.index("") + 1 :]]
    assert any(0x2800 < ord(c) < 0x2900 for c in "".join(curve)) and "preset-fast, 8 runs" in "".join(curve)
    assert told[1][:2] == ["preset-fast", "0"] and told[1][2:] == [
        "0.53",
        "0.48",
        "…",
        "0.81",
        "8",
        "of",
        "8",
    ]  # X16: 32 s, see RECORDS
    assert told[3][:5] == ["17", "2.09", "1.61", "or", "later"] and told[3][5:] == "3 of 8 not by 2.40".split()


def test_the_median_is_that_of_the_first_lines_that_reach_a_score() -> None:
    groups, _ = read_groups([STORED / "ablation-restarts" / "control.json"], (), AXES["steps"][0], [0.0, 10.0])
    stored = json.loads((STORED / "ablation-restarts" / "control.json").read_text())["seeds"]
    hits = [next(row[0] for row in one["lines"] if row[1] >= 100 and row[2] >= 0) for one in stored.values()]
    told = float(table(groups, AXES["steps"][1], [0.0], 80)[1].split()[2])
    assert statistics.median(hits) / 1e6 == pytest.approx(told, abs=0.005)


def test_a_run_without_a_curve_is_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, short = write_run(tmp_path / "good", [-21, 3]), write_run(tmp_path / "short", [None])
    old = write_run(tmp_path / "old", [-21, -20])
    (old / "config.toml").write_text('envs = 64\n[about]\nfastpong = "0.1.0"\n')
    (tmp_path / "README.md").write_text("# A page\n\nText.\n")
    runs = [good, short, old, tmp_path / "README.md", tmp_path / "x" / ("y" * 256)]
    texts = draw(runs, tmp_path / "curve.svg")
    assert "good" in texts and "old" in texts and "short" not in texts
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3 and all(line.endswith(": left out") for line in told)
    assert "short/metrics.jsonl has no score yet" in told[0] and "README.md is not a metrics" in told[1]
    assert "old" not in draw(runs, tmp_path / "curve.svg", "gamma")  # nobody knows its settings
    together = tmp_path / "together"
    for one in (good, short):
        shutil.copytree(one, together / one.name)
    assert "together" in draw([together], tmp_path / "curve.svg")  # one run of the folder is left


def test_each_run_has_its_name_and_no_name_is_a_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["_base", "a$b$c", "lr_$x_$y^", "é", "exp1/seed0", "exp2/seed0", "0.5", r"\frac", "<b>"]
    runs = [write_run(tmp_path / name, [-21, 3]) for name in names]
    texts = draw(runs, tmp_path / "curve.svg", to="0")
    assert all(texts.count(name.replace("<", "&lt;").replace(">", "&gt;")) == 1 for name in names)
    monkeypatch.chdir(runs[0])
    assert names_of([Path(), runs[1] / "metrics.jsonl", Path("../runs.jsonl")]) == ["_base", "a$b$c", "runs"]
    assert names_of([Path("a/b/s0"), Path("c/b/s0"), Path("c/b/s1"), Path("c/b/s1")]) == [
        "a/b/s0",
        "c/b/s0",
        "s1",
        "s1",
    ]


def test_wrong_usage(tmp_path: Path) -> None:
    def refuse(message: str, *runs: Path, by: str | None = None, x: str = "steps", to: str | None = None) -> None:
        with pytest.raises(UsageError, match=message):
            run(runs, by, x, to, tmp_path / "x.png")

    good = write_run(tmp_path / "b", [1.0])
    refuse("no score yet", write_run(tmp_path / "a", [None]))
    refuse("cannot read", tmp_path / "nothing")
    refuse("--x is one of steps, frames, minutes, seconds", good, x="games")
    refuse("not 'gama': did you mean gamma", good, by="seed,gama")
    for to in ("", "ten", "0,22", "nan"):
        refuse(f"--to takes scores from -21 to 21 with commas, as 0,10,17, not '{to}'", good, to=to)
    other = tmp_path / "other.jsonl"
    for text in ('{"step": 3}\n', "[1]\n"):
        other.write_text(text)
        refuse("is not a metrics.jsonl of fastpong", other)
    stored = tmp_path / "some.json"
    for text, message in (
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "is not a metrics"),
        ('{"arms": {"a": 1}}', "is not a metrics"),
        ('{"columns": ["steps", "score"], "arms": {"a": {"seeds": {"1": [[1, NaN]]}}}}', "is not a metrics"),
        ('{"seeds": {"1": {"lines": [[1, 2]]}}}', "is not a metrics"),
        ('{"columns": ["steps", "games", "score"], "arms": {"a": {"seeds": {"1": [[1, 0, null]]}}}}', "no score yet"),
    ):
        stored.write_text(text)
        refuse(message, stored)
    refuse("other.*some.json has no score yet", other, stored)
    with pytest.raises(UsageError, match="cannot write"):
        run([good], None, "steps", None, tmp_path / "x.what")
