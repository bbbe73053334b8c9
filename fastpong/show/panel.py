"""The panel of a run, in a terminal and below a notebook's cell: what it does now, how it plays, what is left of it.

The curve is the share of points won: it is known from the first line of metrics on, and does not lag as the score does.
It grows towards the limit that ends the run first: the empty part of the x axis is the time left.
"""

import contextlib
import html
import math
import os
import sys
import textwrap
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from fastpong import __version__
from fastpong.config import Config
from fastpong.errors import printable, tell
from fastpong.limits import Limits
from fastpong.pong import WINNING
from fastpong.rollout.episode_stats import RECENT
from fastpong.show.curve import LABEL, Points, braille, svg
from fastpong.show.progress import KarpathyProgress, PlainProgress, Progress, clock

KINDS = ("live", "lines", "none")

_AXIS: dict[str, Any] = {"low": 0, "high": 100, "level": 50, "ticks": {100: "100 %", 50: "even", 0: "0 %"}}
_ROWS = 12
"""Lines of the curve at most."""


def can_redraw() -> bool:
    """Return whether stderr is a terminal that lets lines be drawn over one another."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def make_progress(
    kind: str | None, config: Config, folder: Path, past: Sequence[Mapping[str, Any]] = (), limits: Limits | None = None
) -> Progress:
    """Return a display of one of `KINDS`; None: live in a notebook or a terminal that can redraw, else lines.

    `past` holds the metrics of a resumed run. Lines of preset ``karpathy`` have those of its program among them.
    """
    ipython: Any = sys.modules.get("IPython")
    in_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    if kind is None:
        kind = "live" if can_redraw() or in_notebook else "lines"
    title = f"fastpong {__version__} · preset {config.preset} · run {folder}"
    if kind == "live":
        course = Course(config.target_score, limits or Limits(), past)
        return NotebookProgress(title, course) if in_notebook else LiveProgress(Console(stderr=True), title, course)
    if kind == "none":
        return Progress()
    return KarpathyProgress(title, config.num_envs) if config.preset == "karpathy" else PlainProgress(title)


class View(NamedTuple):
    """A curve of points won in per cent, the end of its x axis, the share of it that is over, and what is left."""

    points: Points
    end: float
    used: float
    left: str


class Course:
    """How far a run is: its lines of metrics, the limits of this session, and the target score.

    `past` are the lines of the sessions before.
    """

    def __init__(self, target: float, limits: Limits, past: Sequence[Mapping[str, Any]] = ()):
        self.limits, self._target, self._lines = limits, target, list(past)
        self._rates = _rates(self._lines)
        self._earlier = past[-1]["wall_s"] if past else 0.0  # seconds of those sessions

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line; what a killed session has written later is no more."""
        self._earlier = line["wall_s"] - self.limits.seconds()
        self._lines = [*(one for one in self._lines if one["steps"] < line["steps"]), line]  # another thread draws them
        self._rates = _rates(self._lines)

    def view(self, brief: bool) -> View:
        """Return the curve up to now; `brief`: what is left in few words."""
        lines, limits, gone = self._lines, self.limits, self.limits.seconds()
        now = self._earlier + gone
        steps, speed = (lines[-1]["steps"], lines[-1]["steps_per_s"]) if lines else (0, 0.0)
        ends = [(math.inf, "wall_s", now, now, f"{clock(gone)} gone")]
        if limits.minutes:
            seconds = 60 * limits.minutes
            left = clock(max(0.0, seconds - gone)) + " left" + ("" if brief else f" of {clock(seconds)}")
            ends.append((seconds - gone, "wall_s", self._earlier + seconds, now, left))
        if limits.steps:
            seconds = (limits.steps - steps) / speed if speed > 0 else math.inf
            left = f"about {clock(max(0.0, seconds))} left" if seconds < math.inf else f"{clock(gone)} gone"
            left += "" if brief else f" of {limits.steps:,} steps"
            ends.append((seconds, "steps", limits.steps, steps, left))
        _, key, end, at, left = min(ends[1:] or ends, key=lambda one: one[0])
        points = sorted((line[key], rate) for line, rate in self._rates)
        goal = f", or a score of {self._target:g}" if self._target <= WINNING else ""
        end = max(end, 1e-3)
        return View(points, end, min(max(at / end, 0.0), 1.0), left + goal)

    def facts(self) -> list[list[str]]:
        """Return the newest numbers in words, in two lines; nothing before the first line of metrics."""
        if not self._lines:
            return []
        line = self._lines[-1]
        games = "1 game" if line["games"] == 1 else f"{line['games']} games"
        games = f"the last {RECENT} games" if line["games"] >= RECENT else games
        of = "" if line.get("reinits") else f" of {games}"  # of an agent that began anew the score may have fewer
        score = "no score yet" if line["score"] is None else f"score {line['score']:+.1f}{of}"
        won = f"points won {self._rates[-1][1]:.0f} %" if self._rates else "no points yet"
        phase = [f"{line['phase']} phase"] if "phase" in line else []
        return [[score, won], [f"{line['steps']:,} steps", f"{line['steps_per_s']:,.0f}/s", *phase]]


def _rates(lines: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], float]]:
    """Return the share of points won in per cent with each line that knows it.

    A line of few steps, as a session has at its end, would show luck: it counts those of the line before as well.
    """
    rates: list[tuple[Mapping[str, Any], float]] = []
    before, steps = 0, 0
    for line in (line for line in lines if line["point_rate"] is not None):
        rate, span = 100 * line["point_rate"], line["steps"] - steps
        if rates and 0 <= span < before / 2:
            rate = (rate * span + rates[-1][1] * before) / (span + before)
        rates.append((line, rate))
        before, steps = span, line["steps"]
    return rates


class PanelProgress(Progress, ABC):
    """What a panel shows; the subclasses draw it in `_redraw`."""

    def __init__(self, title: str, course: Course):
        self._title, self._course, self._closed = printable(title), course, False
        self._notes, self._busy_since = ["starting"], course.limits.began

    def note(self, text: str) -> None:
        """Show a remark under the curve until the next one."""
        self._busy_since = math.inf
        self._notes = [*(self._notes if self._closed else []), printable(text)]
        self._redraw()

    def busy(self, text: str) -> None:
        """Show what is done, and for how many seconds, until something else is told."""
        self._notes, self._busy_since = [printable(text)], time.perf_counter()
        self._redraw()

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Add a point to the curve."""
        self._course.add(line)
        self._notes = []  # drawn with the next second: drawing takes milliseconds from training

    def _told(self) -> list[str]:
        notes, since = self._notes, time.perf_counter() - self._busy_since  # another thread may change them
        return [f"{notes[0]}: {since:.0f} s"] if since >= 0 and notes else notes

    @abstractmethod
    def _redraw(self) -> None: ...


class LiveProgress(PanelProgress):
    """A panel that is redrawn in place, and on a clean screen when the terminal has another size."""

    def __init__(self, console: Console, title: str, course: Course):
        super().__init__(title, course)
        self._console, self._size = console, console.size
        self._live = Live(get_renderable=self._in_size, console=console, refresh_per_second=1)
        self._live.start()

    def note(self, text: str) -> None:
        """Show a remark; once the panel is closed, as a line."""
        if self._closed:
            tell(text)
        else:
            super().note(text)

    def close(self) -> None:
        """Stop redrawing; the last picture stays."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._live.stop()

    def _redraw(self) -> None:
        with contextlib.suppress(OSError):
            self._live.refresh()

    def _in_size(self) -> Panel:
        """Return the panel in the present size of the terminal; the display asks for it each second."""
        if self._console.size != self._size:
            self._size = self._console.size
            self._console.clear()  # lines that the terminal has wrapped anew
        inner = max(20, self._size.width - 4)
        view, told = self._course.view(brief=inner < 60), self._told()
        facts = [line for parts in self._course.facts() for line in _wrapped(parts, inner)]
        head, foot = (facts, told) if facts else (told, [])  # what it does stands first, until there are numbers
        head += [""] * (2 + (inner < 52) + (inner < 40) - len(head))  # as many as there will be: nothing jumps
        rows = min(_ROWS, max(3, self._size.height - 5 - len(head)))
        curve = [Text(line, no_wrap=True) for line in _curve(view, inner, rows)]
        for line in curve:
            line.stylize("green", LABEL + 1)
        axis = Text(f"{' ' * LABEL}└{_bar(view.used, inner - LABEL - 1)}", no_wrap=True)
        return Panel(
            Group(*(Text(line, "bold") for line in head), *curve, axis, Text("\n".join(foot), "yellow")),
            title=Text(self._title), title_align="left", subtitle=Text(view.left), subtitle_align="right",
            width=inner + 4,
        )  # fmt: skip


def _wrapped(parts: Sequence[str], width: int) -> list[str]:
    """Join parts to lines; none is broken but one that is longer than a line."""
    text = "   ".join(part.replace(" ", "\xa0") for part in parts)
    return [line.replace("\xa0", " ") for line in textwrap.wrap(text, width)]


def _curve(view: View, width: int, rows: int) -> list[str]:
    return braille([view.points] if view.points else [], width, rows, view.end, **_AXIS)


def _bar(used: float, width: int) -> str:
    """Draw the x axis, bold up to now."""
    return ("━" * math.floor(used * width) + "╸").ljust(width, "─")[:width]


class NotebookProgress(PanelProgress):
    """The panel below a notebook's cell, drawn anew each second, so that its clock goes on."""

    def __init__(self, title: str, course: Course):
        from IPython.display import HTML, display

        super().__init__(title, course)
        self._html, self._ended = HTML, threading.Event()
        self._handle: Any = display(self._draw(), display_id=True)
        threading.Thread(target=self._tick, daemon=True).start()

    def close(self) -> None:
        """Stop the clock; the last picture stays, and remarks are added to it."""
        self._closed = True
        self._ended.set()
        self._redraw()

    def _tick(self) -> None:
        while not self._ended.wait(1.0):
            self._redraw()

    def _redraw(self) -> None:
        self._handle.update(self._draw())

    def _draw(self) -> Any:
        view = self._course.view(brief=False)
        facts = [" · ".join(part for parts in self._course.facts() for part in parts)] if self._course.facts() else []
        told = [f"<div>{html.escape(text)}</div>" for text in (self._title, *facts, *self._told())]
        curve = svg(view.points, view.end, used=view.used, foot=view.left, **_AXIS)
        return self._html("".join([*told[:2], curve, *told[2:]]))
