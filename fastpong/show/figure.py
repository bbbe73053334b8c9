"""The picture of groups of runs, by matplotlib: their curves, and when they reached some scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fastpong.errors import UsageError, missing, printable
from fastpong.pong import WINNING
from fastpong.show.groups import BAND_FROM, Group, band, reached, spread

_COLOURS = ("#2369c9", "#d9730d", "#2e8540", "#8e3fb3", "#c92a4b", "#0b7a85", "#7a6a00", "#5c5f66")
_LEGEND = f"thin lines, dots: runs · bold: their median · band: its 95 % interval (bootstrap), from {BAND_FROM} runs on"


class Axis(NamedTuple):
    """An x axis: what it shows, the unit in short, and the digits that are told."""

    label: str
    unit: str
    digits: int


def draw(groups: Sequence[Group], axis: Axis, levels: Sequence[float], out: Path) -> None:
    """Draw the groups into a file, whose ending says which kind; with `levels` there is a panel beside the curves.

    Names are texts, not formulas. Raises `UsageError` for an unknown ending, `FastpongError` without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("plotting", "matplotlib", "plot") from None
    figure = Figure(figsize=(11 if levels else 8, 4.5), layout="constrained")
    panels = figure.subplots(1, 2 if levels else 1, squeeze=False, width_ratios=[5, 3] if levels else None)[0]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(axis.label)
    _curves(panels[0], groups, levels)
    if levels:
        _times(panels[1], groups, axis, levels)
    if any(len(group.runs) > 1 for group in groups):
        figure.supxlabel(_LEGEND, fontsize=8, color="0.4", x=0.01, ha="left")
    try:
        figure.savefig(out, dpi=150)
    except (ValueError, OSError) as error:
        raise UsageError(f"cannot write {out}: {error}") from None


def _curves(axes: Any, groups: Sequence[Group], levels: Sequence[float]) -> None:
    """Draw the runs of each group thin, its median bold with its band, and beside that its name."""
    ends = []
    for group, colour in _coloured(groups):
        alone, middle = len(group.runs) == 1, band(group)
        for run in group.runs:
            look = {"linewidth": 1.8} if alone else {"linewidth": 0.7, "alpha": 0.4}
            axes.plot(*zip(*run.points, strict=True), color=colour, **look)
        if middle and not alone:
            axes.plot(middle.x, middle.median, color=colour, linewidth=2.5)
        if middle and middle.low is not None:
            axes.fill_between(middle.x, middle.low, middle.high, color=colour, alpha=0.18, linewidth=0)
        ends.append(float(middle.median[-1]) if middle else group.runs[0].points[-1][1])
    axes.set_ylim(-WINNING - 0.5, WINNING + 0.5)
    axes.set_xlim(left=0)
    axes.set_ylabel("score, mean of the last 100 games")
    axes.set_yticks(sorted({-WINNING, -10, 0, 10, WINNING, *levels}))
    axes.grid(axis="y", alpha=0.25)
    size = 9 * min(1.0, 20 / len(groups))
    places = [-place for place in spread([-y for y in ends], 2.2, -WINNING, WINNING)]
    for (group, colour), place in zip(_coloured(groups), places, strict=True):
        axes.annotate(
            printable(group), (1.01, place), xycoords=axes.get_yaxis_transform(), color=colour, fontsize=size,
            va="center", annotation_clip=False, parse_math=False,
        )  # fmt: skip


def _times(axes: Any, groups: Sequence[Group], axis: Axis, levels: Sequence[float]) -> None:
    """Draw when each run reached each level as dots, with median and interval, and tell how many did not."""
    last = max(run.end for group in groups for run in group.runs)
    size = min(8.0, 240 / (len(groups) * len(levels)))
    for block, level in enumerate(levels):
        for row, (group, colour) in enumerate(_coloured(groups)):
            y, one = -block * (len(groups) + 1) - row, reached(group, level)
            if one.low is not None and one.high is not None:
                known = min(one.high, max(one.missed, default=last))  # as far as anybody has looked
                axes.plot([one.low, known], [y, y], color=colour, linewidth=size, alpha=0.25, solid_capstyle="butt")
            axes.plot(one.times, [y] * len(one.times), "o", color=colour, markersize=0.5 * size, alpha=0.6)
            if one.sure and len(group.runs) > 1:
                axes.plot([one.median], [y], "|", color=colour, markersize=2 * size, markeredgewidth=2.5)
            misses = one.told_misses(axis.digits)
            if misses:
                axes.annotate(
                    f"{misses} {axis.unit}", (last, y), (6, 0), textcoords="offset points", color=colour,
                    fontsize=size, va="center", annotation_clip=False,
                )  # fmt: skip
    middles = [-block * (len(groups) + 1) - (len(groups) - 1) / 2 for block in range(len(levels))]
    axes.set_yticks(middles, [f"to {level:g}" for level in levels])
    axes.set_ylim(-len(levels) * (len(groups) + 1) + 1, 1)
    axes.set_xlim(0, last)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _coloured(groups: Sequence[Group]) -> list[tuple[Group, str]]:
    return [(group, _COLOURS[number % len(_COLOURS)]) for number, group in enumerate(groups)]
