"""Minibatches and Adam."""

import numpy as np
import pytest

from fastpong.arrays import I64, U8
from fastpong.config import make_config
from fastpong.kernels.conv import SIDE
from fastpong.kernels.structs import Loss, Transitions
from fastpong.learners.threads import Threads
from fastpong.learners.updater import Epochs, Samples, Updater
from fastpong.parallel.comm import Serial
from fastpong.policy import ConvNet, make_policy
from fastpong.rollout.buffer import Rollout
from tests.support.rollouts import fill

CONFIG = make_config("fast", {"num_envs": 2, "exploring_start_steps": 0})


@pytest.fixture(scope="module")
def rollout(real_screens: U8) -> Rollout:
    """40 steps of two envs."""
    rows, nothing = make_policy(CONFIG).make_rollout(2), np.zeros((40, 2), np.int8)
    fill(rows, real_screens, (nothing, nothing))
    return rows


def network() -> ConvNet:
    return ConvNet(CONFIG, np.random.default_rng(0))


def regression(rollout: Rollout, samples: Samples, ids: I64, minibatch_size: int) -> Epochs:
    """Epochs that only learn what the value should be, for each of the listed samples."""
    goals = np.random.default_rng(1).standard_normal(len(samples.samples)).astype(np.float32)
    nothing = np.zeros(len(goals), np.float32)
    transitions = Transitions(np.zeros(len(goals), np.uint8), nothing, nothing, goals)
    return Epochs(samples, transitions, Loss(0.0, 0.0, 0.0, 1.0, 0.0), ids, minibatch_size, CONFIG.hidden_units)


@pytest.mark.parametrize("minibatch_size", [1, 7, 20, 50])
def test_minibatches_cut_a_permutation(minibatch_size: int, rollout: Rollout) -> None:
    """Of 50 samples of all ranks 30 are listed here; the scale does not depend on how many of a minibatch these are."""
    rng = np.random.default_rng(3)
    listed = rng.permutation(80)[:30]
    ids = np.full(50, -1, np.int64)
    ids[rng.permutation(50)[:28]] = rng.permutation(30)[:28]  # two are listed, but not learned from
    epochs = regression(rollout, Samples(rollout.inputs, listed, Threads(1)), ids, minibatch_size)
    for _ in range(2):
        permutation = rng.permutation(50)
        epoch = epochs.shuffled(permutation)
        parts = [permutation[at : at + minibatch_size] for at in range(0, 50, minibatch_size)]
        assert len(parts) == epochs.count == len(epoch.scales)
        slots = np.full(30, -1, np.int64)
        for b, part in enumerate(parts):
            mine = [int(ids[place]) for place in part if ids[place] >= 0]
            begin, end = epoch.offsets[b : b + 2]
            assert epoch.sample_ids[begin:end].tolist() == mine
            assert epoch.samples[begin:end].tolist() == listed[mine].tolist()
            assert epoch.scales[b] == 1 / len(part)
            slots[mine] = b * 2**32 + np.arange(len(mine))
        assert epoch.slots.tolist() == slots.tolist()
        assert len(epoch.grad_hidden) >= max(np.diff(epoch.offsets))


def trained(rollout: Rollout, threads: int, epochs: int) -> tuple[ConvNet, Updater, list[float]]:
    """A network after so many epochs of one minibatch; and the squared error before each."""
    net, two = network(), Threads(threads)
    updater = Updater(net, Serial(), two)
    batch = regression(rollout, Samples(rollout.inputs, np.arange(6, 80), two), np.arange(74), 74)
    sums = [0.0]
    for _ in range(epochs):
        updater.run(batch.shuffled(np.arange(74)), 1e-2)
        sums.append(float(batch.statistics[:, 3].sum()))
    two.close()
    return net, updater, np.diff(sums).tolist()


def test_steps_lessen_the_error_and_change_only_what_has_a_gradient(rollout: Rollout) -> None:
    before = network()
    net, updater, errors = trained(rollout, 2, 12)
    assert updater.updates == 12 and errors[-1] < 0.8 * errors[0]
    changed = (net.arrays["w1"] != before.arrays["w1"]).any(1)
    moments = net.split(updater.state()["exp_avg"])["w1"].any(1)
    np.testing.assert_array_equal(changed, moments)
    assert changed[:SIDE].any() and not changed[:SIDE].all() and changed[SIDE]
    for name in ("kernel", "bias", "w2"):
        assert (net.arrays[name] != before.arrays[name]).any()


def test_an_updaters_state_is_complete(rollout: Rollout) -> None:
    net, updater, _ = trained(rollout, 1, 3)
    other, threads = network(), Threads(1)
    other.load(net.arrays)
    copy = Updater(other, Serial(), threads)
    copy.load_state({name: array.copy() for name, array in updater.state().items()})
    batch = regression(rollout, Samples(rollout.inputs, np.arange(6, 80), threads), np.arange(74), 20)
    for one in (updater, copy):
        one.run(batch.shuffled(np.arange(74)[::-1].copy()), 1e-2)
    assert updater.updates == copy.updates == 3 + 4
    np.testing.assert_array_equal(other.flat, net.flat)
