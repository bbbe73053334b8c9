"""The reference programs' learner: what it learns from, one update by hand, and windows of time."""

from typing import Any

import numpy as np
import pytest

from fastpong.arrays import U8
from fastpong.config import Config, make_config
from fastpong.kernels.preprocess import dense
from fastpong.learners.reinforce import DECAY, EPSILON, Reinforce, Windows
from fastpong.parallel.comm import Communicator, Serial, env_range
from fastpong.parallel.sharding import cut
from fastpong.policy import MlpPolicy
from fastpong.rollout.buffer import LAYOUT, Rollout
from fastpong.rollout.episode_stats import EpisodeStats
from tests import naive
from tests.support.learners import new_trainer, small
from tests.support.ranks import run_ranks
from tests.support.rollouts import course_of_points, fill, images_of

CONFIG = make_config("karpathy", {"num_envs": 2, "hidden_units": 5, "learning_rate": 1e-3, "batch_games": 2})


def filled(config: Config, policy: MlpPolicy, screens: U8) -> Rollout:
    rollout = policy.make_rollout(config.num_envs)
    fill(rollout, screens, course_of_points())
    return rollout


def test_it_learns_whenever_so_many_games_have_ended() -> None:
    with new_trainer(small("karpathy", batch_games=2)) as trainer:
        learner, games = trainer.learner, []
        while learner.updates < 2:
            trainer.step()
            ended = trainer.stats.batch_games
            if trainer.learn_if_due():
                games.append(ended)
                assert trainer.stats.batch_games == 0
                # What is left of each env is the point under way, and the step in flight.
                rollout = trainer.rollout
                for env in range(4):
                    rest = slice(int(rollout.first_unused[env]), rollout.rows - 1)
                    assert not rollout.arrays.rewards[rest, env].any() and not rollout.arrays.ended[rest, env].any()
            else:
                assert ended < 2
        assert min(games) >= 2
        assert 0 < float(learner.statistics["entropy"] or 0) <= np.log(2) + 1e-6


@pytest.mark.parametrize("unit", ["point", "game"])
def test_an_update_is_that_of_plain_loops(unit: str, real_screens: U8) -> None:
    """From the finished points (or games) of all rows but the last, which has no outcome yet."""
    config = make_config("karpathy", {"num_envs": 2, "hidden_units": 5, "learning_rate": 1e-3, "batch_unit": unit})
    policy = MlpPolicy(config)
    rollout = filled(config, policy, real_screens)
    rewards, ended = course_of_points()
    found = naive.finished_samples(rewards, ended, [0, 0], 289, config.gamma, unit)
    advantages = naive.standardise([value for _, _, value, _ in found], [game for _, _, _, game in found])
    chosen = [(t, n, a) for (t, n, _, _), a in zip(found, advantages, strict=True)]
    xs = [dense(np.array(images_of(rollout, t)[n], np.int16)).astype(float) for t, n, _ in chosen]
    actions = [int(rollout.arrays.actions[t, n]) for t, n, _ in chosen]
    before = {name: array.astype(float) for name, array in policy.weights.arrays.items()}
    gradients = naive.policy_gradient(xs, actions, [a for _, _, a in chosen], before["w1"], before["w2"])
    learner = Reinforce(config, policy, Serial(), range(2))
    learner.learn(rollout, EpisodeStats(2, 0.99))
    assert learner.updates == 1 and len(found) > 200
    for name, gradient in zip(("w1", "w2"), gradients, strict=True):
        step = np.zeros_like(gradient)
        for at in zip(*np.nonzero(gradient), strict=True):
            step[at] = naive.rmsprop(0.0, float(gradient[at]), 0.0, 1e-3, DECAY, EPSILON)[0]
        large = np.abs(gradient) > 1e-3 * np.abs(gradient).max()  # where its sign is no matter of rounding
        assert large.any() and not (policy.weights.arrays[name] - before[name])[gradient == 0].any()
        np.testing.assert_allclose((policy.weights.arrays[name] - before[name])[large], step[large], rtol=1e-2)
    entropies = [naive.entropy(naive.mlp_probs(x, before["w1"], before["w2"])) for x in xs]
    assert learner.statistics["entropy"] == pytest.approx(np.mean(entropies), rel=1e-4)
    assert rollout.rows == 290 - min(151 if unit == "game" else 289, 91 if unit == "game" else 271)


def test_ranks_learn_what_one_process_does(real_screens: U8) -> None:
    whole = filled(CONFIG, MlpPolicy(CONFIG), real_screens).state()

    def work(comm: Communicator) -> dict[str, Any]:
        envs = env_range(2, comm.rank, comm.size)
        policy = MlpPolicy(CONFIG, envs.start)
        rollout = policy.make_rollout(len(envs))
        rollout.load_state(cut(whole, LAYOUT, envs))
        learner = Reinforce(CONFIG, policy, comm, envs)
        learner.learn(rollout, EpisodeStats(2, 0.99, envs))
        return {"weights": policy.weights.flat, **learner.state(), **learner.statistics}

    one, (two, other) = work(Serial()), run_ranks(2, work)
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], two[name], err_msg=name)
        size = max(1e-3, float(np.abs(value).max(initial=0)))
        np.testing.assert_allclose(two[name], value, rtol=0, atol=1e-4 * size, err_msg=name)


def windows(**changes: Any) -> Windows:
    return Windows(make_config("ppg", {"num_envs": 2, "running_reward_decay": 0.75, **changes}))


def test_windows_report_rewards_and_their_growth() -> None:
    """A window's reward is what it adds to the points won minus lost, per env."""
    one, net = windows(), 0
    found = []
    for reward in (-4, -2, 0, 6):
        net += reward
        found.append(one.add(net))
    assert [line["window_reward"] for line in found] == [-2.0, -1.0, 0.0, 3.0]
    assert [line["running_reward"] for line in found] == [-2.0, -1.75, -1.3125, -0.234375]
    # Newer minus older half: of one, two, three and four windows.
    assert [line["per_kup"] for line in found] == [0.0, 1000.0, 2000.0, 1000.0 * (3.0 - (-3.0)) / 2 / 2]


def test_growth_is_that_of_the_last_hundred_windows() -> None:
    one, net = windows(), 0
    for number in range(250):
        net += 2 * number
        line = one.add(net)
    assert line["per_kup"] == pytest.approx(1000.0)  # each window has gained one point


def test_a_window_ends_by_the_clock() -> None:
    one = windows(window_seconds=3600.0)
    assert not one.is_over(1)
    an_hour_passes(one)
    assert one.is_over(1)
    one.add(0)
    assert not one.is_over(1)


def test_the_first_window_waits_for_a_point() -> None:
    one = windows(window_seconds=1e-9)
    assert not one.is_over(0) and not one.is_over(0)
    one.is_over(1)
    assert one.is_over(1)


def test_the_target_is_one_of_a_hundred_windows() -> None:
    one = windows()
    for number in range(100):
        assert not one.reached(-21.0)
        one.add(-2 * number)
    assert one.reached(-1.0) and not one.reached(-0.9)


def an_hour_passes(one: Windows | None) -> None:
    assert one and one._began is not None
    one._began -= 3600.0


def test_windows_come_back() -> None:
    one, two = windows(), windows()
    two.load_state(one.state())
    assert two.running is None
    for net in (-4, -6, -6, 3):
        one.add(net)
    two.load_state(one.state())
    assert one.add(7) == two.add(7)


def test_with_windows_the_gradient_is_a_mean_over_envs(real_screens: U8) -> None:
    changes = {"num_envs": 2, "hidden_units": 5, "running_reward_decay": 0.75}
    caches = []
    for preset in ("karpathy", "ppg"):
        config = make_config(preset, {**changes, "learning_rate": 1e-3})
        policy = MlpPolicy(config)
        learner, stats = Reinforce(config, policy, Serial(), range(2)), EpisodeStats(2, 0.75)
        stats.net_points = -6
        assert not learner.reached(-21, stats)
        learner.learn(filled(config, policy, real_screens), stats)
        caches.append(learner.state()["cache"])
        if preset == "ppg":
            assert learner.statistics["window_reward"] == learner.statistics["running_reward"] == -3.0
    np.testing.assert_allclose(caches[1], caches[0] / 4, rtol=1e-5)  # squares


def test_rank_0_has_the_clock() -> None:
    config = make_config("ppg", {"num_envs": 2, "window_seconds": 3600.0})

    def work(comm: Communicator) -> list[bool]:
        envs = env_range(2, comm.rank, 2)
        policy = MlpPolicy(config, envs.start)
        learner, rollout = Reinforce(config, policy, comm, envs), policy.make_rollout(1)
        stats = EpisodeStats(2, 0.9, envs)
        stats.lost = 1
        due = [learner.due(rollout, stats)]
        for rank in (1, 0):
            if comm.rank == rank:
                an_hour_passes(learner.windows)
            comm.barrier()
            due.append(learner.due(rollout, stats))
        return due

    assert run_ranks(2, work) == [[False, False, True]] * 2
