import numpy as np
import pytest

from fastpong.config import make_config
from fastpong.policy import make_policy, shapes


def test_weights_start_as_the_seeds_do() -> None:
    config = make_config("karpathy", {"seed": 3})
    policy = make_policy(config)
    w1, w2 = policy.arrays["w1"], policy.arrays["w2"]
    assert w1.shape == (6400, 200) and w2.shape == (1, 200)
    assert w1.std() == pytest.approx(1 / 80, rel=0.01)
    assert w2.std() == pytest.approx(1 / np.sqrt(200), rel=0.2)
    assert (make_policy(config).weights == policy.weights).all()
    assert (make_policy(make_config("karpathy", {"seed": 4})).weights != policy.weights).any()


def test_the_convolutional_network_starts_small_and_undecided() -> None:
    config = make_config("fast", {"frames": 2})
    policy = make_policy(config)
    assert {name: array.shape for name, array in policy.arrays.items()} == shapes(config)
    assert shapes(config) == {"kernel": (2, 8, 4, 64), "bias": (16,), "w1": (442 * 16, 64), "w2": (4, 65)}
    assert policy.arrays["kernel"].std() == pytest.approx(0.1, rel=0.05)
    assert policy.arrays["w1"][: 441 * 16].std() == pytest.approx(0.02, rel=0.01)
    assert not policy.arrays["w1"][441 * 16 :].any()  # the constant and the past actions
    assert policy.arrays["w2"][:3, :-1].std() == pytest.approx(0.1 / np.sqrt(64), rel=0.2)
    assert all(np.shares_memory(array, policy.weights) for array in policy.arrays.values())


def test_warming_up_changes_nothing_and_a_state_comes_back() -> None:
    for preset in ("fast", "karpathy"):
        one, two = (make_policy(make_config(preset, {"hidden": 32, "seed": seed})) for seed in (0, 1))
        weights = one.weights.copy()
        one.warm_up()
        np.testing.assert_array_equal(one.weights, weights)
        two.load_state(one.state())
        np.testing.assert_array_equal(two.weights, weights)
        with pytest.raises(ValueError, match="shape"):
            make_policy(make_config(preset, {"hidden": 16})).load_state(one.state())
