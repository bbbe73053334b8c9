"""How long games take to start, and how much memory they need (Linux).

    python bench/startup.py [--envs 64] [--workers W] [--rounds 5]

Seconds from `Games(…)` to the first screens of all games, after imports; then Pss (shared pages counted once) of this
process and all its descendants when every game has an emulator of its own; then what is left of them after closing.
"""

import argparse
import statistics
import time

import numpy as np
import psutil

from fastpong.games import Games


def family() -> list[psutil.Process]:
    """Return this process and its descendants."""
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def main() -> None:
    """Measure and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    seconds, memory = [], []
    for _ in range(arguments.rounds):
        start = time.perf_counter()
        with Games(arguments.envs, arguments.workers) as games:
            games.reset()
            seconds.append(time.perf_counter() - start)
            for _ in range(arguments.envs + 1):
                for group, members in enumerate(games.groups):
                    games.recv(group)
                    games.send(group, np.zeros(len(members), np.uint8))
            memory.append(sum(process.memory_full_info().pss for process in family()) / 1e6)
    left = [process.name() for process in family()[1:]]
    first, rest = seconds[0], seconds[1:] or seconds
    print(f"{arguments.envs} games: first start {first:.2f} s, later ones {statistics.median(rest):.2f} s (median)")
    print(f"memory of all processes together: {statistics.median(memory):.0f} MB Pss (median)")
    print(
        f"processes left after closing: {left} (Python's fork server and resource tracker, gone when the program ends)"
    )


if __name__ == "__main__":
    main()
