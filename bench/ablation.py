"""One change to preset `fast` against the control: five seeds, two side by side, and a row of the table.

    python -m bench.ablation control
    python -m bench.ablation NAME [--late] [--set KEY=VALUE …] [--source DIR]
    python -m bench.ablation table [--recipe NAME]

An early arm begins at step 0 and ends at 1.2 M steps. A late arm (--late) begins at the checkpoint at which the late
phase of the control's run of the same seed was about to begin, and ends at 2.5 M steps, as the control does; so the
two share all that came before. A change of code instead of a setting stands in another checkout, --source. Weights
after 2.5 M steps then play 100 greedy games. Runs are in --out and go on when the same command is given again. Each
arm's numbers are written to ``bench/runs/ablation-RECIPE/NAME.json``, from which `table` prints all arms, with the mean
difference from the control and its standard error. Runs of different recipes are not compared in a table.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import output_of, parser
from fastpong.config import changed
from fastpong.config_sources import parse_assignments
from fastpong.training.checkpoint import load
from fastpong.training.facts import load_facts, read_metrics
from fastpong.training.run_folder import RunFolder

RUNS = Path(__file__).parent / "runs"
EARLY_STEPS, LATE_STEPS = 1_200_000, 2_500_000
EARLY_SPAN, LATE_SPAN = (200_000, 1_200_000), (1_500_000, 2_500_000)
"""Spans of steps over which the share of points won is averaged."""

COLUMNS = ("steps", "games", "score", "point_rate", "entropy", "approx_kl", "learning_rate")
Lines = list[dict[str, Any]]


class Arm:
    """One arm's runs: `run` trains and evaluates a seed, and returns what the table needs of it."""

    def __init__(self, arguments: argparse.Namespace):
        self.name, self.late = arguments.name, arguments.late
        self.out: Path = arguments.out.resolve()
        self.settings: list[str] = arguments.set
        self.source: Path = arguments.source.resolve()
        self.steps = LATE_STEPS if self.late or self.name == "control" else EARLY_STEPS

    def fastpong(self, *arguments: object) -> list[str]:
        """Return a command of the checkout `source`."""
        there = f"--chdir={self.source}"  # Python looks for modules there first, before any PYTHONPATH
        return ["env", there, sys.executable, "-m", "fastpong", *map(str, arguments), "--workers", "1"]

    def folder(self, seed: int, name: str | None = None) -> Path:
        """Return the run folder of a seed of this arm, or of the arm `name`."""
        return self.out / (name or self.name) / f"seed-{seed}"

    def run(self, seed: int) -> dict[str, Any]:
        """Train a seed to the arm's last step, from where it stands, and play greedy games with a late arm."""
        folder = self.folder(seed)
        if self.late and not folder.exists():
            self._branch(seed)
        limits = ["--run", folder, "--steps", self.steps, "--target", 22]
        begin = ["--envs", 64, "--seed", seed, "--set", "eval_games=0", "--set", "checkpoint_interval=100000"]
        changes = [word for setting in self.settings for word in ("--set", setting)]
        begun = RunFolder(folder).checkpoints()
        if not begun:
            shutil.rmtree(folder, ignore_errors=True)
        command = self.fastpong("train", *limits, *(["--resume"] if begun else [*begin, *changes]))
        log = self.out / f"{self.name}-{seed}.log"
        with log.open("a") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
            while process.poll() is None:
                time.sleep(1.0)
                if self.name == "control":
                    self._keep_last_early(seed)
        if process.returncode:
            sys.exit(f"{shlex.join(command)} has failed: see {log}")
        result = {"lines": [[line[key] for key in COLUMNS] for line in read_metrics(RunFolder(folder).metrics)]}
        if self.steps == LATE_STEPS:
            last = RunFolder(folder).checkpoints()[0]
            result["greedy"] = json.loads(output_of(self.fastpong("eval", last, "--games", 100, "--seed", 7, "--json")))
        return result

    def _keep_last_early(self, seed: int) -> None:
        """Keep the newest checkpoint of a control's run if its late phase has not begun: late arms begin there."""
        kept = self.folder(seed, "before-late")
        for path in RunFolder(self.folder(seed)).checkpoints()[:1]:
            if not (kept / path.name).exists() and load(path)[0]["learner.schedule_late_since"] < 0:
                kept.mkdir(parents=True, exist_ok=True)
                for older in kept.iterdir():
                    older.unlink()
                os.link(path, kept / path.name)

    def _branch(self, seed: int) -> None:
        """Begin a run where the late phase of the control was about to begin, with other settings."""
        arrays, facts = load_facts(next(self.folder(seed, "before-late").iterdir()))
        config = changed(RunFolder(self.folder(seed, "control")).config(), parse_assignments(self.settings))
        if not config.critic_replay_batches:
            arrays = {name: array for name, array in arrays.items() if not name.startswith("learner.critic")}
        folder = RunFolder(self.folder(seed))
        folder.create(config, {"command": f"a branch at {facts.steps} steps of seed {facts.config.seed}"})
        folder.save_checkpoint(arrays, replace(facts, config=config))


def area(lines: Lines, span: tuple[int, int]) -> float:
    """Return the mean share of points won over a span of steps, or nan if the lines do not span it."""
    told = [line for line in lines if line["point_rate"] is not None]
    if not told or told[0]["steps"] > span[0] or told[-1]["steps"] < span[1]:
        return float("nan")
    at = np.linspace(*span, 501)
    return float(np.interp(at, [line["steps"] for line in told], [line["point_rate"] for line in told]).mean())


def reached(lines: Lines, score: float) -> float:
    """Return the M steps after which 100 games had a mean score of `score`; infinity if they never had."""
    return next((line["steps"] / 1e6 for line in lines if line["games"] >= 100 and line["score"] >= score), np.inf)


def measures(run: dict[str, Any]) -> list[float]:
    """Return the columns of the table for one seed."""
    lines = [dict(zip(COLUMNS, line, strict=True)) for line in run["lines"]]
    greedy = run["greedy"]["mean"] if "greedy" in run else float("nan")
    to_10, to_17 = reached(lines, 10), reached(lines, 17)
    return [area(lines, EARLY_SPAN), to_10, to_17, area(lines, LATE_SPAN), greedy]


def difference(arm: dict[str, float], control: dict[str, float], paired: bool) -> str:
    """Return the mean difference of one measure from the control, with its standard error."""
    if paired:
        gaps = [value - control[seed] for seed, value in arm.items() if seed in control]
        if len(gaps) < 2:
            return "–"
        mean, error = statistics.mean(gaps), statistics.stdev(gaps) / len(gaps) ** 0.5
    else:
        ours, theirs = list(arm.values()), list(control.values())
        if min(len(ours), len(theirs)) < 2:
            return "–"
        mean = statistics.mean(ours) - statistics.mean(theirs)
        error = (statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs)) ** 0.5
    return f"{mean:+.3f} ± {error:.3f}"


def known(arm: dict[str, Any], column: int) -> dict[str, float]:
    """Return one measure by seed, of the seeds that have it."""
    values = {seed: measures(run)[column] for seed, run in arm["seeds"].items()}
    return {seed: value for seed, value in values.items() if not np.isnan(value)}


def table(arms: dict[str, Any]) -> str:
    """Return the Markdown table of all arms; `arms` are the files by name, ``control`` among them."""
    control = arms["control"]
    head = ["arm", "seeds", "share of points 0.2–1.2 M", "to 10, M", "to 17, M", "share 1.5–2.5 M", "greedy, 2.5 M"]
    lines = [head, ["---"] * len(head)]
    for name, arm in ({"control": control} | arms).items():
        late, cells = arm["late"], [name, str(len(arm["seeds"]))]
        for column in range(5):
            values = known(arm, column)
            if not values:
                cells.append("")
            elif column in (1, 2):
                cells.append(f"{statistics.median(values.values()):.2f} ({max(values.values()):.2f})")
            else:
                gap = difference(values, known(control, column), late)
                cells.append(f"{statistics.mean(values.values()):.3f}" + ("" if arm is control else f" ({gap})"))
        lines.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def main() -> None:
    """Run an arm, or print the table."""
    options = parser(__doc__)
    options.add_argument("name")
    options.add_argument("--recipe", default="first")
    options.add_argument("--late", action="store_true")
    options.add_argument("--seeds", type=int, nargs="+", default=[20, 21, 22, 23, 24])
    options.add_argument("--source", type=Path, default=Path(__file__).parents[1])
    options.add_argument("--out", type=Path, default=Path("runs/ablation"))
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = options.parse_args()
    files = RUNS / f"ablation-{arguments.recipe}"
    if arguments.name != "table":
        arguments.out.mkdir(parents=True, exist_ok=True)
        arm = Arm(arguments)
        commit = output_of(["git", "-C", str(arm.source), "describe", "--always", "--dirty"]).strip()
        with ThreadPoolExecutor(2) as pool:
            seeds = dict(zip(map(str, arguments.seeds), pool.map(arm.run, arguments.seeds), strict=True))
        facts = {"settings": arguments.set, "late": arguments.late, "commit": commit, "seeds": seeds}
        files.mkdir(exist_ok=True)
        (files / f"{arm.name}.json").write_text(json.dumps(facts) + "\n")
    print(table({path.stem: json.loads(path.read_text()) for path in sorted(files.glob("*.json"))}))


if __name__ == "__main__":
    main()
