from dataclasses import replace

import numpy as np
import pytest

from fastpong.arrays import I64, U8
from fastpong.config import make_config
from fastpong.policy import ConvPolicy, MlpPolicy, Policy, make_policy, share_of_exploring_starts
from fastpong.rollout.buffer import Rollout
from tests.support.rollouts import fill


def test_weights_start_as_those_of_the_reference_programs() -> None:
    config = make_config("karpathy", {"seed": 3})
    policy = make_policy(config)
    w1, w2 = (policy.weights.arrays[name] for name in ("w1", "w2"))
    assert w1.shape == (6400, 200) and w2.shape == (1, 200)
    assert w1.std() == pytest.approx(1 / 80, rel=0.01)
    assert w2.std() == pytest.approx(1 / np.sqrt(200), rel=0.2)
    assert (make_policy(config).weights.flat == policy.weights.flat).all()
    assert (make_policy(make_config("karpathy", {"seed": 4})).weights.flat != policy.weights.flat).any()


def test_the_convolutional_network_starts_small_and_undecided() -> None:
    config = make_config("fast", {"frame_stack": 2})
    policy = make_policy(config)
    arrays = policy.weights.arrays
    shapes = {"kernel": (2, 8, 4, 64), "bias": (16,), "w1": (442 * 16, 64), "w2": (4, 65)}
    assert {name: array.shape for name, array in arrays.items()} == policy.weights.shapes == shapes
    assert arrays["kernel"].std() == pytest.approx(0.1, rel=0.05)
    assert arrays["w1"][: 441 * 16].std() == pytest.approx(0.02, rel=0.01)
    assert not arrays["w1"][441 * 16 :].any()  # the side inputs: the constant and the previous actions
    assert arrays["w2"][:3, :-1].std() == pytest.approx(0.1 / np.sqrt(64), rel=0.2)
    assert arrays["w2"][3, :-1].std() == pytest.approx(1 / np.sqrt(64), rel=0.3)  # the value
    assert not arrays["w2"][[0, 1, 3], -1].any() and not arrays["bias"].any()
    assert arrays["w2"][2, -1] == -1e3  # no-op is not played yet
    assert all(np.shares_memory(array, policy.weights.flat) for array in arrays.values())


@pytest.mark.parametrize("preset", ["fast", "karpathy"])
def test_weights_are_taken_over_if_their_shapes_fit(preset: str) -> None:
    one, two = (make_policy(make_config(preset, {"hidden_units": 64, "seed": seed})) for seed in (0, 1))
    weights = one.weights.flat.copy()
    two.weights.load(one.weights.arrays)
    np.testing.assert_array_equal(two.weights.flat, weights)
    two.weights.flat[:] = 0.0
    np.testing.assert_array_equal(one.weights.flat, weights)  # a copy
    other = make_policy(make_config(preset, {"hidden_units": 128}))
    with pytest.raises(ValueError, match="shape"):
        other.weights.load(one.weights.arrays)
    with pytest.raises(KeyError):
        other.weights.load({"w2": other.weights.arrays["w2"]})


@pytest.mark.parametrize(("preset", "kind"), [("fast", ConvPolicy), ("karpathy", MlpPolicy)])
def test_an_algorithm_has_its_policy(preset: str, kind: type) -> None:
    policy = make_policy(make_config(preset))
    assert isinstance(policy, kind)


def test_ever_fewer_points_begin_with_the_paddle_held() -> None:
    config = make_config("fast", {"num_envs": 10, "exploring_start_until": 1000})
    assert [share_of_exploring_starts(config, step) for step in (0, 25, 100, 10**6)] == [1.0, 0.75, 0.0, 0.0]
    began = 100 * config.num_envs
    assert [share_of_exploring_starts(config, step, began) for step in (100, 125, 200)] == [1.0, 0.75, 0.0]


def acted(policy: Policy, rollout: Rollout, members: I64, step: int, greedy: bool = False) -> U8:
    """Actions in the last row, which they stand in as well."""
    row = rollout.rows - 1
    actions = policy.act(rollout.inputs, 2 * row, members, step, greedy)
    np.testing.assert_array_equal(rollout.arrays.actions[row][members], actions)
    return actions


@pytest.mark.parametrize("preset", ["fast", "karpathy"])
def test_noise_belongs_to_the_env_and_the_step(preset: str, real_screens: U8) -> None:
    """Whoever acts with it: two envs together, one by one, or the second one as another rank's first."""
    config = replace(make_config(preset, {"num_envs": 2}), exploring_start_steps=0, noop_win_rate=0.0)
    policy, other = make_policy(config), make_policy(config, env_offset=1)
    rollout, nothing = policy.make_rollout(2), np.zeros((30, 2), np.int8)
    fill(rollout, real_screens, (nothing, nothing))
    mirrored = policy.make_rollout(2)  # whose env 0 sees what env 1 sees here
    fill(mirrored, real_screens[::-1].copy(), (nothing, nothing))
    seen = []
    for step in range(100):
        together = acted(policy, rollout, np.array([0, 1]), step).tolist()
        assert acted(policy, rollout, np.array([1]), step).tolist() == together[1:]
        assert acted(policy, rollout, np.array([0]), step).tolist() == together[:1]
        assert acted(other, mirrored, np.array([0]), step).tolist() == together[1:]
        seen.append(together)
    assert {len({actions[env] for actions in seen}) for env in range(2)} == {config.num_actions}
    assert any(one != two for one, two in seen)


@pytest.mark.parametrize("preset", ["fast", "karpathy"])
def test_greedy_actions_are_the_likeliest_ones(preset: str, real_screens: U8) -> None:
    config = replace(make_config(preset, {"num_envs": 2}), exploring_start_steps=0, noop_win_rate=0.0)
    policy = make_policy(config)
    rollout, nothing = policy.make_rollout(2), np.zeros((60, 2), np.int8)
    fill(rollout, real_screens, (nothing, nothing))
    both, log_probs = np.array([0, 1]), rollout.arrays.log_probs[59]
    found: tuple[dict[int, float], dict[int, float]] = {}, {}  # of each env: log probabilities of actions
    for step in range(300):
        for env, action in enumerate(acted(policy, rollout, both, step).tolist()):
            found[env][action] = float(log_probs[env])
    greedy = acted(policy, rollout, both, 0, greedy=True).tolist()
    assert greedy == [max(of_env, key=of_env.__getitem__) for of_env in found]
    for env in range(2):
        assert sum(np.exp(list(found[env].values()))) == pytest.approx(1.0, rel=1e-4)
    assert all(acted(policy, rollout, both, step, greedy=True).tolist() == greedy for step in range(20))


def test_larger_logits_are_greedier(real_screens: U8) -> None:
    policy = make_policy(make_config("fast", {"num_envs": 2, "exploring_start_steps": 0}))
    assert isinstance(policy, ConvPolicy)
    policy.weights.arrays["w2"][:] *= 10.0
    rollout, nothing = policy.make_rollout(2), np.zeros((10, 2), np.int8)
    fill(rollout, real_screens, (nothing, nothing))
    before = policy.weights.arrays["w2"].copy()
    best = []
    for _ in range(2):
        acted(policy, rollout, np.array([0, 1]), 0, greedy=True)
        best.append(rollout.arrays.log_probs[9].copy())
        values = rollout.arrays.values[9].copy()
        policy.scale_logits(2.0)
    assert (best[1] > best[0]).all()
    np.testing.assert_array_equal(policy.weights.arrays["w2"], before * np.array([[4], [4], [4], [1]], np.float32))
    np.testing.assert_array_equal(rollout.arrays.values[9], values)


def test_noop_is_not_played_until_the_policy_is_told_to(real_screens: U8) -> None:
    """At first it never is; then about as often as e⁻¹ is to 1 and 1, and to be told again changes nothing."""
    policy = make_policy(make_config("fast", {"num_envs": 2, "exploring_start_steps": 0}))
    assert isinstance(policy, ConvPolicy)
    rollout, nothing = policy.make_rollout(2), np.zeros((10, 2), np.int8)
    fill(rollout, real_screens, (nothing, nothing))

    def share_of_noop() -> float:
        actions = [acted(policy, rollout, np.array([0, 1]), step) for step in range(1000)]
        assert np.isfinite(rollout.arrays.log_probs[9]).all()
        return float(np.mean(np.array(actions) == 2))

    w2 = policy.weights.arrays["w2"]
    up, down, value = w2[0].copy(), w2[1].copy(), w2[3].copy()
    assert share_of_noop() == 0.0
    policy.scale_logits(1.5)
    assert share_of_noop() == 0.0
    policy.play_noop()
    np.testing.assert_array_equal(w2[[0, 1, 3]], [up * np.float32(1.5), down * np.float32(1.5), value])
    np.testing.assert_allclose(w2[2, :-1], 0.75 * (up + down)[:-1], rtol=1e-5)
    assert w2[2, -1] == -1.0
    assert share_of_noop() == pytest.approx(np.exp(-1) / (2 + np.exp(-1)), abs=0.03)
    w2[2, -1] = -50.0  # as a policy may have learned it
    learned = w2.copy()
    policy.play_noop()
    np.testing.assert_array_equal(w2, learned)


@pytest.mark.parametrize("changes", [{"num_actions": 2}, {"noop_win_rate": 0.0}])
def test_a_policy_without_noop_or_that_always_plays_it_has_nothing_to_be_told(changes: dict[str, float]) -> None:
    policy = make_policy(make_config("fast", changes))
    assert isinstance(policy, ConvPolicy)
    before = policy.weights.flat.copy()
    assert not policy.weights.arrays["w2"][:, -1].any()
    policy.play_noop()
    np.testing.assert_array_equal(policy.weights.flat, before)
