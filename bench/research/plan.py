"""Plan how to begin the most frequent points, by backward induction.

    python -m bench.research.plan OUT [--agent FILE] [--beginnings 5]

An agent plays; its points are told apart by what is on the screen 40 steps after they began (below the score). From
each of the most frequent of these pictures on, what is best for the next 22 steps is planned, see `planning.py`; the
agent plays on from the leaves, and how often it wins, leaves with the same screen pooled, is what they are worth.
Writes ``OUT/lessons-0.npz`` and so on, which `teach.py` clones. Prints how far it is.
"""

import multiprocessing
import sys
import time
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.common import parser
from bench.research.lanes import Lanes, load_policy
from bench.research.planning import Key, Node, Tree, Worth, reach_of, solve, tree_of
from fastpong.pong import SCREEN
from fastpong.runs.find import SHIPPED

LANES = 64
BEGINS = 40
"""Steps after which a point is looked at, and planned: in those before the ball is far away."""

STEPS = 22
"""For so many steps; then the ball has been met, and what can happen grows beyond counting."""

SCORE_ROWS = 34
"""Rows of a screen above the court: the score differs from game to game."""

PRIOR = 2.0
"""How many games at the mean each leaf's are mixed with."""


class Start(NamedTuple):
    """Where a lane begins."""

    node: Node
    screen: bytes


def play(agent: Path, seed: int, starts: list[Start]) -> list[float]:
    """Let the agent play each point from its start to the end and return the rewards, 0 where the game was cut off."""
    policy, count = load_policy(agent), min(LANES, len(starts))
    lanes = Lanes(policy.config, count, seed)
    rewards, playing, next_start, step = [0.0] * len(starts), [-1] * count, 0, 0
    while True:
        for lane in range(count):
            if playing[lane] < 0 and next_start < len(starts):
                start = starts[next_start]
                lanes.put(lane, start.node, np.frombuffer(zlib.decompress(start.screen), np.uint8).reshape(SCREEN))
                playing[lane], next_start = next_start, next_start + 1
        if max(playing) < 0:
            return rewards
        row = lanes.observe()
        for lane, reward in enumerate(lanes.step(lanes.act(policy, row, lanes.all, step).tolist())):
            if playing[lane] >= 0 and (reward or lanes.emulators[lane].game_over()):
                rewards[playing[lane]], playing[lane] = reward, -1
        lanes.rollout.release(row + 1)
        step += 1


def beginnings(agent: Path, seed: int, steps: int, count: int = LANES) -> list[tuple[bytes, Start, int]]:
    """Let the agent play and return, for each point, the picture after `BEGINS` steps, the moment, and its reward."""
    policy = load_policy(agent)
    lanes = Lanes(policy.config, count, seed)
    ages, noted, points = [0] * count, [(b"", Start(Node(b"", 0), b""))] * count, []
    for step in range(steps):
        row = lanes.observe()
        for lane, reward in enumerate(lanes.step(lanes.act(policy, row, lanes.all, step).tolist())):
            ages[lane] = 0 if reward else ages[lane] + 1
            if ages[lane] == BEGINS:
                screen = lanes.screens[lane]
                noted[lane] = screen[SCORE_ROWS:].tobytes(), Start(lanes.node(lane), zlib.compress(screen.tobytes(), 1))
            elif reward and noted[lane][0]:
                points.append((*noted[lane], reward))
                noted[lane] = b"", noted[lane][1]
            if lanes.emulators[lane].game_over():
                lanes.put(lane, *lanes.first)
                ages[lane] = 0
        lanes.rollout.release(row + 1)
    return points


def play_all(pool: Any, agent: Path, seed: int, starts: list[Start], processes: int) -> list[float]:
    """Share the starts of `play` among the processes of a pool."""
    shares = pool.starmap(play, [(agent, seed * processes + i, starts[i::processes]) for i in range(processes)], 1)
    rewards = [0.0] * len(starts)
    for i, share in enumerate(shares):
        rewards[i::processes] = share
    return rewards


def judged(
    tree: Tree, agent: Path, pool: Any, processes: int, tries: int, rounds: int
) -> tuple[float, dict[Key, Worth]]:
    """Solve a tree whose leaves are played on: at first every picture once, then those that good play leads to."""
    pictures: dict[bytes, list[Key]] = defaultdict(list)
    for key, (_, screen) in tree.leaves.items():
        pictures[screen].append(key)
    rng, rewards = np.random.default_rng(0), defaultdict(list)
    chosen = [keys[int(rng.integers(len(keys)))] for keys in pictures.values()]
    for number in range(rounds + 1):
        starts = [Start(*tree.leaves[key]) for key in chosen]
        for key, reward in zip(chosen, play_all(pool, agent, number, starts, processes), strict=True):
            rewards[tree.leaves[key][1]].append(reward)
        mean = float(np.mean([reward for all_of_it in rewards.values() for reward in all_of_it]))
        worth = {s: (sum(r) + PRIOR * mean) / (len(r) + PRIOR) for s, r in rewards.items()}
        value, actions = solve(tree, {key: worth[screen] for key, (_, screen) in tree.leaves.items()})
        _say(
            f"{len(tree.leaves)} leaves, {len(pictures)} pictures, {len(chosen)} tries more: wins {(1 + value) / 2:.4f}"
        )
        reach = reach_of(tree, actions, blunders=0.2)
        keys, chances = list(reach), np.array(list(reach.values()))
        chosen = [keys[int(i)] for i in rng.choice(len(keys), tries, p=chances / chances.sum())]
    return value, actions


def save(path: Path, start: Start, actions: dict[Key, Worth]) -> None:
    """Write where a beginning begins, and the values of all actions at its nodes."""
    np.savez_compressed(
        path,
        state=np.frombuffer(start.node.state, np.uint8),
        held=start.node.held,
        screen=np.frombuffer(zlib.decompress(start.screen), np.uint8).reshape(SCREEN),
        keys=np.array([np.frombuffer(key, np.uint8) for key in actions]),
        values=np.array(list(actions.values()), np.float32),
    )


def main() -> None:
    """Plan and write."""
    options = parser(__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--agent", type=Path, default=SHIPPED)
    options.add_argument("--beginnings", type=int, default=5, help="how many are planned, the most often lost first")
    options.add_argument("--play", type=int, default=1000, help="steps of 64 games a process, to find them")
    options.add_argument(
        "--tries", type=int, default=2500, help="leaves that are played on in each round but the first"
    )
    options.add_argument("--rounds", type=int, default=2)
    a = options.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    processes = multiprocessing.cpu_count()
    with multiprocessing.get_context("forkserver").Pool(processes) as pool:
        points = sum(pool.starmap(beginnings, [(a.agent, 1000 + i, a.play) for i in range(processes)], 1), [])
        pictures: dict[bytes, list[tuple[Start, int]]] = defaultdict(list)
        for picture, start, reward in points:
            pictures[picture].append((start, reward))
        _say(f"{len(points)} points, {len(pictures)} pictures")
        often = sorted(pictures.values(), key=len, reverse=True)[: a.beginnings]
        for number, same in enumerate(sorted(often, key=lambda same: sum(r for _, r in same) - len(same))):
            won = sum(reward > 0 for _, reward in same) / len(same)
            _say(f"beginning {number}: {len(same)} points, {won:.3f} won")
            start = same[0][0]
            tree = tree_of(start.node, STEPS, pool)
            value, actions = judged(tree, a.agent, pool, processes, a.tries, a.rounds)
            save(a.out / f"lessons-{number}.npz", start, actions)
            _say(f"planned: {(1 + value) / 2:.4f} won")


def _say(text: str) -> None:
    print(f"{time.perf_counter() - _BEGAN:6.0f} s  {text}", file=sys.stderr, flush=True)


_BEGAN = time.perf_counter()

if __name__ == "__main__":
    main()
