"""An experiment: arms that each change preset `fast`, over many seeds, judged by steps and by seconds.

    python -m bench.ablation NAME [--out DIR] [--at-once N]    run what is missing, and print the tables
    python -m bench.ablation NAME --table                      print them

``bench/runs/ablation-NAME/arms.toml`` says what is run; the results stand beside it, a file for each arm. An arm has
`set`, settings; `source`, a checkout with other code; `steps`, if its runs are longer or shorter; `seeds_from`, which
is added to each seed (a second control says by how much two equal arms differ); `late`, if it begins where the late
phase of the control of that seed was about to begin, and so shares with it what came before:

    seeds = [36, 37, 38]
    steps = 2_500_000
    greedy_seconds = [30, 60]                    # weights of which 100 greedy games are played

    [arms.control]
    [arms.again]
    seeds_from = 100
    [arms.five-epochs]
    set = ["update_epochs=5"]

Each seed is trained by all arms in turns, so that a machine which is slow for a while is so for all of them; a run that
was interrupted begins anew. With `--at-once` several are trained at the same time, with one env subprocess each: then
seconds say little, and steps are the same.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.ablation_tables import tables
from bench.common import output_of, parser
from fastpong.config import changed
from fastpong.config_sources import parse_assignments
from fastpong.runs.checkpoint import load
from fastpong.runs.facts import load_facts, read_metrics
from fastpong.runs.folder import RunFolder

RUNS = Path(__file__).parent / "runs"
COLUMNS = ("steps", "games", "score", "point_rate", "approx_kl", "wall_s")
"""What is kept of each line of metrics, unless the file of an arm says otherwise."""

EVERY = ["--target", 22, "--set", "eval_games=0", "--set", "checkpoint_interval=100000"]
"""Options of all runs: none stops at a score, and weights are at most so many steps old."""


@dataclass(frozen=True)
class Arm:
    """What is run, see above; names are those of the file."""

    name: str
    set: tuple[str, ...] = ()
    source: str = "."
    steps: int | None = None
    seeds_from: int = 0
    late: bool = False

    def fastpong(self, *arguments: object) -> list[str]:
        """Return a command of the checkout `source`."""
        there = f"--chdir={Path(self.source).resolve()}"  # Python looks for modules there first, before any PYTHONPATH
        return ["env", there, sys.executable, "-m", "fastpong", *map(str, arguments)]


class Experiment:
    """The arms, and how far they are."""

    def __init__(self, name: str, out: Path, at_once: int):
        self.files, self.out, self.at_once = RUNS / f"ablation-{name}", (out / name).resolve(), at_once
        about = tomllib.loads((self.files / "arms.toml").read_text())
        self.seeds, self.steps, self.greedy = about["seeds"], about["steps"], about.get("greedy_seconds", [])
        self.arms = [Arm(name, **facts) for name, facts in about["arms"].items()]
        if "control" not in about["arms"]:
            sys.exit(f"{self.files}/arms.toml has no arm named control, which the others are compared with")
        self._lock = threading.Lock()

    def run(self) -> None:
        """Run what is missing, and print the tables after each seed of all arms."""
        pool = ThreadPoolExecutor(self.at_once)
        try:
            for _ in pool.map(self._run_seed, self.seeds):
                print(tables(results(self.files)), flush=True)
        finally:
            pool.shutdown(cancel_futures=True)

    def _run_seed(self, seed: int) -> None:
        for arm in self.arms:
            path = self.files / f"{arm.name}.json"
            if not path.exists() or str(seed) not in json.loads(path.read_text())["seeds"]:
                done = self._train(arm, seed)
                commit = output_of(["git", "-C", arm.source, "describe", "--always", "--dirty"]).strip()
                about: dict[str, Any] = {"settings": arm.set, "late": arm.late, "commit": commit, "columns": COLUMNS}
                with self._lock:
                    facts = json.loads(path.read_text()) if path.exists() else {**about, "seeds": {}}
                    done["lines"] = [[line.get(key) for key in facts["columns"]] for line in done["lines"]]
                    facts["seeds"][str(seed)] = done
                    path.write_text(json.dumps(facts, separators=(",", ":")) + "\n")

    def _train(self, arm: Arm, seed: int) -> dict[str, Any]:
        """Train a seed to the last step, and let its weights play; return what the tables need of it."""
        folder = self._folder(arm, seed)
        shutil.rmtree(folder, ignore_errors=True)
        limits = ["--run", folder, "--steps", arm.steps or self.steps, *EVERY, *(["--workers", 1] * (self.at_once > 1))]
        before = 0.0
        if arm.late:
            before = self._branch(arm, seed)
            command = arm.fastpong("train", *limits, "--resume")
        else:
            changes = [word for setting in arm.set for word in ("--set", setting)]
            command = arm.fastpong("train", *limits, "--seed", seed + arm.seeds_from, *changes)
        log, began, taken = self.out / f"{arm.name}-{seed}.log", time.perf_counter(), dict[int, Path]()
        with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
            while process.poll() is None:
                time.sleep(0.5)
                newest = RunFolder(folder).checkpoints()[:1]
                for seconds in self.greedy if newest else ():
                    if seconds not in taken and time.perf_counter() - began + before >= seconds:
                        taken[seconds] = self._keep(newest[0], f"{arm.name}-{seed}-{seconds}.npz")
                if newest and arm.name == "control" and any(other.late for other in self.arms):
                    if load(newest[0])[0]["learner.schedule_late_since"] < 0:  # late arms begin at the last such one
                        self._keep(newest[0], f"before-late-{seed}.npz")
        if process.returncode:
            sys.exit(f"{shlex.join(command)} has failed: see {log}")
        lines = read_metrics(RunFolder(folder).metrics)
        greedy = {}
        for seconds in self.greedy:
            weights = taken.get(seconds) or RunFolder(folder).checkpoints()[0]
            game = arm.fastpong("eval", weights, "--games", 100, "--seed", 7, "--json")
            greedy[str(seconds)] = json.loads(output_of(game))["mean"]
        return {"lines": lines, "greedy": greedy}

    def _folder(self, arm: Arm, seed: int) -> Path:
        """Return the run folder of a seed."""
        return self.out / arm.name / f"seed-{seed}"

    def _keep(self, checkpoint: Path, name: str) -> Path:
        """Keep a checkpoint of a run, which goes with the next ones, under another name."""
        kept = self.out / name
        kept.unlink(missing_ok=True)
        os.link(checkpoint, kept)
        return kept

    def _branch(self, arm: Arm, seed: int) -> float:
        """Begin a run where the late phase of the control was about to begin, with other settings.

        Returns the seconds that it took to come there.
        """
        arrays, facts = load_facts(self.out / f"before-late-{seed}.npz")
        config = changed(facts.config, parse_assignments([*arm.set, "target_score=22"]))
        folder = RunFolder(self._folder(arm, seed))
        folder.create(config, {"command": f"a branch at {facts.steps} steps of seed {seed}"})
        folder.save_checkpoint(arrays, replace(facts, config=config))
        return facts.wall_s


def results(files: Path) -> dict[str, Any]:
    """Return the file of each arm by its name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(files.glob("*.json"))}


def main() -> None:
    """Run an experiment, or print its tables."""
    options = parser(__doc__)
    options.add_argument("name")
    options.add_argument("--table", action="store_true")
    options.add_argument("--out", type=Path, default=Path("runs/ablation"))
    options.add_argument("--at-once", type=int, default=1)
    arguments: argparse.Namespace = options.parse_args()
    if arguments.table:
        print(tables(results(RUNS / f"ablation-{arguments.name}")))
        return
    experiment = Experiment(arguments.name, arguments.out, arguments.at_once)
    experiment.out.mkdir(parents=True, exist_ok=True)
    experiment.run()


if __name__ == "__main__":
    main()
