import numpy as np

from fastpong.envs.emulators import RESET, RESTORE, Emulators, step_head
from fastpong.envs.memory import zeros
from fastpong.envs.sticky import sticky_repeats


def test_a_message_is_taken_again_by_whoever_has_the_rows(engine: str) -> None:
    """Out of order, by others, with any seed: rows and message are all that there is."""
    envs, groups = range(7, 10), [range(2), range(2, 3)]
    arrays = zeros(3, engine)
    emulators = Emulators(envs, groups, engine=engine)
    emulators.bind(arrays)
    emulators.take(RESET)
    assert arrays["ended"].tolist() == [1, 1, 1] and arrays["screens"].any()
    for number in (0, 100, 63, 64, 2):
        message = step_head(0, number, 5) + b"\1\0"
        before = {name: array.copy() for name, array in arrays.items()}
        emulators.take(message)
        assert arrays["ended"].tolist() == [0, 0, 1]
        again = Emulators(envs, groups, engine=engine)
        again.bind(before)
        again.take(RESTORE)
        again.take(message)
        for name, array in arrays.items():
            np.testing.assert_array_equal(before[name], array)


def test_noise_is_that_of_env_step_and_seed() -> None:
    emulators = Emulators(range(7, 10), [range(2), range(2, 3)])
    for seed, number in ((1, 0), (1, 63), (1, 64), (2, 64), (1, 1000), (1, 0)):
        expected = sticky_repeats(seed, np.arange(7, 10), number, 1, 4, 0.25)[0]
        np.testing.assert_array_equal(emulators._repeats(0, number, seed), expected[:2])
        np.testing.assert_array_equal(emulators._repeats(1, number, seed), expected[2:])


def test_its_spaces_are_those_of_an_env(engine: str) -> None:
    arrays = zeros(1, engine)
    emulators = Emulators(range(1), [range(1)], num_actions=3, engine=engine)
    emulators.bind(arrays)
    emulators.take(RESET)
    shown = {name: np.asarray(arrays[name][0]) for name in ("screens", "rewards", "ended")}
    assert emulators.observation_space.contains(shown)
    assert emulators.action_space.contains(np.int64(2))
