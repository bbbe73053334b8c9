"""Watch a trained agent play one game: in a window, in the terminal, or as a file."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastpong.arrays import U8
from fastpong.commands import terminal, window
from fastpong.commands.agent import Agent
from fastpong.envs.base import LocalEnv
from fastpong.errors import FastpongError, UsageError
from fastpong.policy import make_policy
from fastpong.training.evaluate import evaluation_config
from fastpong.training.trainer import Actor

FRAMES_PER_SECOND = 60.0  # of the console
Picture = U8  # (210, 160, 3)

_SHEET, _GAP, _CAPTION = 12, 8, 24  # pictures of a sheet; pixels between them, and below each


class Match:
    """One game of a trained agent: the first one that `fastpong.training.evaluate.evaluate` plays."""

    def __init__(self, agent: Agent):
        self.config, self._greedy = evaluation_config(agent.config, 1, agent.seed), not agent.sample
        policy = make_policy(self.config)
        policy.weights.load(agent.weights)
        self._env = LocalEnv(self.config)
        self._actor = Actor(self.config, self._env, policy)
        self.score = [0, 0]  # agent, opponent
        self.steps = 0

    def pictures(self, max_steps: int | None = None) -> Iterator[Picture]:
        """Play to the end, or for `max_steps`, and yield the screen after each step: uint8 (210, 160, 3)."""
        actor, env = self._actor, self._env
        actor.start()
        over = False
        while not over and self.steps != max_steps:
            actor.step(self._greedy)
            actor.rollout.release(actor.rollout.rows - 1)
            reward, over = int(env.rewards[0]), bool(env.ended[0])
            self.score[0] += max(reward, 0)
            self.score[1] += max(-reward, 0)
            self.steps += 1
            if not over:  # the screen after the last step is the first one of the next game
                yield env.emulators.screen_rgb()


def run(agent: Agent, out: Path | None, in_terminal: bool, max_steps: int | None, speed: float, as_json: bool) -> None:
    """Play a game, show it, and print its result."""
    match = play(agent, out, in_terminal, max_steps, speed)
    won, lost = match.score
    if as_json:
        print(json.dumps({"agent": won, "opponent": lost, "steps": match.steps, "out": out and str(out)}))
    else:
        written = f"; written to {out}" if out else ""
        print(f"agent {won}, opponent {lost}, after {match.steps:,} steps{written}\n{agent}")


def play(
    agent: Agent, out: Path | None = None, in_terminal: bool = False, max_steps: int | None = None, speed: float = 1.0
) -> Match:
    """Play a game and show it: in a file, in the terminal, or else in a window.

    Raises `UsageError` for an unknown file type or a window without a display, and `FastpongError` if a library for
    the file type or the window is missing or the file cannot be written.
    """
    if out is not None and in_terminal:
        raise UsageError("choose one of --out and --terminal")
    if out is not None and out.suffix.lower() not in (".gif", ".mp4", ".png"):
        raise UsageError(f"--out ends in .gif, .mp4 or .png, not '{out.suffix}'")
    if out is not None and not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.absolute().parent} to write to")
    match = Match(agent)
    pictures = match.pictures(max_steps)
    seconds = match.config.frame_skip / FRAMES_PER_SECOND / speed
    if out is not None and out.suffix.lower() == ".mp4":
        _write_mp4(pictures, out, 1.0 / seconds)
    elif out is not None:
        _write_images(pictures, out, seconds, match)
    elif in_terminal and not sys.stdout.isatty():
        for _ in pictures:  # into a pipe goes the result alone
            pass
    else:
        show = terminal.show if in_terminal else window.show
        show(_paced(pictures, seconds), lambda: f"agent {match.score[0]}   opponent {match.score[1]}")
    return match


def _paced(pictures: Iterator[Picture], seconds: float) -> Iterator[Picture]:
    """Yield a picture every so many seconds; late ones at once."""
    due = time.perf_counter()
    for picture in pictures:
        due = max(due + seconds, time.perf_counter() - seconds)
        time.sleep(max(0.0, due - time.perf_counter()))
        yield picture


def _write_images(pictures: Iterator[Picture], out: Path, seconds: float, match: Match) -> None:
    """Write a GIF film, or a PNG sheet of twelve pictures."""
    try:
        from PIL import Image
    except ImportError:
        raise FastpongError(f"writing {out.suffix} needs Pillow: pip install 'fastpong[play]'") from None
    try:
        if out.suffix.lower() == ".png":
            _sheet(pictures, match).save(out)
            return
        # Doubled, and with at most 256 exact colours: Pong has fewer than ten.
        images = (Image.fromarray(p.repeat(2, 0).repeat(2, 1)).quantize(16, dither=Image.Dither.NONE) for p in pictures)
        milliseconds = max(20, round(100 * seconds) * 10)  # GIF counts in hundredths of a second
        next(images).save(out, save_all=True, append_images=images, duration=milliseconds, loop=0, optimize=False)
    except OSError as error:
        raise FastpongError(f"cannot write {out}: {error.strerror or error}") from None


def _sheet(pictures: Iterator[Picture], match: Match) -> Any:
    """Return a sheet of twelve pictures, evenly spaced in time, each with its step and the points so far."""
    from PIL import Image, ImageDraw

    kept: list[tuple[str, Picture]] = []
    stride = 1
    for number, picture in enumerate(pictures):
        if number % stride == 0:
            kept.append((f"step {match.steps}, {match.score[0]} : {match.score[1]}", picture))
        if len(kept) == 2 * _SHEET:  # a game has thousands of pictures
            kept, stride = kept[::2], 2 * stride
    chosen = [kept[i] for i in np.linspace(0, len(kept) - 1, _SHEET).astype(int)]
    height, width = 210 + _CAPTION, 160 + _GAP
    sheet = Image.new("RGB", (4 * width + _GAP, 3 * height + _GAP), "white")
    for number, (caption, picture) in enumerate(chosen):
        left, top = _GAP + number % 4 * width, _GAP + number // 4 * height
        sheet.paste(Image.fromarray(picture), (left, top))
        ImageDraw.Draw(sheet).text((left, top + 212), caption, fill="black")
    return sheet


def _write_mp4(pictures: Iterator[Picture], out: Path, frames_per_second: float) -> None:
    try:
        import imageio_ffmpeg
    except ImportError:
        raise FastpongError("writing .mp4 needs ffmpeg: pip install 'fastpong[video]'") from None
    try:
        with contextlib.closing(
            imageio_ffmpeg.write_frames(
                str(out), (320, 420), fps=frames_per_second, macro_block_size=1, ffmpeg_log_level="error"
            )
        ) as writer:
            writer.send(None)
            for picture in pictures:
                writer.send(np.ascontiguousarray(picture.repeat(2, 0).repeat(2, 1)))
    except OSError as error:
        raise FastpongError(f"cannot write {out}: {error}") from None
