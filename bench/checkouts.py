"""Speed of training with the code of several checkouts, measured in turns, each as a ratio to the first.

    python -m bench.checkouts CHECKOUT CHECKOUT ... [--set KEY=VALUE] [--late] [--workers N] [--rounds 9] [--seconds 2]

Prints steps/s, the median ratio of the rounds, and in how many of them it was faster. A checkout of a commit is made
by `git worktree add --detach FOLDER COMMIT`. Each trains in a process of its own, which waits while the others are
measured; `--set`, `--late` and `--workers` hold for all.
"""

import contextlib
import functools
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench.common import in_turns, parser

BODY = """
import contextlib, json, sys
from fastpong.commands.speeds import training
from fastpong.config import make_config
from fastpong.config_sources import parse_assignments

settings, late, workers = json.loads(sys.argv[1])
with contextlib.ExitStack() as stack:
    measure, trainer = training(stack, make_config("fast", parse_assignments(settings)), workers, late=late)
    stack.callback(trainer.close)
    for line in sys.stdin:
        print(measure(float(line)), flush=True)
"""
"""What is run with a checkout's own modules."""


class Checkout:
    """A training with the code of a checkout."""

    def __init__(self, folder: Path, arguments: str):
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", BODY, arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def measure(self, seconds: float) -> float:
        """Return steps/s of whole batches, for about so many seconds."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            print(seconds, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        return float(answer) if answer else sys.exit(1)  # it has said why

    def __enter__(self) -> "Checkout":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def main() -> None:
    """Measure, and print a line for each checkout."""
    options = parser(__doc__)
    options.add_argument("checkouts", type=Path, nargs="+", metavar="CHECKOUT")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options.add_argument("--late", action="store_true")
    options.add_argument("--workers", type=int)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--seconds", type=float, default=2.0)
    given = options.parse_args()
    if wrong := [folder for folder in given.checkouts if not (folder / "fastpong").is_dir()]:
        options.error(f"{wrong[0]} is no checkout: it has no folder fastpong")
    arguments = json.dumps([given.set, given.late, given.workers])
    with contextlib.ExitStack() as stack:
        trainings = [stack.enter_context(Checkout(folder.resolve(), arguments)) for folder in given.checkouts]
        functions = {str(i): functools.partial(one.measure, given.seconds) for i, one in enumerate(trainings)}
        speeds = list(in_turns(functions, given.rounds).values())
    for folder, mine in zip(given.checkouts, speeds, strict=True):
        ratios = [one / first for one, first in zip(mine, speeds[0], strict=True)]
        text = f"{statistics.median(ratios):.3f} of the first, {min(ratios):.2f} … {max(ratios):.2f}"
        above = sum(ratio > 1 for ratio in ratios)
        print(f"{folder}: {statistics.median(mine):,.0f} steps/s, {text}, above it in {above} of {len(ratios)} rounds")


if __name__ == "__main__":
    main()
