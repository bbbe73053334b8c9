"""Curves in lines of text and in SVG: the panel of a run, a notebook and ``fastpong plot`` draw theirs here."""

import html
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

Points = Sequence[tuple[float, float]]
"""A curve: x, which ascends, and y."""

Ticks = Mapping[float, str]
"""What stands beside the y axis, by y."""

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille character's dots, by column and row."""

LABEL = 6
"""Characters before the y axis."""


def sampled(points: Points, right: float, count: int) -> list[tuple[int, float]]:
    """Return a curve at those of `count` places between x = 0 and `right` that it has: their numbers, and y.

    Between points it is a straight line. Even a single point has a place.
    """
    x, y = np.array(points, np.float64).T
    first, last = (min(max(int(one / right * count), 0), count - 1) for one in (x[0], x[-1]))
    places = np.arange(first, last + 1)
    return list(zip(places.tolist(), np.interp((places + 0.5) * right / count, x, y).tolist(), strict=True))


def braille(
    curves: Sequence[Points], width: int, height: int, right: float, low: float, high: float, level: float, ticks: Ticks
) -> list[str]:
    """Draw curves in `height` lines of `width` characters, with a dotted line at `level` and labels of the y axis.

    x goes from 0 to `right`, y from `low` to `high`; what is outside stands at the edge. A character has two by four
    dots. A curve is joined: from one column of dots to the next there is no gap.
    """
    columns, lowest = width - LABEL - 1, 4 * height - 1

    def dot(y: float) -> int:
        return round(lowest * (high - min(max(y, low), high)) / (high - low))

    cells = [[0] * columns for _ in range(height)]
    for points in curves:
        dots = [(place, dot(y)) for place, y in sampled(points, right, 2 * columns)]
        for (_, before), (place, now) in pairwise([dots[0], *dots]):
            for row in range(min(now, before + 1), max(now, before - 1) + 1):
                cells[row // 4][place // 2] |= _DOTS[place % 2][row % 4]
    labels = {dot(y) // 4: label for y, label in ticks.items()}
    lines = []
    for row, line in enumerate(cells):
        blank = "┈" if row == dot(level) // 4 else " "
        drawn = "".join(chr(0x2800 + bits) if bits else blank for bits in line)
        lines.append(f"{labels.get(row, ''):>{LABEL}}│{drawn}")
    return lines


def svg(
    points: Points, right: float, low: float, high: float, level: float, ticks: Ticks, used: float, foot: str
) -> str:
    """Draw a curve with the same axes as SVG, 640×190; the x axis is bold for the share that is `used`, over `foot`."""
    left, wide, tall = 48, 580, 160

    def at(y: float) -> float:
        return 6 + tall * (high - min(max(y, low), high)) / (high - low)

    def line(x: float, y: float, style: str) -> str:
        return f'<line x1="{left}" x2="{left + x:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="gray" {style}/>'

    def text(x: float, y: float, words: str) -> str:
        style = 'font-size="12" fill="gray" text-anchor="end"'
        return f'<text x="{x}" y="{y:.1f}" {style}>{html.escape(words)}</text>'

    places = sampled(points, right, wide) if points else []
    drawn = " ".join(f"{left + place + 0.5:.1f},{at(y):.1f}" for place, y in [*places[:1], *places])  # one is a dot
    return "".join([
        '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="190">',
        *(text(left - 6, at(y) + 4, label) for y, label in ticks.items()),
        line(wide, at(level), 'stroke-dasharray="2 4"'), line(wide, at(low), ""),
        line(wide * min(used, 1.0), at(low), 'stroke-width="3"'), text(left + wide, at(low) + 18, foot),
        f'<polyline points="{drawn}" fill="none" stroke="seagreen" stroke-width="2" stroke-linecap="round"/>', "</svg>",
    ])  # fmt: skip
