"""Progress for people: a live curve in a terminal, plain lines elsewhere. All of it goes to stderr.

Training does not depend on a reader: where nobody reads any more, nothing more is shown.
"""

import contextlib
import html
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from fastpong.errors import printable, tell
from fastpong.rollout.episode_stats import EpisodeStats


class Progress:
    """Where training shows how far it is; this one is silent, for all ranks but the first.

    The run ends as soon as `stop` is true.
    """

    stop = False

    def note(self, text: str) -> None:
        """Say something once."""

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Show a line of ``metrics.jsonl``."""

    def played(self, stats: EpisodeStats) -> None:
        """Tell of the new points and games."""

    def learned(self, steps: int, statistics: Mapping[str, Any]) -> None:
        """Tell of an update after so many steps."""

    def saved(self, steps: int, path: Path) -> None:
        """Tell of a checkpoint."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def can_redraw() -> bool:
    """Return whether stderr is a terminal that lets lines be drawn over one another."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


KINDS = ("live", "lines", "none")


def make_progress(
    kind: str | None, title: str, past: Sequence[Mapping[str, Any]] = (), preset: str = "", envs: int = 1
) -> Progress:
    """Return a display of one of `KINDS`; None: live in a notebook or a terminal that can redraw, else lines.

    `past` holds the metrics of a resumed run. Lines of `preset` ``karpathy`` have those of its program among them, for
    that number of `envs`.
    """
    ipython: Any = sys.modules.get("IPython")
    in_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    if kind is None:
        kind = "live" if can_redraw() or in_notebook else "lines"
    if kind == "live":
        return NotebookProgress(title, past) if in_notebook else LiveProgress(Console(stderr=True), title, past)
    if kind == "none":
        return Progress()
    return KarpathyProgress(title, envs) if preset == "karpathy" else PlainProgress(title)


def clock(seconds: float) -> str:
    """Format seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe(line: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """One line of metrics in words; of a batch in those of its program, for presets ``ray`` and ``ppg``.

    `before` is the line before it: if that one is of the same batch, this one is told as other presets do.
    """
    new_batch = not before or before["updates"] != line["updates"]
    if new_batch and "batch_games" in line:
        return (
            f"Batch {line['updates']} computed {line['batch_games']} rollouts in {line['batch_s']:.1f} seconds, "
            f"running mean is {line['running_reward']:.4f}"
        )
    if new_batch and "window_reward" in line:
        return (
            f"{line['wall_s']:6.0f}, {line['steps']:010d} steps @ {line['steps_per_s']:6.0f}/s: "
            f"{line['window_reward']:5.1f} | {line['running_reward']:8.4f} @ {line['learning_rate']:.1e} lr, "
            f"{line['per_kup']:7.1f} r/Kup"
        )
    score = "–" if line["score"] is None else f"{line['score']:.2f}"
    rate = "–" if line["point_rate"] is None else f"{100 * line['point_rate']:.1f} %"
    return (
        f"{clock(line['wall_s']):>6}  {line['steps']:>10,} steps  {line['steps_per_s']:>6,.0f}/s  "
        f"{line['games']:>5,} games  score {score:>6}  points won {rate:>6}"
    )


class PlainProgress(Progress):
    """Lines of text."""

    def __init__(self, title: str):
        self._before: Mapping[str, Any] | None = None
        self.note(title)

    def note(self, text: str) -> None:
        """Print a line."""
        tell(text)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Print a line of metrics."""
        self.note(describe(line, self._before))
        self._before = line


class KarpathyProgress(PlainProgress):
    """Lines of text, and among them those of the program of preset ``karpathy``: for each game and, of one env, point.

    Points of many envs are too many to read, and their number, that of the games so far, would say nothing.
    """

    def __init__(self, title: str, envs: int):
        super().__init__(title)
        self._with_points = envs == 1

    def played(self, stats: EpisodeStats) -> None:
        """Print them in order; the number is that of the games so far."""
        number = stats.games - len(stats.new_games)
        points = stats.new_points if self._with_points else []
        events = sorted(
            [(game.steps, 0, game.score, running) for game, running in stats.new_games]
            + [(point.steps, 1, point.reward, 0.0) for point in points],
            key=lambda event: event[:2],
        )
        for _, is_point, reward, running in events:
            if is_point:
                self.note(f"ep {number}: game finished, reward: {reward}{' !!!!!!!!' if reward > 0 else ''}")
            else:
                number += 1
                self.note(f"resetting env. episode reward total was {reward}. running mean: {running:.4f}")


class LiveProgress(Progress):
    """A panel with the learning curve, redrawn in place, and on a clean screen when the terminal has another size."""

    def __init__(self, console: Console, title: str, past: Sequence[Mapping[str, Any]] = ()):
        self._title = Text(printable(title))
        self._console = console
        self._note = ""
        self._lines = list(past)
        self._size = console.size
        self._panel = self._draw()
        self._live = Live(get_renderable=self._in_size, console=console, refresh_per_second=4)
        self._live.start()

    def note(self, text: str) -> None:
        """Show a remark under the curve until the next one."""
        self._note = printable(text)
        self._redraw()

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Add a point to the curve."""
        self._lines.append(line)
        self._note = ""
        self._redraw()

    def close(self) -> None:
        """Stop redrawing; the last picture stays."""
        with contextlib.suppress(OSError):
            self._live.stop()

    def _redraw(self) -> None:
        with contextlib.suppress(OSError):
            self._panel = self._draw()
            self._live.refresh()

    def _in_size(self) -> Panel:
        """Return the panel in the present size of the terminal; the display asks for it four times a second."""
        if self._console.size != self._size:
            self._size = self._console.size
            self._console.clear()  # lines that the terminal has wrapped anew
            self._panel = self._draw()
        return self._panel

    def _draw(self) -> Panel:
        width = max(20, min(self._console.width, 100) - 4)
        height = max(3, min(self._console.height - 6, 10))
        parts: list[Text] = []
        if self._lines:
            told = describe(*reversed(self._lines[-2:])).split()  # without what aligns lines
            parts.append(Text(printable(" ".join(told)), style="bold"))
            points = [(line["steps"], line["score"]) for line in self._lines if line["score"] is not None]
            parts += [Text(row, style="green", no_wrap=True) for row in curve(points, width, height)]
        if self._note:
            parts.append(Text(self._note, style="yellow"))
        return Panel(Group(*parts), title=self._title, title_align="left", width=width + 4)


class NotebookProgress(Progress):
    """The learning curve below a notebook's cell, drawn anew with each line of metrics."""

    def __init__(self, title: str, past: Sequence[Mapping[str, Any]] = ()):
        from IPython.display import HTML, display

        self._html, self._title, self._lines, self._note = HTML, title, list(past), ""
        self._handle: Any = display(self._draw(), display_id=True)

    def note(self, text: str) -> None:
        """Show a remark under the curve until the next one."""
        self._note = text
        self._handle.update(self._draw())

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Add a point to the curve."""
        self._lines.append(line)
        self.note("")

    def _draw(self) -> Any:
        told = describe(*reversed(self._lines[-2:])) if self._lines else ""
        points = [(line["steps"], line["score"]) for line in self._lines if line["score"] is not None]
        texts = "".join(f"<div>{html.escape(printable(text))}</div>" for text in (self._title, told, self._note))
        return self._html(texts + (svg_curve(points) if len(points) > 1 else ""))


def svg_curve(points: Sequence[tuple[float, float]]) -> str:
    """Draw a curve as SVG, 640×160, with its last x and its least and greatest y."""
    low, high = min(y for _, y in points), max(y for _, y in points)
    last, span = points[-1][0], max(high - low, 1.0)
    line = " ".join(f"{600 * x / last:.1f},{150 - 140 * (y - low) / span:.1f}" for x, y in points)
    text = '<text x="{}" y="{}" font-size="12" fill="gray">{}</text>'
    return (
        f'<svg width="640" height="170"><polyline points="{line}" fill="none" stroke="seagreen" stroke-width="2"/>'
        f"{text.format(0, 12, f'{high:.1f}')}{text.format(0, 165, f'{low:.1f}')}"
        f"{text.format(520, 165, f'{last / 1e6:.2f} M steps')}</svg>"
    )


def curve(points: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """Draw a curve in `height` lines of braille characters, two by four dots each.

    The x of `points` ascend from 0 on. Within `width` characters there is an axis label of 7; the last line is the x
    axis.
    """
    columns, rows = width - 7, height - 1
    if len(points) < 2:
        return ["the curve starts with the first games that end"]
    low = min(y for _, y in points)
    high = max(y for _, y in points)
    if high - low < 1.0:  # a flat curve is not blown up to look steep
        low, high = (low + high) / 2 - 0.5, (low + high) / 2 + 0.5
    last = points[-1][0]
    cells = [[0] * columns for _ in range(rows)]
    dots = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
    position = 0
    for x in range(2 * columns):
        at = last * (x + 0.5) / (2 * columns)
        if at < points[0][0]:
            continue
        while position + 1 < len(points) and points[position + 1][0] <= at:
            position += 1
        y = round((points[position][1] - low) / (high - low) * (4 * rows - 1))
        row, dot = divmod(4 * rows - 1 - y, 4)
        cells[row][x // 2] |= dots[x % 2][dot]
    lines = []
    for row, cell in enumerate(cells):
        label = f"{high:6.1f}" if row == 0 else f"{low:6.1f}" if row == rows - 1 else " " * 6
        lines.append(f"{label}│" + "".join(chr(0x2800 + bits) for bits in cell))
    scale = f"{last / 1e6:.2f} M steps"
    lines.append(" " * 6 + "└" + "0".ljust(columns - len(scale), "─") + scale)
    return lines
