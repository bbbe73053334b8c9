"""How long a start takes, and how much memory a training needs (Linux).

    python -m bench.startup [--envs 64 512] [--engine console ale] [--workers W] [--rounds 5] [--cold 3] [--seconds 30]

Each round runs, one after the other: ``fastpong --help``; and with each engine ``fastpong train`` until its games begin
(the first step of all envs is done), and on until its first update, with the kernels in the cache (its own `wall_s`:
from the start of the command, imports included); and ``VectorEnv(…)`` until the first screens of all envs. Some times,
the same trainings with an empty cache, so that all kernels are compiled, and the console is compared with ale-py. Then,
for each engine and number of envs, a training of so many seconds, with the greatest Pss (shared pages counted once) of
all its processes together. Prints medians.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.common import parser, timed, train_command
from fastpong.config import make_config
from fastpong.envs.engine import ENGINES
from fastpong.envs.vector_env import VectorEnv
from fastpong.runs.facts import read_metrics


def show_help() -> None:
    """Run ``fastpong --help``."""
    subprocess.run([sys.executable, "-m", "fastpong", "--help"], check=True, stdout=subprocess.DEVNULL)


def how(engine: str, workers: int | None) -> list[str]:
    """Return the options of ``fastpong train``."""
    return ["--engine", engine, *([] if workers is None else ["--workers", str(workers)])]


def begin(envs: int, engine: str, workers: int | None, cache: Path | None = None) -> tuple[float, float]:
    """Return the seconds until the games begin, and until the first update."""
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": str(cache)} if cache else {})}
    steps = (make_config("fast", {"num_envs": envs}).rollout_steps + 2) * envs  # the last but one learns
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        limits = ["--steps", str(steps), "--set", f"log_interval={envs}", *how(engine, workers)]
        command = train_command(run, "--envs", str(envs), *limits)
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = read_metrics(run / "metrics.jsonl")
    return lines[0]["wall_s"], next(line["wall_s"] for line in lines if line["updates"])


def first_screens(envs: int, engine: str, workers: int | None) -> float:
    """Return the seconds from `VectorEnv(…)` to the first screens."""
    began = time.perf_counter()
    with VectorEnv(envs, workers, engine=engine) as vector_env:
        vector_env.reset()
        return time.perf_counter() - began


def family(process: psutil.Process) -> float:
    """Return the Pss, in MB, of a process and its descendants."""
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss / 1e6
        except psutil.NoSuchProcess:
            continue
    return total


def peak(envs: int, engine: str, workers: int | None, seconds: float) -> float:
    """Return the greatest Pss, in MB, that a training shows, sampled four times a second."""
    with tempfile.TemporaryDirectory() as folder:
        limits = ["--minutes", str(seconds / 60), *how(engine, workers)]
        command = train_command(Path(folder) / "run", "--envs", str(envs), *limits)
        process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        most = 0.0
        while process.poll() is None:
            most = max(most, family(process))
            time.sleep(0.25)
    return most


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--envs", type=int, nargs="+", default=[64, 512])
    options.add_argument("--engine", nargs="+", choices=ENGINES, default=list(ENGINES))
    options.add_argument("--workers", type=int, default=None)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--cold", type=int, default=3)
    options.add_argument("--seconds", type=float, default=30.0)
    arguments = options.parse_args()
    envs, workers, engines = arguments.envs[0], arguments.workers, arguments.engine
    helps: list[float] = []
    warm, cold = ({engine: list[tuple[float, float]]() for engine in engines} for _ in range(2))
    screens = {engine: list[float]() for engine in engines}
    for engine in engines:
        begin(envs, engine, workers)  # fills the cache, if it is empty
    for _ in range(arguments.rounds):
        helps.append(timed(show_help))
        for engine in engines:
            warm[engine].append(begin(envs, engine, workers))
            screens[engine].append(first_screens(envs, engine, workers))
    for _ in range(arguments.cold):
        for engine in engines:
            with tempfile.TemporaryDirectory() as cache:
                cold[engine].append(begin(envs, engine, workers, Path(cache)))
    if helps:
        print(f"fastpong --help: {statistics.median(helps):.2f} s (median of {len(helps)})")
    for engine in engines:
        for name, times in {"kernels in the cache": warm[engine], "an empty cache": cold[engine]}.items():
            for what, seconds in zip(("games begin", "first update"), zip(*times, strict=True), strict=False):
                every = ", ".join(f"{one:.1f}" for one in seconds)
                print(f"{engine}: {what}, {envs} envs, {name}: {statistics.median(seconds):.2f} s (median of {every})")
        if screens[engine]:
            middle = statistics.median(screens[engine])
            first = f"{screens[engine][0]:.2f} s, later ones {middle:.2f} s (median)"
            print(f"{engine}: first screens of {envs} envs: {first}")
    for engine in engines:
        for number in arguments.envs:
            most = peak(number, engine, workers, arguments.seconds)
            print(f"{engine}: training with {number} envs: at most {most:.0f} MB Pss", flush=True)


if __name__ == "__main__":
    main()
