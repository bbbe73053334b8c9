"""How many steps, and seconds, until the default learner wins: several seeds, each a run of the command line.

    python -m bench.learning [--seeds 5] [--first-seed 0] [--steps 4000000] [--target 20] [--games 100] [--out DIR]
                             [-- OPTIONS OF fastpong train]

Every seed is trained with ``fastpong train --envs 64`` until the target or the limit of steps, then its ``best.npz``
plays fresh games (``fastpong eval``, greedy, sticky actions as trained). Prints a Markdown table: steps until the mean
of the last 100 training games reached 0, 18 and 20, seconds from the start of the command until then (compilation
included), and the evaluation. Nothing is left out: a threshold that was not reached is a dash. The metrics stay in
DIR/seed-N; runs that are there already are read and not repeated.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.common import output_of, parser
from fastpong.runs.facts import read_metrics

THRESHOLDS = (0, 18, 20)


def run_seed(seed: int, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train and evaluate one seed; return what the table shows of it."""
    fastpong = [sys.executable, "-m", "fastpong"]
    if not (folder / "eval.json").exists():
        command = [*fastpong, "train", "--envs", "64", "--seed", str(seed), "--run", str(folder)]
        limits = ["--steps", str(arguments.steps), "--target", str(arguments.target)]
        subprocess.run([*command, *limits, *arguments.options], check=True)
        evaluation = [*fastpong, "eval", str(folder), "--games", str(arguments.games), "--json"]
        (folder / "eval.json").write_text(output_of(evaluation))
    lines = read_metrics(folder / "metrics.jsonl")
    row: dict[str, Any] = {"seed": seed, "eval": json.loads((folder / "eval.json").read_text()), "last": lines[-1]}
    for threshold in THRESHOLDS:
        hits = [line for line in lines if line["games"] >= 100 and line["score"] >= threshold]
        row[f"steps_{threshold}"] = hits[0]["steps"] if hits else None
        row[f"wall_{threshold}"] = hits[0]["wall_s"] if hits else None
    return row


def cell(value: float | None, scale: float, digits: int) -> str:
    """Format a number, or a dash."""
    return "–" if value is None else f"{value / scale:.{digits}f}"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the Markdown table of all seeds, with medians where every seed has a number."""
    head = ["seed", *(f"M steps to {t}" for t in THRESHOLDS), "s to 18", "steps", "last score", "eval (95 %)", "wins"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        result, last = row["eval"], row["last"]
        cells = [str(row["seed"]), *(cell(row[f"steps_{t}"], 1e6, 2) for t in THRESHOLDS), cell(row["wall_18"], 1, 0)]
        score = f"{result['mean']:.2f} ({result['ci95_low']:.2f} … {result['ci95_high']:.2f})"
        wins = f"{result['wins']}/{result['games']}"
        cells += [f"{last['steps'] / 1e6:.2f} M", cell(last["score"], 1, 2), score, wins]
        lines.append("| " + " | ".join(cells) + " |")
    for threshold in THRESHOLDS:
        steps = [row[f"steps_{threshold}"] for row in rows]
        if len(steps) > 1 and None not in steps:
            median, worst = statistics.median(steps) / 1e6, max(steps) / 1e6
            lines.append(f"\nTo {threshold}: median {median:.2f} M steps, worst {worst:.2f} M.")
    return "\n".join(lines)


def main() -> None:
    """Run all seeds, one after the other."""
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--steps", type=int, default=4_000_000)
    options.add_argument("--target", type=float, default=20.0)
    options.add_argument("--games", type=int, default=100)
    options.add_argument("--out", type=Path, default=Path("runs/learning"))
    options.add_argument("options", nargs="*", help="options of fastpong train, after --")
    arguments = options.parse_args()
    rows = []
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        rows.append(run_seed(seed, arguments.out / f"seed-{seed}", arguments))
        print(table(rows), flush=True)


if __name__ == "__main__":
    main()
