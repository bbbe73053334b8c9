"""From screens to the images that learners of other libraries expect: binary courts, and stacks of 84×84 greys."""

import numpy as np

from fastpong.arrays import F32, I8, I64, U8, U64, Bool
from fastpong.courts import IS_SET
from fastpong.kernels.compile.jit import kernel
from fastpong.kernels.preprocess import EVEN_BYTES, PIXELS, TABLE, as_words, find_pixels
from fastpong.pong import COLOURS, COURT, COURT_TOP

_COLOURS = np.zeros((256, 3), np.uint8)
_COLOURS[list(COLOURS)] = list(COLOURS.values())
_GREYS = np.zeros(256, np.uint8)
for _index, (_red, _green, _blue) in COLOURS.items():
    _GREYS[_index] = round(0.2989 * _red + 0.5870 * _green + 0.1140 * _blue)  # as ALE does it

SIDE, FRAMES = 84, 4
"""Height and width of a grey image, and how many are stacked."""


@kernel
def equal_rows(screen: U64, row: int) -> bool:
    """Whether a row of a screen is like the one above."""
    different = np.uint64(0)
    for i in range(screen.shape[1]):
        different |= screen[row, i] ^ screen[row - 1, i]
    return bool(different == np.uint64(0))


@kernel
def draw_colours(
    screens: U64,  # (rows, 210, 20) palette indices, see `preprocess.as_words`
    rows: I64,  # (n,) the row of each env in `screens`
    members: I64,  # (n,) the envs
    images: U8,  # (envs, 210, 480) out: red, green and blue of each pixel
    words: U64,  # (envs, 210, 60) the same memory
) -> None:
    """Draw in colour. Most rows are like the one above, and are copied, so that it takes 4 µs a screen."""
    for i in range(len(members)):
        screen, env = screens[rows[i]], members[i]
        for y in range(screen.shape[0]):
            if y > 0 and equal_rows(screen, y):
                for k in range(words.shape[2]):
                    words[env, y, k] = words[env, y - 1, k]
                continue
            for x in range(8 * screen.shape[1]):
                index = (screen[y, x // 8] >> np.uint64(8 * (x % 8))) & np.uint64(255)
                for c in range(3):
                    images[env, y, 3 * x + c] = _COLOURS[index, c]


def in_colour(screens: U8) -> U8:
    """Return screens, uint8 (n, 210, 160) palette indices, as red, green and blue, uint8 (n, 210, 160, 3)."""
    images, everyone = np.empty((*screens.shape, 3), np.uint8), np.arange(len(screens))
    draw_in_colour(screens, everyone, everyone, images)
    return images


def in_grey(screens: U8) -> U8:
    """Return screens, uint8 of palette indices, in ALE's grey, uint8 of the same shape."""
    return _GREYS[screens]


def draw_in_colour(screens: U8, rows: I64, members: I64, images: U8) -> None:
    """Draw screens, uint8 (rows, 210, 160), into images, uint8 (envs, 210, 160, 3), as `draw_colours` does."""
    flat = images.reshape(*images.shape[:2], -1)
    draw_colours(as_words(screens), rows, members, flat, flat.view(np.uint64))


@kernel
def draw_courts(
    screens: U64,  # (rows, 210, 20)
    rows: I64,  # (n,)
    members: I64,  # (n,)
    images: U8,  # (envs, 160, 80) out: 1 where something is, for these envs
) -> None:
    """Draw the court as the policy of preset ``fast`` sees it. Twin: naive.court."""
    for i in range(len(members)):
        screen, image = screens[rows[i]], images[members[i]]
        image[:] = np.uint8(0)
        for row in range(COURT[0]):
            for part in range(screen.shape[1]):
                word = screen[COURT_TOP + row, part] & EVEN_BYTES
                if word != TABLE:  # of which nearly all is
                    for k in range(4):
                        image[row, 4 * part + k] = IS_SET[word >> np.uint64(16 * k) & np.uint64(0xFF)]


@kernel
def draw_differences(
    screens: U64,  # (rows, 210, 20)
    rows: I64,  # (n,)
    members: I64,  # (n,)
    begins: Bool,  # (n,) where a game begins: the difference is 0
    last: U8,  # (envs, 6400) in and out: the image of each env, 0 or 1
    images: I8,  # (envs, 80, 80) out: the image minus the one before
) -> None:
    """Draw the reference programs' input, −1, 0 or 1. Twin: naive.changes."""
    pixels = np.empty(PIXELS, np.int16)
    for i in range(len(members)):
        image, before = images[members[i]].reshape(-1), last[members[i]]
        for p in range(PIXELS):
            image[p] = -np.int8(before[p])
            before[p] = np.uint8(0)
        for k in range(find_pixels(screens[rows[i]], pixels)):
            image[pixels[k]] += np.int8(1)
            before[pixels[k]] = np.uint8(1)
        if begins[i]:
            image[:] = np.int8(0)


def _area_weights(source: int, target: int) -> tuple[I64, F32]:
    """Return for each target pixel the first of three source pixels, and their weights: the area that they share.

    The weights are float32, as OpenCV's `INTER_AREA` has them.
    """
    scale = source / target
    first, weights = np.zeros(target, np.int64), np.zeros((target, 3), np.float32)
    for t in range(target):
        first[t] = min(int(t * scale + 1e-9), source - 3)
        for k in range(3):
            s = first[t] + k
            weights[t, k] = max(0.0, min(s + 1.0, (t + 1) * scale) - max(float(s), t * scale)) / scale
    return first, weights


_COLUMN, _COLUMN_WEIGHTS = _area_weights(160, SIDE)
_ROW, _ROW_WEIGHTS = _area_weights(210, SIDE)


@kernel
def shrink(
    now: U64,  # (210, 20) a screen
    earlier: U64,  # (210, 20) the one of a frame before
    image: U8,  # (84, 84) out
) -> None:
    """Draw the brighter of two screens in grey, 84×84; each pixel is the mean of its area.

    Float32, summed in the order of OpenCV's `resize` with `INTER_AREA`, which gymnasium's `AtariPreprocessing` uses.
    Most rows are like the one above, and are computed once. Twin: naive.shrink.
    """
    rows, line = np.empty(now.shape[0], np.int64), np.empty(8 * now.shape[1], np.uint8)
    narrow, count = np.empty((now.shape[0], SIDE), np.float32), 0
    for row in range(now.shape[0]):
        if row == 0 or not equal_rows(now, row) or not equal_rows(earlier, row):
            for i in range(now.shape[1]):
                a, b = now[row, i], earlier[row, i]
                for k in range(8):
                    shift = np.uint64(8 * k)
                    line[8 * i + k] = max(_GREYS[(a >> shift) & np.uint64(255)], _GREYS[(b >> shift) & np.uint64(255)])
            for x in range(SIDE):
                first = _COLUMN[x]
                total = np.float32(line[first]) * _COLUMN_WEIGHTS[x, 0]
                total += np.float32(line[first + 1]) * _COLUMN_WEIGHTS[x, 1]
                narrow[count, x] = total + np.float32(line[first + 2]) * _COLUMN_WEIGHTS[x, 2]
            count += 1
        rows[row] = count - 1
    for y in range(SIDE):
        a, b, c = rows[_ROW[y]], rows[_ROW[y] + 1], rows[_ROW[y] + 2]
        if y > 1 and a == rows[_ROW[y - 2]] and c == a:  # weights repeat every other row
            image[y] = image[y - 2]
            continue
        for x in range(SIDE):
            total = narrow[a, x] * _ROW_WEIGHTS[y, 0]
            total += narrow[b, x] * _ROW_WEIGHTS[y, 1]
            total += narrow[c, x] * _ROW_WEIGHTS[y, 2]
            image[y, x] = np.uint8(np.rint(total))


@kernel
def draw_stacks(
    screens: U64,  # (rows, 210, 20)
    earlier: U64,  # (rows, 210, 20) one frame before
    rows: I64,  # (n,)
    members: I64,  # (n,)
    begins: Bool,  # (n,) where a game begins: its first image four times
    before: U8,  # (envs, 4, 84, 84) the stacks of the last step; may be `images`
    images: U8,  # (envs, 4, 84, 84) out, for these envs: the newest image is the last of each four
) -> None:
    """Draw the newest images, and move the others up."""
    for i in range(len(members)):
        old, stack = before[members[i]], images[members[i]]
        for k in range(FRAMES - 1):
            stack[k] = old[k + 1]
        shrink(screens[rows[i]], earlier[rows[i]], stack[FRAMES - 1])
        if begins[i]:
            for k in range(FRAMES - 1):
                stack[k] = stack[FRAMES - 1]
