"""How long a start takes, and how much memory a training needs (Linux).

    python bench/startup.py [--envs 64 512] [--workers W] [--rounds 5] [--cold 3] [--seconds 30]

Each round runs, one after the other: ``fastpong --help``; ``fastpong train`` until its first step, and on until it has
learned from its first batch, with the kernels in the cache (its own `wall_s`: from the start of the command, imports
included); and `Games(…)` until the first screens of all games. Some times, the same training with an empty cache, so
that everything is compiled. Then, for each number of games, a training of so many seconds, with the greatest Pss
(shared pages counted once) of all its processes together.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from fastpong.config import make_config
from fastpong.games import Games


def timed_help() -> float:
    """Return the seconds that ``fastpong --help`` takes."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fastpong", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def train(envs: int, workers: int | None, folder: Path, *more: str) -> list[str]:
    """Return the command of a training that plays no evaluation."""
    command = [sys.executable, "-m", "fastpong", "train", "--envs", str(envs), "--run", str(folder)]
    few = [] if workers is None else ["--workers", str(workers)]
    return [*command, *few, "--target", "22", "--set", "eval_games=0", *more]


def first_step(envs: int, workers: int | None, cache: Path | None = None) -> tuple[float, float]:
    """Return the seconds until the first step of all games is done, and until the first batch has been learned from."""
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": str(cache)} if cache else {})}
    steps = (make_config("fast", {"envs": envs}).rollout_steps + 2) * envs  # the last but one learns
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = train(envs, workers, run, "--steps", str(steps), "--set", f"log_steps={envs}")
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with (run / "metrics.jsonl").open() as file:
            lines = [json.loads(line) for line in file]
    return lines[0]["wall_s"], next(line["wall_s"] for line in lines if line["updates"])


def first_screens(envs: int, workers: int | None) -> float:
    """Return the seconds from `Games(…)` to the first screens."""
    start = time.perf_counter()
    with Games(envs, workers) as games:
        games.reset()
        return time.perf_counter() - start


def compilers() -> list[int]:
    """Return the processes that compile for a training, which go on when it ends."""
    lines = ((process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [pid for pid, line in lines if "fastpong.compiling" in line]


def family(process: psutil.Process) -> float:
    """Return the Pss, in MB, of a process and its descendants."""
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss / 1e6
        except psutil.NoSuchProcess:
            continue
    return total


def peak(envs: int, workers: int | None, seconds: float) -> float:
    """Return the greatest Pss, in MB, that a training shows, sampled four times a second."""
    with tempfile.TemporaryDirectory() as folder:
        command = train(envs, workers, Path(folder) / "run", "--minutes", str(seconds / 60))
        process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        most = 0.0
        while process.poll() is None:
            most = max(most, family(process))
            time.sleep(0.25)
    return most


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    envs, workers = arguments.envs[0], arguments.workers
    helps, steps, screens = [], [], []
    first_step(envs, workers)  # fills the cache, if it is empty
    for _ in range(arguments.rounds):
        helps.append(timed_help())
        steps.append(first_step(envs, workers))
        screens.append(first_screens(envs, workers))
    cold = []
    for _ in range(arguments.cold):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(first_step(envs, workers, Path(cache)))
            while compilers():  # what the critic needs
                time.sleep(1.0)
    print(f"fastpong --help: {statistics.median(helps):.2f} s (median of {arguments.rounds})")
    for name, times in {"kernels in the cache": steps, "an empty cache": cold}.items():
        for what, seconds in zip(("first step", "first update"), zip(*times, strict=True), strict=False):
            every = ", ".join(f"{one:.1f}" for one in seconds)
            print(f"{what} of {envs} games, {name}: {statistics.median(seconds):.2f} s (median of {every})")
    print(f"first screens of {envs} games: {screens[0]:.2f} s, later ones {statistics.median(screens):.2f} s (median)")
    for number in arguments.envs:
        print(
            f"training with {number} games: at most {peak(number, workers, arguments.seconds):.0f} MB Pss", flush=True
        )


if __name__ == "__main__":
    main()
