"""Which samples a pass goes over: by hand, by a plain loop, and whether what they say is what all would say."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastpong.config import changed
from fastpong.importance import LEAST, RARE, SELDOM, SELDOM_WEIGHT, chances_of, temper
from fastpong.ppo import PPO
from fastpong.ranks import Alone
from fastpong.trainer import Trainer
from tests import naive
from tests.test_learners import after_41_steps, small

F32 = npt.NDArray[np.float32]


def drawn(seed: int, size: int) -> tuple[F32, F32, F32]:
    rng = np.random.default_rng(seed)
    log_probs = np.log(rng.uniform(1e-6, 1.0, size))
    return tuple(a.astype(np.float32) for a in (rng.standard_normal(size), log_probs, rng.normal(0, 0.3, size)))  # type: ignore[return-value]


@given(st.integers(0, 1000), st.integers(1, 50), st.floats(LEAST, 1.0))
def test_chances(seed: int, size: int, share: float) -> None:
    samples = drawn(seed, size)
    chances = chances_of(*samples, share, Alone())
    np.testing.assert_allclose(chances, np.array(naive.chances_of(*samples, share, LEAST)), rtol=1e-4)
    assert chances.dtype == np.float32 and chances.min() >= np.float32(LEAST) and chances.max() <= 1.0
    assert chances.mean() <= share + 1e-5 or share == 1.0


@given(arrays(np.float32, 5, elements=st.sampled_from([0.0, -0.0])))
def test_chances_where_there_is_nothing_to_learn(zeros: F32) -> None:
    np.testing.assert_array_equal(chances_of(zeros, zeros, zeros, 0.5, Alone()), np.float32(LEAST))
    assert len(chances_of(zeros[:0], zeros[:0], zeros[:0], 0.5, Alone())) == 0


def test_an_unlikely_action_is_looked_at_and_a_certain_one_seldom() -> None:
    log_probs = np.log(np.array([0.02, 0.9, 0.999, 0.999], np.float32))
    advantages = np.array([2.0, 0.5, 1.0, -3.0], np.float32)
    chances = chances_of(advantages, log_probs, np.zeros(4, np.float32), 0.3, Alone())
    assert chances[0] == chances.max() and chances[2] < chances[3] < chances[1]


def gradient_of(trainer: Trainer, share: float, passes: int) -> tuple[npt.NDArray[np.float64], float]:
    """Mean gradient of passes over the same steps with the same weights, and the mean of the entropy they report."""
    learner = PPO(changed(trainer.config, {"pass_share": share}), trainer.policy)
    total, entropy = np.zeros(learner.adam.mean.shape), 0.0
    for _ in range(passes):
        learner.adam.mean[:] = 0.0
        trainer.rollout.begins[:] = 0
        learner.learn(trainer.rollout, trainer.tally)
        total += learner.adam.mean / 0.1  # Adam's mean of one gradient
        entropy += learner.statistics["entropy"]
    learner.close()
    return total / passes, entropy / passes


def test_the_drawn_samples_speak_for_all() -> None:
    every = {"learning_rate": 0.0, "kl": 0.0, "epochs": 1, "minibatch": 160, "sharpen": 0.0}
    with after_41_steps(changed(small("fast"), every)) as trainer:
        rng = np.random.default_rng(1)
        trainer.policy.arrays["w2"][:] += rng.standard_normal(trainer.policy.arrays["w2"].shape)
        trainer.rollout.rewards[rng.integers(0, 40, 8), np.arange(8) % 4] = [1, -1] * 4
        everything, entropy = gradient_of(trainer, 1.0, 1)
        one, _ = gradient_of(trainer, 0.3, 1)
        many, mean_entropy = gradient_of(trainer, 0.3, 150)
        size = np.linalg.norm(everything)
        assert np.linalg.norm(one - everything) > 0.1 * size
        assert np.linalg.norm(many - everything) < 0.1 * size
        assert mean_entropy == pytest.approx(entropy, rel=0.05)


def test_unlikely_actions_that_had_to_be_taken_are_tempered() -> None:
    probs = np.array([[RARE / 10, RARE / 10, RARE / 10, RARE, SELDOM * 1.1, 1.0]] * 2, np.float32).T
    advantages = np.array([[-2, -2, 2, -2, -2, -2]] * 2, np.float32).T
    planned = np.array([[1, 0, 3, 2, 1, 1], [2, 0, 1, 1, 1, 0]], np.int8).T
    temper(advantages, np.log(probs), planned)
    weak = SELDOM_WEIGHT
    np.testing.assert_allclose(advantages, np.array([[-0.2 * weak, -2, 2 * weak, -2 * weak, -2, -2]] * 2).T, rtol=1e-5)
