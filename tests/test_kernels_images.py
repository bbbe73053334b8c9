import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from fastpong.kernels import images
from tests import naive

Golden = dict[str, npt.NDArray[np.generic]]

# Which of the 256 indices of ALE's palette come out empty was read off its RGB screens of 54 games.
RED_OF_TABLE, RED_OF_FRAME = 144, 109


def pixels_of(screen: npt.NDArray[np.uint8]) -> list[int]:
    out = np.zeros(6400, np.int16)
    count = images.find_pixels(images.as_words(np.ascontiguousarray(screen)[None])[0], out)
    return [int(i) for i in out[:count]]


def test_screens_become_the_seeds_images_bit_for_bit(golden: Golden) -> None:
    for screen, rgb, image in zip(golden["screens"], golden["rgb"], golden["images"], strict=True):
        ref = naive.preprocess(rgb[..., 0])
        comp = np.zeros(6400)
        comp[pixels_of(screen)] = 1
        np.testing.assert_array_equal(ref, image)
        np.testing.assert_array_equal(comp, image)


def test_observe_lists_the_golden_differences(golden: Golden) -> None:
    screens = images.as_words(np.ascontiguousarray(golden["screens"]))
    last_pixels, last_counts = np.zeros((1, 6400), np.int16), np.zeros(1, np.int64)
    changes, starts, lengths = np.zeros(50_000, np.int16), np.zeros(1, np.int64), np.zeros(1, np.int64)
    first, at = np.zeros(len(screens), np.int8), 0
    first[0] = 1
    game = np.zeros(1, np.int64)
    for t, x in enumerate(golden["x"]):
        begin = at
        at = images.observe(
            screens, np.array([t]), game, first, last_pixels, last_counts, changes, at, starts, lengths, False
        )  # fmt: skip
        assert (starts[0], lengths[0]) == (begin, at - begin)
        np.testing.assert_array_equal(images.dense(changes[begin:at]), x)


def test_real_screens_match_rgb_preprocessing() -> None:
    """Against ALE's own colours on a real game, through a second emulator that renders RGB."""
    import ale_py
    from ale_py import ALEInterface, roms

    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("frame_skip", 4)
    rom = roms.get_rom_path("pong")
    assert rom is not None
    ale.loadROM(rom)
    rng = np.random.default_rng(0)
    for _ in range(200):
        ale.act(int(rng.integers(3, 5)))
        ref = naive.find_pixels(naive.preprocess(ale.getScreenRGB()[..., 0]))
        assert pixels_of(ale.getScreen()) == ref


@given(st.lists(st.tuples(st.integers(0, 209), st.integers(0, 159), st.integers(0, 255)), max_size=60))
def test_any_screen(dots: list[tuple[int, int, int]]) -> None:
    screen = np.full((210, 160), 34, np.uint8)
    for row, column, index in dots:
        screen[row, column] = index
    empty = np.isin(screen, images.BACKGROUND)
    ref = naive.find_pixels(naive.preprocess(np.where(empty, RED_OF_TABLE, 255).astype(np.uint8)))
    assert pixels_of(screen) == ref


def test_a_full_screen_fits() -> None:
    assert pixels_of(np.full((210, 160), 14, np.uint8)) == list(range(6400))


positions = st.lists(st.integers(0, 6399), max_size=40, unique=True).map(sorted)


@given(positions, positions)
def test_difference(before: list[int], now: list[int]) -> None:
    changes = np.full(100, 99, np.int16)
    end = images.difference(
        np.array([*before, 0], np.int16), len(before), np.array([*now, 0], np.int16), len(now), changes, 3
    )
    ref = naive.difference(before, now)
    assert changes[3:end].tolist() == ref
    assert (changes[:3] == 99).all() and (changes[end:] == 99).all()
    np.testing.assert_array_equal(images.dense(changes[3:end]), naive.dense(ref))


def test_games_keep_their_own_last_image(real_screens: npt.NDArray[np.uint8]) -> None:
    """Two games in swapped slots, observed in two groups, list what each would list alone."""
    screens = images.as_words(real_screens)
    first = np.zeros(len(screens), np.int8)

    def run(game: int, times: list[int], together: bool) -> list[list[int]]:
        last_pixels, last_counts = np.zeros((2, 6400), np.int16), np.zeros(2, np.int64)
        starts, lengths, changes = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(30_000, np.int16)
        seen = []
        games = np.array([1, 0]) if together else np.array([game])
        for t in times:
            slots = np.array([t + 100, t]) if together else np.array([t + 100 * game])
            images.observe(screens, slots, games, first, last_pixels, last_counts, changes, 0, starts, lengths, False)
            seen.append(changes[starts[game] : starts[game] + lengths[game]].tolist())
        return seen

    for game in (0, 1):
        assert run(game, [50, 51, 52], True) == run(game, [50, 51, 52], False)


def test_the_image_follows_the_difference(real_screens: npt.NDArray[np.uint8]) -> None:
    screens, game = images.as_words(real_screens), np.zeros(1, np.int64)
    last_pixels, last_counts = np.zeros((1, 6400), np.int16), np.zeros(1, np.int64)
    changes, starts, lengths = np.zeros(30_000, np.int16), np.zeros(1, np.int64), np.zeros(1, np.int64)
    first = np.zeros(len(screens), np.int8)
    for t in (120, 121):
        images.observe(
            screens, np.array([t]), game, first, last_pixels, last_counts, changes, 0, starts, lengths, True
        )  # fmt: skip
    before, now = pixels_of(real_screens[120]), pixels_of(real_screens[121])
    assert len(now) > 5
    ref = naive.difference(before, now) + [6400 + pixel + 1 for pixel in now]
    assert changes[: lengths[0]].tolist() == ref
    assert images.dense(changes[: lengths[0]], 12800)[6400:].sum() == len(now)
