"""How an agent plays each way in which a point can begin: what it wins, and where it loses.

    python -m bench.openings AGENT [AGENT …] [--steps 4000] [--envs 256] [--seed 5] [--sampled]

AGENT is a run folder or weights, as for ``fastpong eval``. After a won point the ball is served to the computer, whose
return depends on few things: nearly all of a good agent's points have one of four *openings*. An opening is named by
where the ball is 40 steps after the point before, column and row, as the RAM has them (bytes 49 and 54; Anand et al.,
"Unsupervised state representation learning in Atari", 2019).

Prints a Markdown table for each agent, of points that began after a won one: an opening's share of them, the share of
it that was won, the share that was lost before step 75, which is at the ball's first arrival, and the median of the
steps that a won point took. Points that were not over after --steps are left out.
"""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from bench.common import parser
from fastpong.arrays import U8, Arrays
from fastpong.config import Config, changed
from fastpong.console.games import Games
from fastpong.console.state import STATE_BYTES, records
from fastpong.envs.sticky import sticky_repeats
from fastpong.kernels.preprocess import observe
from fastpong.policy import make_policy
from fastpong.runs.find import load_weights

BALL = [49, 54]
"""Bytes of the RAM: the ball's column and row."""

NAMED_AT, FIRST_ARRIVAL = 40, 75
"""Steps since the point before: when an opening is told, and by when the first return has been missed."""

Point = tuple[tuple[int, int], bool, int]  # opening, whether it was won, steps


def play(config: Config, weights: Arrays, envs: int, steps: int, seed: int, greedy: bool) -> list[Point]:
    """Play side by side and return all points that began after a won one and got to step 40."""
    policy = make_policy(changed(config, {"exploring_start_steps": 0, "seed": seed, "num_envs": envs}))
    policy.weights.load(weights)
    rows, courts = np.zeros((envs, STATE_BYTES), np.uint8), np.zeros((envs, 160, 3), np.uint64)
    rewards, ended = np.zeros((2, envs), np.int8)
    games, rollout, everyone = Games(rows, rewards, ended, courts=courts), policy.make_rollout(envs), np.arange(envs)
    games.reset(range(envs))
    ended[:] = 1
    shown, ram = observe({"courts": courts, "rewards": rewards, "ended": ended}), records(rows)["ram"]
    since, openings = np.full(envs, -steps), np.zeros((envs, 2), np.uint8)
    points: list[Point] = []
    for step in range(steps):
        row = rollout.new_row()
        rollout.record(row, shown, everyone, everyone)
        for env in np.flatnonzero(rewards):
            if since[env] > NAMED_AT:
                points.append(((int(openings[env, 0]), int(openings[env, 1])), rewards[env] > 0, int(since[env])))
        since[rewards != 0] = np.where((rewards > 0) & (ended == 0), 0, -steps)[rewards != 0]
        named = since == NAMED_AT
        openings[named] = ram[named][:, BALL]
        actions: U8 = policy.act(rollout.inputs, row * envs, everyone, step, greedy)
        repeats = sticky_repeats(seed, everyone, step, 1, config.frame_skip, config.repeat_action_probability)
        games.step(range(envs), actions, repeats[0])
        rollout.release(rollout.rows - 1)
        since += 1
    return points


def table(points: list[Point], least: float = 0.01) -> list[str]:
    """Return the lines of a Markdown table: a row for each opening of more than `least` of the points, and for all."""
    groups: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        groups[f"column {point[0][0]}, row {point[0][1]}"].append(point)
    lines = ["| opening | share | won | lost at the first arrival | steps to win |", "|---|---|---|---|---|"]
    counts = Counter({name: len(group) for name, group in groups.items()})
    rows = [(name, groups[name]) for name, count in counts.most_common() if count > least * len(points)]
    for name, group in [*rows, ("all", points)]:
        won = np.array([point[1] for point in group])
        taken = np.array([point[2] for point in group])
        missed = np.mean(~won & (taken < FIRST_ARRIVAL))
        share = len(group) / len(points)
        lines.append(f"| {name} | {share:.3f} | {won.mean():.3f} | {missed:.3f} | {np.median(taken[won]):.0f} |")
    return lines


def main() -> None:
    """Play and print."""
    options = parser(__doc__)
    options.add_argument("agents", type=Path, nargs="+", metavar="AGENT")
    options.add_argument("--steps", type=int, default=4000)
    options.add_argument("--envs", type=int, default=256)
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--sampled", action="store_true", help="draw actions, as training does")
    arguments = options.parse_args()
    for agent in arguments.agents:
        config, weights = load_weights(agent)
        points = play(config, weights, arguments.envs, arguments.steps, arguments.seed, not arguments.sampled)
        print(f"\n{agent}: {len(points)} points after a won one\n", *table(points), sep="\n")


if __name__ == "__main__":
    main()
