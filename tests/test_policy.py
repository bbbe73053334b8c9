import numpy as np
import pytest

from fastpong.config import make_config
from fastpong.policy import Policy, input_count


def test_weights_start_as_the_seeds_do() -> None:
    config = make_config("karpathy", {"seed": 3})
    policy = Policy(config)
    assert policy.w1.shape == (6400, 200) and policy.w2.shape == (1, 200)
    assert policy.w1.std() == pytest.approx(1 / 80, rel=0.01)
    assert policy.w2.std() == pytest.approx(1 / np.sqrt(200), rel=0.2)
    assert (Policy(config).weights == policy.weights).all()
    assert (Policy(make_config("karpathy", {"seed": 4})).weights != policy.weights).any()


def test_the_fast_network_sees_more_and_has_a_value() -> None:
    config = make_config("fast")
    policy = Policy(config)
    assert policy.w1.shape == (12800, 200) == (input_count(config), 200) and policy.w2.shape == (3, 200)
    assert policy.w1.std() == pytest.approx(0.013, rel=0.01)
    assert np.shares_memory(policy.w1, policy.weights) and np.shares_memory(policy.w2, policy.weights)


def test_warming_up_changes_nothing_and_a_state_comes_back() -> None:
    one, two = Policy(make_config("fast", {"hidden": 9})), Policy(make_config("fast", {"hidden": 9, "seed": 1}))
    weights = one.weights.copy()
    one.warm_up()
    np.testing.assert_array_equal(one.weights, weights)
    two.load_state(one.state())
    np.testing.assert_array_equal(two.weights, weights)
