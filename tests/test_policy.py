import numpy as np
import pytest

from fastpong.config import Config
from fastpong.policy import Policy


def test_weights_start_as_the_seeds_do() -> None:
    policy = Policy(Config(seed=3))
    assert policy.w1.shape == (6400, 200) and policy.w2.shape == (1, 200)
    assert policy.w1.std() == pytest.approx(1 / 80, rel=0.01)
    assert policy.w2.std() == pytest.approx(1 / np.sqrt(200), rel=0.2)
    assert (Policy(Config(seed=3)).parameters == policy.parameters).all()
    assert (Policy(Config(seed=4)).parameters != policy.parameters).any()


def test_a_step_makes_rewarded_actions_likelier() -> None:
    policy = Policy(Config(hidden=20, learning_rate=1e-2))
    changes, one, game = np.array([5, -9, 77], np.int16), np.array([3], np.int64), np.zeros(1, np.int64)

    def share_of_up() -> float:
        actions, ups = np.zeros(1, np.uint8), 0
        for step in range(2000):
            policy.act(changes, game, one, game, step, actions)
            ups += actions[0] == 0
        return ups / 2000

    before = share_of_up()
    entropy = policy.add_gradient(changes, game, one, np.zeros(1, np.uint8), game, np.ones(1, np.float32))
    assert 0 < entropy <= np.log(2) + 1e-6
    policy.step()
    assert share_of_up() > before + 0.05
    assert policy.updates == 1 and not policy.gradient.any()


def test_warming_up_changes_nothing() -> None:
    policy = Policy(Config())
    parameters = policy.parameters.copy()
    policy.warm_up()
    assert not policy.gradient.any() and policy.updates == 0
    np.testing.assert_array_equal(policy.parameters, parameters)


def test_state() -> None:
    one, two = Policy(Config(hidden=9)), Policy(Config(hidden=9, seed=1))
    one.gradient[:] = 1
    one.step()
    two.load_state(one.state())
    for policy in (one, two):
        policy.gradient[:] = np.arange(len(policy.gradient)) % 7 - 3
        policy.step()
    np.testing.assert_array_equal(one.parameters, two.parameters)
    assert two.updates == 2
