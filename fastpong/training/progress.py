"""Progress for people: a live curve in a terminal, plain lines elsewhere. All of it goes to stderr."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text


class Progress:
    """Where training shows how far it is; this one is silent, for all ranks but the first."""

    def note(self, text: str) -> None:
        """Say something once."""

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Show a line of ``metrics.jsonl``."""

    def close(self) -> None:
        """Leave the terminal as it was."""


KINDS = ("live", "lines", "none")


def make_progress(kind: str | None, title: str, past: Sequence[Mapping[str, Any]] = ()) -> Progress:
    """Return a display of one of `KINDS`; None: live in a terminal that can redraw, else lines.

    `past` holds the metrics of a resumed run.
    """
    if kind is None:
        kind = "live" if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb" else "lines"
    if kind == "live":
        return LiveProgress(Console(stderr=True), title, past)
    return PlainProgress(title) if kind == "lines" else Progress()


def clock(seconds: float) -> str:
    """Format seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe(line: Mapping[str, Any]) -> str:
    """One line of metrics in words; with windows, in those of ppg-pong."""
    if "window_reward" in line:
        return (
            f"{line['wall_s']:6.0f}, {line['steps']:010d} steps @ {line['steps_per_s']:6.0f}/s: "
            f"{line['window_reward']:5.1f} | {line['running_reward']:8.4f} @ {line['learning_rate']:.1e} lr, "
            f"{line['per_kup']:7.1f} r/Kup"
        )
    score = "–" if line["score"] is None else f"{line['score']:.2f}"
    rate = "–" if line["point_rate"] is None else f"{100 * line['point_rate']:.1f} %"
    return (
        f"{clock(line['wall_s']):>7}  {line['steps']:>11,} steps  {line['steps_per_s']:>7,.0f}/s  "
        f"{line['games']:>6,} games  score {score:>6}  points won {rate:>6}"
    )


class PlainProgress(Progress):
    """Lines of text."""

    def __init__(self, title: str):
        self.note(title)

    def note(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Print a line of metrics."""
        self.note(describe(line))


class LiveProgress(Progress):
    """A panel with the learning curve, redrawn in place."""

    def __init__(self, console: Console, title: str, past: Sequence[Mapping[str, Any]] = ()):
        self._title = title
        self._console = console
        self._note = ""
        self._lines = list(past)
        self._live = Live(self._panel(), console=console, refresh_per_second=4, transient=False)
        self._live.start()

    def note(self, text: str) -> None:
        """Show a remark under the curve until the next one."""
        self._note = text
        self._live.update(self._panel(), refresh=True)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Add a point to the curve."""
        self._lines.append(line)
        self._note = ""
        self._live.update(self._panel(), refresh=True)

    def close(self) -> None:
        """Stop redrawing; the last picture stays."""
        self._live.stop()

    def _panel(self) -> Panel:
        width = max(20, min(self._console.width, 100) - 4)
        parts: list[Text] = []
        if self._lines:
            parts.append(Text(describe(self._lines[-1]), style="bold"))
            points = [(line["steps"], line["score"]) for line in self._lines if line["score"] is not None]
            parts += [Text(row, style="green", no_wrap=True) for row in curve(points, width, 10)]
        if self._note:
            parts.append(Text(self._note, style="yellow"))
        return Panel(Group(*parts), title=self._title, title_align="left", width=width + 4)


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
