"""A game as a file: a GIF or MP4 film, or a PNG sheet of pictures. They are written while the game is played."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fastpong.arrays import U8
from fastpong.errors import FastpongError, UsageError, missing

_SHEET, _GAP, _CAPTION = 12, 8, 24  # pictures of a sheet; pixels between them, and below each
_SHORTEST = 2  # hundredths of a second that a picture of a GIF is shown


def check(out: Path) -> None:
    """Raise `UsageError` if there is no such type of file, or no such folder."""
    if out.suffix.lower() not in (".gif", ".mp4", ".png", ".html"):
        raise UsageError(f"--out ends in .gif, .mp4, .png or .html, not '{out.suffix}'")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.absolute().parent} to write to")


def write(pictures: Iterator[U8], out: Path, seconds: float, caption: Callable[[], str]) -> None:
    """Write pictures uint8 (210, 160, 3), each to be seen for so many seconds; `caption` is that of the latest.

    Raises `FastpongError` if a library for this type of file is missing, or the file cannot be written.
    """
    try:
        if out.suffix.lower() == ".mp4":
            _write_mp4(pictures, out, 1.0 / seconds)
        elif out.suffix.lower() == ".gif":
            _write_gif(pictures, out, seconds)
        else:
            _write_sheet(pictures, out, caption)
    except ModuleNotFoundError as error:
        library, extra = {"PIL": ("Pillow", "play"), "imageio_ffmpeg": ("ffmpeg", "video")}[str(error.name)]
        raise missing(f"writing {out.suffix}", library, extra) from None
    except OSError as error:
        raise FastpongError(f"cannot write {out}: {error.strerror or error}") from None


def _doubled(picture: U8) -> U8:
    return np.ascontiguousarray(picture.repeat(2, 0).repeat(2, 1))


def _write_gif(pictures: Iterator[U8], out: Path, seconds: float) -> None:
    """Write a film, of each picture the part that has changed: Pillow's own way would keep all of them in memory."""
    from PIL import GifImagePlugin, Image

    with out.open("wb") as file:
        before: U8 | None = None
        for shown, hundredths in in_hundredths(pictures, seconds):
            picture = _doubled(shown)
            top, left, bottom, right = (0, 0, *picture.shape[:2]) if before is None else _changed(before, picture)
            part = Image.fromarray(picture[top:bottom, left:right]).quantize(16, dither=Image.Dither.NONE)
            if before is None:
                file.writelines(GifImagePlugin.getheader(part, info={"loop": 0})[0])
            # A table of colours for each part: they are exact, Pong has fewer than ten.
            how = {"duration": 10 * hundredths, "include_color_table": True}
            file.writelines(GifImagePlugin.getdata(part, (left, top), **how))
            before = picture
        file.write(b";")


def in_hundredths(pictures: Iterator[U8], seconds: float) -> Iterator[tuple[U8, int]]:
    """Yield pictures of so many seconds each, and the hundredths of a second that each is shown, as a GIF counts them.

    Their sum follows the clock: 7, 6, 7 … for fifteen pictures a second. Programs show for ten hundredths what should
    be shown for less than two, so such pictures are left out.
    """
    shown: U8 | None = None
    since = number = 0
    for number, picture in enumerate(pictures):
        now = round(100 * seconds * number)
        if shown is None:
            shown = picture
        elif now - since >= _SHORTEST:
            yield shown, now - since
            shown, since = picture, now
    if shown is not None:
        yield shown, max(_SHORTEST, round(100 * seconds * (number + 1)) - since)


def _changed(before: U8, picture: U8) -> tuple[int, int, int, int]:
    """Return top, left, bottom and right of what has changed; one pixel if nothing has."""
    rows, columns = (np.flatnonzero((before != picture).any(axes)) for axes in ((1, 2), (0, 2)))
    return (int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1) if len(rows) else (0, 0, 1, 1)


def _write_sheet(pictures: Iterator[U8], out: Path, caption: Callable[[], str]) -> None:
    """Write twelve pictures, evenly spaced in time, each with its caption."""
    from PIL import Image, ImageDraw

    kept: list[tuple[str, U8]] = []
    stride = 1
    for number, picture in enumerate(pictures):
        if number % stride == 0:
            kept.append((caption(), picture))
        if len(kept) == 2 * _SHEET:  # a game has thousands of pictures
            kept, stride = kept[::2], 2 * stride
    chosen = [kept[i] for i in np.linspace(0, len(kept) - 1, _SHEET).astype(int)]
    height, width = 210 + _CAPTION, 160 + _GAP
    sheet = Image.new("RGB", (4 * width + _GAP, 3 * height + _GAP), "white")
    for number, (text, picture) in enumerate(chosen):
        left, top = _GAP + number % 4 * width, _GAP + number // 4 * height
        sheet.paste(Image.fromarray(picture), (left, top))
        ImageDraw.Draw(sheet).text((left, top + 212), text, fill="black")
    sheet.save(out)


def _write_mp4(pictures: Iterator[U8], out: Path, frames_per_second: float) -> None:
    """Write a film."""
    import imageio_ffmpeg

    with contextlib.closing(
        imageio_ffmpeg.write_frames(
            str(out), (320, 420), fps=frames_per_second, macro_block_size=1, ffmpeg_log_level="error"
        )
    ) as writer:
        writer.send(None)
        for picture in pictures:
            writer.send(_doubled(picture))
