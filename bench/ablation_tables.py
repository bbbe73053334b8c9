"""The tables of `bench.ablation`: each arm's share of points, and steps and seconds to scores, beside the control's."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

Lines = list[dict[str, Any]]
Values = dict[str, float]
"""One measure by seed; nan where there is none."""

STEPS_SPANS = ((0.2e6, 1.2e6), (1.5e6, 2.5e6))
SECONDS_SPANS = ((8.0, 30.0), (30.0, 50.0))
"""Over which the share of points won is averaged."""

SCORES = (0, 10, 17, 18)


def share(lines: Lines, key: str, span: tuple[float, float]) -> float:
    """Return the mean share of points won over a span of steps or seconds, or nan if the lines do not span it."""
    told = [line for line in lines if line["point_rate"] is not None and key in line]
    if not told or told[0][key] > span[0] or told[-1][key] < span[1]:
        return float("nan")
    at = np.linspace(*span, 501)
    return float(np.interp(at, [line[key] for line in told], [line["point_rate"] for line in told]).mean())


def reached(lines: Lines, key: str, score: float | None) -> float:
    """Return the steps or seconds after which 100 games had a mean score, or, for None, half of the points were won.

    Infinity if that never was; nan if the lines do not tell, or if the first one says so: a late arm begins later.
    """
    if not lines or key not in lines[0]:
        return float("nan")
    for line in lines:
        if score is None:
            there = (line["point_rate"] or 0.0) >= 0.5
        else:  # an agent that began anew has no score at first
            there = line["games"] >= 100 and line["score"] is not None and line["score"] >= score
        if there:
            return float("nan") if line is lines[0] else float(line[key])
    return np.inf


def values(arm: dict[str, Any], measure: Callable[[Lines], float]) -> Values:
    """Return a measure of each seed of an arm."""
    return {seed: measure(lines_of(arm["columns"], run["lines"])) for seed, run in arm["seeds"].items()}


def lines_of(columns: list[str], rows: list[list[Any]]) -> Lines:
    """Return the lines of metrics of a stored run."""
    return [dict(zip(columns, row, strict=True)) for row in rows]


def difference(arm: Values, control: Values, digits: int) -> str:
    """Return the mean difference of pairs of seeds, with its standard error; nothing of fewer than two, or of none."""
    gaps = [value - control[seed] for seed, value in arm.items() if seed in control]
    gaps = [gap for gap in gaps if np.isfinite(gap)]
    if len(gaps) < 2 or not any(gaps):
        return ""
    mean, error = statistics.mean(gaps), statistics.stdev(gaps) / len(gaps) ** 0.5
    return f"{mean:+.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def mean_cell(arm: Values, control: Values, digits: int, is_control: bool) -> str:
    """Return the mean of the seeds, and how far it is from the control's."""
    known = [value for value in arm.values() if np.isfinite(value)]
    if not known:
        return ""
    gap = "" if is_control else difference(arm, control, digits)
    return f"{statistics.mean(known):.{digits}f}" + (f" ({gap})" if gap else "")


def time_cell(arm: Values, control: Values, ends: Values, scale: float, is_control: bool) -> str:
    """Return median and worst of the seeds, how many never came there, and the mean difference from the control.

    For the difference what came there after the earlier end of both runs, `ends`, counts as if it had then.
    """
    digits = 2 if scale > 1 else 0
    known = [value / scale for value in arm.values() if not np.isnan(value)]
    if not known:
        return ""
    median, there = statistics.median(known), [value for value in known if np.isfinite(value)]
    missing = len(known) - len(there)
    notes = [f"worst {max(there):.{digits}f}"] if there else []
    notes += [f"{missing} of {len(known)} not"] if missing else []
    ours, theirs = ({seed: min(one[seed], end) / scale for seed, end in ends.items()} for one in (arm, control))
    gap = "" if is_control else difference(ours, theirs, digits or 1)
    return f"{'–' if np.isinf(median) else f'{median:.{digits}f}'} ({'; '.join(notes)})" + (f"; {gap}" if gap else "")


def _half(arms: dict[str, Any], key: str, scale: float, unit: str, spans: tuple[tuple[float, float], ...]) -> list[str]:
    """Return the table by steps or by seconds."""
    control = arms["control"]
    digits = ".1f" if scale > 1 else ".0f"
    shares = [f"share of points {begin / scale:{digits}}–{end / scale:{digits}} {unit}" for begin, end in spans]
    rows = [["arm", "seeds", *shares, f"{unit} to half of the points", *(f"to {score}" for score in SCORES)]]

    def end(lines: Lines) -> float:
        return float(lines[-1][key]) if key in lines[-1] else float("nan")

    for name, arm in ({"control": control} | arms).items():
        cells = [name, str(len(arm["seeds"]))]
        for span in spans:
            both = [values(one, lambda lines, span=span: share(lines, key, span)) for one in (arm, control)]  # type: ignore[misc]
            cells.append(mean_cell(both[0], both[1], 3, arm is control))
        last, of_control = values(arm, end), values(control, end)
        ends = {seed: min(step, of_control[seed]) for seed, step in last.items() if seed in of_control}
        for score in (None, *SCORES):
            both = [values(one, lambda lines, score=score: reached(lines, key, score)) for one in (arm, control)]  # type: ignore[misc]
            cells.append(time_cell(both[0], both[1], ends, scale, arm is control))
        rows.append(cells)
    return _markdown(rows)


def _greedy(arms: dict[str, Any]) -> list[str]:
    """Return the table of greedy games; older files have those of the last weights alone."""

    def at(arm: dict[str, Any], when: str) -> Values:
        played = {seed: run.get("greedy", {}) for seed, run in arm["seeds"].items()}
        return {seed: float(greedy.get(when, "nan")) for seed, greedy in played.items()}

    times = [*dict.fromkeys(t for arm in arms.values() for run in arm["seeds"].values() for t in run.get("greedy", {}))]
    times = [when for when in times if when == "mean" or when.isdigit()]
    rows = [["arm", *("greedy, last weights" if when == "mean" else f"greedy after {when} s" for when in times)]]
    for name, arm in ({"control": arms["control"]} | arms).items():
        both = [(at(arm, when), at(arms["control"], when)) for when in times]
        rows.append([name, *(mean_cell(ours, theirs, 2, name == "control") for ours, theirs in both)])
    return _markdown(rows) if times else []


def _markdown(rows: list[list[str]]) -> list[str]:
    filled = [column for column in range(len(rows[0])) if any(row[column] for row in rows[1:])]
    lines = ["| " + " | ".join(row[column] for column in filled) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(filled), *lines[1:]]


def tables(arms: dict[str, Any]) -> str:
    """Return Markdown tables of all arms, ``control`` among them: by steps, by seconds, of greedy games."""
    by_steps, by_seconds = _half(arms, "steps", 1e6, "M", STEPS_SPANS), _half(arms, "wall_s", 1.0, "s", SECONDS_SPANS)
    seconds = by_seconds if by_seconds[0].count("|") > 3 else []
    return "\n\n".join("\n".join(part) for part in (by_steps, seconds, _greedy(arms)) if part)
