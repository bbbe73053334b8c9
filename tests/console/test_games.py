"""Steps of many consoles: the fast core against the plain one, all of the state, in play and far from it."""

from typing import Any, cast

import numpy as np
import pytest

from fastpong.arrays import U8
from fastpong.console.games import Games, first_state
from fastpong.console.state import FIELDS, RAM_BYTES, STATE_BYTES, records
from fastpong.console.step import Inputs, step_in_fast_core, step_in_plain_core
from fastpong.courts import courts_of
from fastpong.pong import MAX_FRAMES, SCREEN, STAY

ACTIONS, NOOP = 6, 2


class Arrays:
    """Arrays of some games, and the games."""

    def __init__(
        self, count: int, frame_skip: int = 1, extras: bool = False, max_frames: int = MAX_FRAMES, screens: bool = True,
        courts: bool = False,
    ):  # fmt: skip
        self.rows, self.screens = np.zeros((count, STATE_BYTES), np.uint8), np.zeros((count, *SCREEN), np.uint8)
        self.courts = np.zeros((count, 160, 3), np.uint64)
        self.rewards, self.ended = np.zeros(count, np.int8), np.zeros(count, np.int8)
        self.final, self.earlier = (np.zeros_like(self.screens) if extras else None for _ in range(2))
        images = self.screens if screens else None, self.courts if courts else None, self.final, self.earlier
        self.games = Games(self.rows, self.rewards, self.ended, *images, frame_skip, max_frames)
        self.games.reset(range(count))

    def all(self) -> list[Any]:
        arrays = self.rows, self.screens, self.courts, self.rewards, self.ended, self.final, self.earlier
        return [array for array in arrays if array is not None]

    def step_in_fast_core(self, inputs: Inputs, begin: int = 0) -> int:
        """Take a step up to what the fast core refuses; return its index."""
        games = self.games
        return step_in_fast_core(games._envs, games._extras, games._rules, inputs, games._saved, 0, begin)

    def step_in_plain_core(self, actions: U8, repeats: U8, others: U8) -> None:
        """Take a step with the twin."""
        games = self.games
        self.rewards[:], self.ended[:] = 0, 0  # of envs that stay
        for i in range(len(actions)):
            if actions[i] != STAY:
                inputs = Inputs(actions, others, repeats, 0, 0)
                step_in_plain_core(games._envs, games._extras, games._rules, inputs, 0, i)


def test_whatever_arrays_are_given_the_core_has_one_version() -> None:
    """A message's actions are read-only; a version more is half a minute more for a user with an empty cache."""
    arrays = Arrays(4)
    versions = cast(Any, step_in_fast_core).signatures
    message = np.frombuffer(bytes(4), np.uint8)
    for actions in (message, np.zeros(8, np.uint8)[::2]):
        arrays.games.step(range(4), actions, message)
    assert cast(Any, step_in_fast_core).signatures == versions and len(versions) == 1


def check_equal(fast: Arrays, plain: Arrays) -> None:
    for a, b in zip(fast.all(), plain.all(), strict=True):
        np.testing.assert_array_equal(a, b)


def held(rng: np.random.Generator, count: int) -> Any:
    """Yield actions uint8 (count,), each held for a while; sometimes the env stays."""
    actions = rng.integers(0, ACTIONS, count).astype(np.uint8)
    while True:
        fresh = rng.random(count) < 0.1
        actions[fresh] = rng.integers(0, ACTIONS, fresh.sum())
        yield np.where(rng.random(count) < 0.01, np.uint8(STAY), actions)


@pytest.mark.parametrize(
    ("frame_skip", "extras", "screens", "courts"),
    [
        (1, False, True, False), (4, True, True, False), (3, False, False, True), (1, True, True, False),
        (2, True, True, False), (1, False, False, True), (4, False, False, True),
    ],
)  # fmt: skip
def test_both_cores_play_the_same_games(frame_skip: int, extras: bool, screens: bool, courts: bool) -> None:
    """With both paddles, into the next game; games are cut short, in the middle of a step as well.

    Whatever images are wanted, they are the same: courts are what `draw_court` makes of screens.
    """
    count, rng = 3, np.random.default_rng(frame_skip)
    fast, plain = (Arrays(count, frame_skip, extras, 301, screens, courts) for _ in range(2))
    seen, ends = Arrays(count, frame_skip, max_frames=301), 0
    for actions, others, _ in zip(held(rng, count), held(rng, count), range(400 // frame_skip), strict=False):
        repeats = rng.integers(0, frame_skip + 1, count).astype(np.uint8)
        others = np.where(others == STAY, np.uint8(NOOP), others)
        fast.games.step(range(count), actions, repeats, others)
        plain.step_in_plain_core(actions, repeats, others)
        seen.games.step(range(count), actions, repeats, others)
        check_equal(fast, plain)
        if screens:
            np.testing.assert_array_equal(fast.screens, seen.screens)
        if courts:
            np.testing.assert_array_equal(fast.courts, courts_of(seen.screens))
        ends += fast.ended.sum()
    assert ends >= count and fast.games.steps_of_plain_core == 0


def test_courts_beside_screens() -> None:
    """Also after a reset, the end of a game, and for envs that stay."""
    both, rng, ends = Arrays(3, 4, max_frames=99, courts=True), np.random.default_rng(5), 0
    for actions, _ in zip(held(rng, 3), range(60), strict=False):
        np.testing.assert_array_equal(both.courts, courts_of(both.screens))
        both.games.step(range(3), actions, np.zeros(3, np.uint8))
        ends += both.ended.sum()
    assert ends == 6


@pytest.mark.parametrize("limit", [61, 64])
def test_what_the_end_of_a_game_leaves(limit: int) -> None:
    """In the middle of a step or with it: the first state and screen of the next game, and the last screen of this."""
    cut, whole, zero = Arrays(1, 4, extras=True, max_frames=limit), Arrays(1), np.zeros(1, np.uint8)
    for frame in range(limit):
        if frame % 4 == 0:
            assert not cut.ended[0]
            cut.games.step(range(1), zero, zero)
        whole.games.step(range(1), zero, zero)
    row, screen = first_state()
    assert cut.final is not None and cut.earlier is not None and cut.ended[0] and not cut.earlier.any()
    np.testing.assert_array_equal(cut.rows, row)
    np.testing.assert_array_equal(cut.screens, screen)
    np.testing.assert_array_equal(cut.final, whole.screens)
    assert (whole.screens != screen).any()


@pytest.mark.parametrize("mode", [0, 1, 7])
@pytest.mark.parametrize("difficulty", range(4))
def test_game_variants(mode: int, difficulty: int) -> None:
    """Also one that ALE does not know; where the fast core steps aside, that shows nowhere but in the time."""
    (row,), (screen,) = first_state(mode, difficulty)
    fast, plain = Arrays(1), Arrays(1)
    for arrays in (fast, plain):
        arrays.rows[0], arrays.screens[0] = row, screen
    rng = np.random.default_rng(mode)
    for actions, _ in zip(held(rng, 1), range(150), strict=False):
        others, repeats = np.full(1, NOOP, np.uint8), np.zeros(1, np.uint8)
        fast.games.step(range(1), actions, repeats)
        plain.step_in_plain_core(actions, repeats, others)
        check_equal(fast, plain)
    assert mode > 1 or fast.games.steps_of_plain_core == 0


def test_in_play_the_plain_core_is_never_needed() -> None:
    """From reset to the end of games: 60,000 frames."""
    count, rng = 30, np.random.default_rng(8)
    arrays, ends = Arrays(count, frame_skip=4), 0
    for _ in range(1250):
        arrays.games.step(range(count), rng.integers(0, ACTIONS, count).astype(np.uint8), np.zeros(count, np.uint8))
        ends += arrays.ended.sum()
    assert arrays.games.steps_of_plain_core == 0 and ends >= count


def changed_at_random(row: U8, rng: np.random.Generator) -> U8:
    """Return a row in which some fields have any value of their range, and some bytes of RAM any."""
    changed = row.copy()
    s, share = records(changed[None])[0], rng.choice([0.02, 0.1, 0.3])
    for field in FIELDS:
        if rng.random() < share and field.name not in ("PC", "S", "held", "frames"):
            s[field.name] = rng.integers(max(field.low, -99_999), min(field.high, 99_999) + 1, s[field.name].shape)
    some = rng.random(RAM_BYTES) < share
    s.ram[some] = rng.integers(0, 256, some.sum())
    return np.frombuffer(s.tobytes(), np.uint8)


@pytest.mark.parametrize("image", ["screens", "courts"])
def test_states_that_play_never_reaches(image: str) -> None:
    """What the fast core does not refuse is equal; what it refuses it leaves as it was."""
    rng, trials, frames, kinds = np.random.default_rng(6), 1000, 3, {"screens": False, "courts": False, image: True}
    played = Arrays(1, frame_skip=100, courts=True)
    played.games.step(range(1), np.zeros(1, np.uint8), np.full(1, 40, np.uint8))
    none, noop = np.zeros(1, np.uint8), np.full(1, NOOP, np.uint8)
    fast, plain, refused = Arrays(1, **kinds), Arrays(1, **kinds), 0
    for trial in range(trials):
        for arrays in (fast, plain):
            arrays.rows[0] = changed_at_random(played.rows[0], np.random.default_rng((6, trial)))
            arrays.screens[0], arrays.courts[0] = played.screens[0], played.courts[0]
            arrays.games.restore()
        for _ in range(frames):
            inputs = Inputs(rng.integers(0, ACTIONS, 1).astype(np.uint8), noop, none, 0, 0)
            plain.step_in_plain_core(inputs.actions, none, noop)
            before = fast.rows.copy()
            if fast.step_in_fast_core(inputs) == 0:
                refused += 1
                clipped = records(before)
                for field in FIELDS:
                    np.testing.assert_array_equal(
                        records(fast.rows)[field.name], np.clip(clipped[field.name], field.low, field.high)
                    )
                break
            check_equal(fast, plain)
    assert refused < trials * 0.7


def test_it_does_not_matter_who_is_stepped_together() -> None:
    count, rng = 5, np.random.default_rng(7)
    together, apart = Arrays(count, frame_skip=4), Arrays(count, frame_skip=4)
    for _ in range(60):
        actions, repeats = rng.integers(0, ACTIONS, (2, count)).astype(np.uint8)
        together.games.step(range(count), actions, repeats % 5)
        for part in (range(3, 5), range(1), range(1, 3)):
            apart.games.step(part, actions[part.start : part.stop], repeats[part.start : part.stop] % 5)
    check_equal(together, apart)


@pytest.mark.parametrize("screens", [True, False])
def test_a_row_is_all_of_the_state(screens: bool) -> None:
    """Copied into another console in the middle of a game, it goes on with the same bits, and so does its image."""
    kinds: Any = {"frame_skip": 4, "screens": screens, "courts": True}
    rng, first, second = np.random.default_rng(9), Arrays(2, **kinds), Arrays(1, **kinds)
    none = np.zeros(2, np.uint8)
    for step in range(400):
        actions = rng.integers(0, ACTIONS, 2).astype(np.uint8)
        first.games.step(range(2), actions, none)
        if step > 200:
            second.games.step(range(1), actions[1:], none[1:])
            np.testing.assert_array_equal(second.rows[0], first.rows[1])
            np.testing.assert_array_equal(second.screens[0], first.screens[1])
            np.testing.assert_array_equal(second.courts[0], first.courts[1])
        elif step == 200:
            second.rows[0] = first.rows[1]
            second.games.restore()
