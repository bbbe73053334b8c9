"""What plan.py plans and teach.py teaches, on the real emulator."""

import multiprocessing
import zlib
from pathlib import Path

import numpy as np
import pytest

from bench.research.lanes import Lanes, policy_of
from bench.research.plan import SCORE_ROWS, Start, beginnings, judged, save
from bench.research.planning import Tree, chances_of, reach_of, solve, tree_of
from bench.research.teach import Beginning, Class, learn
from fastpong.arrays import U8
from fastpong.config import Config, make_config
from fastpong.learners.threads import Threads
from fastpong.learners.updater import Updater
from fastpong.parallel.comm import Serial
from fastpong.pong import SCREEN
from fastpong.runs.find import SHIPPED

STEPS = 3


@pytest.fixture(scope="module")
def config() -> Config:
    return make_config("fast", {"num_envs": 24, "noop_win_rate": 0.0})


@pytest.fixture(scope="module")
def tree(config: Config) -> Tree:
    lanes = Lanes(config, 1, 0)
    for _ in range(20):  # until the ball is out
        lanes.step([2])
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        return tree_of(lanes.node(0), STEPS, pool)


def test_chances_are_those_of_sticky_actions() -> None:
    chances = chances_of(0.25, 4)
    draws = np.random.default_rng(0).random((200_000, 4)) < 0.25
    repeated = np.cumprod(draws, axis=1).sum(1)
    np.testing.assert_allclose(chances, np.bincount(repeated, minlength=5) / len(draws), atol=0.004)
    assert sum(chances) == pytest.approx(1.0)


def test_games_stay_in_the_tree_and_come_where_it_says(config: Config, tree: Tree) -> None:
    rng, lanes = np.random.default_rng(1), Lanes(config, 1, 1)
    for _ in range(20):
        lanes.step([2])
    root, screen = lanes.node(0), lanes.screens[0].copy()
    assert root.key() == tree.root
    counts: dict[bytes, int] = {}
    games = 1000
    for _ in range(games):
        lanes.put(0, root, screen)
        for step in range(STEPS):
            key, choice = lanes.node(0).key(), int(rng.integers(3))
            lanes.step([choice])
            assert lanes.node(0).key() in [outcome.key for outcome in tree.choices[step][key][choice]]
        key = lanes.node(0).key()
        assert tree.leaves[key][0] == lanes.node(0)
        counts[key] = counts.get(key, 0) + 1
    _, actions = solve(tree, dict.fromkeys(tree.leaves, 0.0))
    reach = reach_of(tree, actions, blunders=1.0)
    assert sum(reach.values()) == pytest.approx(1.0)
    for key, chance in reach.items():
        assert counts.get(key, 0) / games == pytest.approx(chance, abs=4.5 * (chance / games) ** 0.5 + 1e-3)


def test_the_best_is_that_of_trying_everything(tree: Tree) -> None:
    rng = np.random.default_rng(2)
    leaves = {key: float(rng.uniform(-1, 1)) for key in tree.leaves}

    def naive(key: bytes, step: int) -> float:
        if step == STEPS:
            return leaves[key]
        return max(
            sum(o.chance * (o.reward if o.key is None else naive(o.key, step + 1)) for o in outcomes)
            for outcomes in tree.choices[step][key]
        )

    value, actions = solve(tree, leaves)
    assert value == pytest.approx(naive(tree.root, 0))
    assert max(actions[tree.root]) == value
    # Who plays so gets it.
    reach = reach_of(tree, actions, blunders=0.0)
    assert sum(chance * leaves[key] for key, chance in reach.items()) == pytest.approx(value)


def paddle_top(screen: U8) -> int:
    """Return the first row of the court in which the agent's paddle is."""
    column = screen[SCORE_ROWS:194, 141]
    return int(np.argmax(column != column[0]))


def test_what_is_planned_is_learned(config: Config, tree: Tree, tmp_path: Path) -> None:
    # The higher the paddle the better: an agent that knows nothing has to learn to go up.
    screens = {k: np.frombuffer(zlib.decompress(s), np.uint8).reshape(SCREEN) for k, (_, s) in tree.leaves.items()}
    tops = {key: paddle_top(screen) for key, screen in screens.items()}
    assert len(set(tops.values())) > 3
    value, actions = solve(tree, {key: 1.0 - top / 80.0 for key, top in tops.items()})
    lanes = Lanes(config, 1, 0)
    for _ in range(20):
        lanes.step([2])
    save(tmp_path / "lessons-0.npz", Start(lanes.node(0), zlib.compress(lanes.screens[0].tobytes())), actions)
    lesson = Beginning(tmp_path / "lessons-0.npz")
    assert max(lesson.values[tree.root]) == pytest.approx(value)
    before, student, threads = policy_of(config), policy_of(config), Threads(2)
    updater, room, rng = (
        Updater(student.net, Serial(), threads),
        Class(before, student, [lesson], 0, (12, 4, 8)),
        np.random.default_rng(0),
    )
    short = []
    for _ in range(12):
        rows = np.stack([room.step() for _ in range(16)])
        learn(updater, threads, student, room.lanes, rows, 1e-3, rng)
        short.append(float(np.mean(room.losses[0])))
        room.losses[0] = []
    threads.close()
    assert short[0] > 0.01
    assert short[-1] < 0.3 * short[0]


def test_leaves_are_worth_what_the_agent_wins(config: Config) -> None:
    points = beginnings(SHIPPED, 0, 150, count=2)
    assert len(points) >= 2
    assert {reward for _, _, reward in points} <= {-1, 1}
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        tree = tree_of(points[0][1].node, 2, pool)
        value, actions = judged(tree, SHIPPED, pool, 1, tries=4, rounds=1)
    assert 0.0 < value <= 1.0  # the first point is won in 0.99 of the cases
    assert set(actions) == {key for step in tree.choices for key in step}
