"""``fastpong plot``: learning curves of runs and groups of runs, as a picture, or in the terminal."""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from fastpong.commands.histories import X, read_groups
from fastpong.config import nearest, settings
from fastpong.errors import UsageError, printable, tell
from fastpong.pong import WINNING
from fastpong.show.curve import LABEL, braille
from fastpong.show.figure import Axis, draw
from fastpong.show.groups import Group, band, reached, spread

AXES = {
    "steps": (X("steps", 1e-6), Axis("million steps (4 frames each)", "M", 2)),
    "frames": (X("steps", 4e-6), Axis("million frames", "M", 2)),
    "minutes": (X("wall_s", 1 / 60), Axis("minutes", "min", 2)),
    "seconds": (X("wall_s", 1.0), Axis("seconds", "s", 0)),
}
"""What the x axis may show."""

LEVELS = (0.0, 10.0, 17.0)
"""Scores of the table, where none are given."""

_ROWS = 15


def run(paths: Sequence[Path], by: str | None, x: str, to: str | None, out: Path | None) -> None:
    """Draw the runs into `out`, and say so; or print a curve and a table.

    `by` has names of settings, `to` has scores, with commas; `x` is one of `AXES`. A run without a curve is left out,
    which is told. Raises `UsageError` if none is left, or for what is no such name or number; `FastpongError` without
    matplotlib, which only a picture needs.
    """
    if x not in AXES:
        raise UsageError(f"--x is one of {', '.join(AXES)}, not '{x}'")
    keys, levels = _keys(by), _levels(to)
    if levels is None:
        levels = [] if out else [*LEVELS]
    groups, complaints = read_groups(paths, keys, AXES[x][0], levels)
    for complaint in complaints:
        tell(f"{complaint}: left out")
    axis = AXES[x][1]
    if out:
        draw(groups, axis, levels, out)
        tell(f"written to {out}", result=True)
    else:
        columns, rows = shutil.get_terminal_size((80, 24))
        drawn = curves(groups, axis, columns, min(_ROWS, max(4, rows - 4)))
        tell(*drawn, "", *table(groups, axis, levels, columns), result=True)


def _keys(by: str | None) -> list[str]:
    keys = by.split(",") if by else []
    for key in keys:
        if key not in settings():
            meant = nearest(key, settings())
            hint = f"did you mean {meant}?" if meant else "fastpong settings lists them"
            raise UsageError(f"--by takes names of settings, not '{key}': {hint}")
    return keys


def _levels(to: str | None) -> list[float] | None:
    if to is None:
        return None
    try:
        levels = [float(level) for level in to.split(",")]
    except ValueError:
        levels = [-WINNING - 1.0]
    if not all(-WINNING <= level <= WINNING for level in levels):
        raise UsageError(f"--to takes scores from {-WINNING} to {WINNING} with commas, as 0,10,17, not '{to}'")
    return sorted(set(levels))


def curves(groups: Sequence[Group], axis: Axis, width: int, height: int) -> list[str]:
    """Return the median of each group, or its only run, in `height` lines, with the names of the groups beside them."""
    names = [_short(printable(group), width // 3) for group in groups]
    wide = max(width - max(map(len, names)) - 1, LABEL + 20)
    end = max(one.end for group in groups for one in group.runs) or 1.0
    drawn = []
    for group in groups:
        middle = band(group) if len(group.runs) > 1 else None
        drawn.append([*zip(middle.x, middle.median, strict=True)] if middle else group.runs[0].points)
    ticks = {float(y): str(y) for y in (WINNING, 0, -WINNING)}
    lines = braille(drawn, wide, height, end, -WINNING, WINNING, 0, ticks)
    ends = [(height - 1) * (WINNING - points[-1][1]) / (2 * WINNING) for points in drawn]
    for name, row in zip(names, spread(ends, 1, 0, height - 1), strict=True):
        lines[round(row)] += f" {name}" if len(lines[round(row)]) == wide else f", {name}"
    scale = f" {end:.{axis.digits}f} {axis.label}"
    return [*lines, f"{' ' * LABEL}└0{'─' * (wide - LABEL - 2 - len(scale))}{scale}"]


def table(groups: Sequence[Group], axis: Axis, levels: Sequence[float], width: int) -> list[str]:
    """Return lines that tell when the runs of each group reached each level: median, interval, and how many.

    Names are cut to make them no longer than `width`.
    """
    head = ("group", "to", f"median, {axis.unit}", "95 % interval", "runs")
    rows = [head]
    for group in groups:
        name = printable(group.name)
        for level in levels:
            one = reached(group, level)
            median = f"{'' if one.sure else '> '}{one.median:.{axis.digits}f}"
            interval = ""
            if one.low is not None and one.high is not None:
                until = f"… {one.high:.{axis.digits}f}" if one.high < math.inf else "or later"
                interval = f"{one.low:.{axis.digits}f} {until}"
            runs = one.told_misses(axis.digits) or f"{len(group.runs)} of {len(group.runs)}"
            rows.append((name, f"{level:g}", median, interval, runs))
            name = ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    widths[0] = min(widths[0], max(8, width - sum(widths[1:]) - 2 * len(widths[1:])))
    lines = []
    for name, to, median, interval, runs in rows:
        told = _short(name, widths[0]).ljust(widths[0])
        cells = [told, to.rjust(widths[1]), median.rjust(widths[2]), interval.ljust(widths[3]), runs]
        lines.append("  ".join(cells).rstrip())
    return lines


def _short(name: str, length: int) -> str:
    return name if len(name) <= length else f"…{name[1 - length :]}"
