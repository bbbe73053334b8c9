"""How envs share one emulator until each has its own: no state changes hands on the way."""

import numpy as np
from ale_py import Action, ALEState

from fastpong.envs.pool import SHARED_STEPS, EmulatorPool


def step(pool: EmulatorPool, i: int, action: Action, frames: int) -> None:
    emulator = pool.own[i] or pool.swap_in(i)
    for _ in range(frames):
        emulator.act(action)
    if pool.own[i] is None:
        pool.swap_out(i)


def test_envs_take_turns_until_each_has_an_emulator() -> None:
    pool = EmulatorPool(3)
    for i in range(3):
        pool.restore(i, pool.first.state)
    for i, action in enumerate((Action.RIGHT, Action.LEFT, Action.NOOP)):
        step(pool, i, action, 30)
    states = [pool.save(i) for i in range(3)]
    assert len(set(states)) == 3
    for _ in range(SHARED_STEPS):
        pool.grow()
    for own in (0, 1, 2, 3, 3):
        assert sum(emulator is not None for emulator in pool.own) == own
        assert [pool.save(i) for i in range(3)] == states
        pool.grow()
    assert len({id(emulator) for emulator in pool.own}) == 3


def test_a_single_env_has_the_first_emulator_to_itself() -> None:
    pool = EmulatorPool(1)
    emulator = pool.own[0]
    assert emulator is not None
    step(pool, 0, Action.LEFT, 50)
    assert (emulator.getScreen() != pool.first.screen).any()
    pool.restore(0, pool.first.state)
    for _ in range(SHARED_STEPS + 2):
        pool.grow()
    assert pool.own[0] is emulator and pool.save(0) == pool.first.state.serialize()


def test_a_saved_state_goes_on_in_any_emulator_of_any_pool() -> None:
    pool, other = EmulatorPool(2), EmulatorPool(1)
    for i in range(2):
        pool.restore(i, pool.first.state)
    step(pool, 1, Action.RIGHT, 200)
    other.restore(0, ALEState(pool.save(1)))
    for either, i in ((pool, 1), (other, 0)):
        step(either, i, Action.LEFT, 100)
    assert pool.save(1) == other.save(0) != pool.save(0)
    for _ in range(SHARED_STEPS + 2):
        pool.grow()  # until the env has an emulator of its own, whose screen is its own as well
    screens = []
    for emulator in (pool.own[1], other.own[0]):
        assert emulator is not None
        emulator.act(Action.NOOP)
        screens.append(emulator.getScreen())
    np.testing.assert_array_equal(screens[0], screens[1])
