"""Write ``bench/RECORDS.md``: python -m bench.records.

``bench/records.toml`` names for each record its file in ``bench/runs``, commit, machine, command and page of the log;
the figures are computed from the file, or stand there if no file has them. One key says how: `to`, scores that runs
reach; `gap`, by how much two runs of a seed differ; `differs`, lines of metrics that do; `last`, the last score;
`greedy`, games after training; `over`, ratios within a round; `quartiles`, of such ratios; `speed`, steps/s; `frames`,
compared with ALE; `median`, the figure itself.
"""

import json
import statistics
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.ablation_tables import Lines, lines_of, reached

HERE = Path(__file__).parent
PAGE, RECORDS, RUNS = HERE / "RECORDS.md", HERE / "records.toml", HERE / "runs"

HEAD = ("what", "median", "worst", "of", "commit", "machine", "command", "file", "log")
CELL = 60  # characters, at most
MILLION = 1e6

Record = dict[str, Any]


class Figure(NamedTuple):
    """What a row says: what it is, its figures, and of how many seeds, rounds or games they are."""

    what: str
    median: str
    worst: str
    of: str


def text() -> str:
    """Return the page."""
    about = tomllib.loads(RECORDS.read_text(encoding="utf-8"))
    parts = [about["introduction"], *(f"- **{name}**: {what}" for name, what in about["machines"].items())]
    for table in about["tables"]:
        parts += [f"\n## {table['title']}\n\n{table['text']}", "| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
        cells = (row for record in table["records"] for row in rows(record, about["commands"]))
        parts += ["| " + " | ".join(row) + " |" for row in cells]
    parts.append("\n## Commands\n")
    parts += [f"- {name}: {command}" for name, command in about["commands"].items() if len(command) > CELL]
    return "\n".join(parts) + "\n"


def rows(record: Record, commands: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row of a record; a long command stands below the tables."""
    name = record.get("command")
    command = "" if name is None else commands[name] if len(commands[name]) <= CELL else f"[{name}](#commands)"
    file = f"[file](runs/{_names(record)[0].partition(':')[0]})" if "file" in record else ""
    log = f"[log](../docs/{record['log']})" if "log" in record else ""
    measure = next(FIGURES[key] for key in FIGURES if key in record)
    for figure in measure(record):
        yield (*figure, record.get("commit", ""), record.get("machine", ""), command, file, log)


def scores(record: Record) -> Iterator[Figure]:
    """Yield seconds, or million steps, until runs reach scores; None is half of the points."""
    for score in record["to"]:
        values = [_reached(lines, record, score) for lines in _runs(record).values()]
        there = sum(np.isfinite(values))
        what = "half of the points" if score == "half" else score
        cells = (_number(statistics.median(values), record), _number(max(values), record))
        yield Figure(f"{record['what']}: {what}", *cells, f"{there} of {_seeds(values)}")


def gaps(record: Record) -> Iterator[Figure]:
    """Yield by how many million steps two runs of a seed differ when they reach a score."""
    one, other = (_runs({**record, "file": name}) for name in _names(record))
    at = [[_reached(runs[seed], record, record["gap"]) for seed in one] for runs in (one, other)]
    gap = [abs(a - b) for a, b in zip(*at, strict=True)]
    yield Figure(
        record["what"], _number(statistics.median(gap), record), _number(max(gap), record), f"{len(gap)} pairs"
    )


def differences(record: Record) -> Iterator[Figure]:
    """Yield in how many lines two files differ in any of some columns, in the seeds and lines that both have."""
    one, other = (_runs({**record, "file": name}) for name in _names(record))
    pairs = [pair for seed in other if seed in one for pair in zip(one[seed], other[seed], strict=False)]
    found = sum(a[column] != b[column] for a, b in pairs for column in record["differs"])
    yield Figure(record["what"], str(found), str(found), f"{len(pairs)} lines")


def last_scores(record: Record) -> Iterator[Figure]:
    """Yield the score at the end of runs."""
    values = [lines[-1]["score"] for lines in _runs(record).values()]
    yield Figure(record["what"], _signed(statistics.median(values)), _signed(min(values)), _seeds(values))


def greedy_games(record: Record) -> Iterator[Figure]:
    """Yield the score of greedy games, a mean for each seed, and how many games were won."""
    arm = _stored(record["file"])
    played = [arm["seeds"][str(seed)]["greedy"] for seed in record["greedy"]]
    means = [one["mean"] for one in played]
    won = f"{sum(one['wins'] for one in played)} of {sum(one['games'] for one in played)} games won"
    yield Figure(record["what"], _signed(statistics.median(means)), _signed(min(means)), won)


def ratios(record: Record) -> Iterator[Figure]:
    """Yield how many times as fast as another one something is: median and least of the ratios within a round."""
    stored = _stored(record["file"])
    measured = stored["after"] if "after" in stored else stored if isinstance(stored, list) else [stored]
    where = record.get("where", {})
    found = [one["rounds"] for one in measured if all(one[key] == value for key, value in where.items())]
    for name, what in record["name"].items():
        values = []
        for rounds in found:
            pairs = zip(rounds[name], rounds[record["over"]], strict=True)
            # a list has the seconds of a core and of the clock; speeds are numbers
            values += [b[0] / a[0] if isinstance(a, list) else a / b for a, b in pairs]
        cells = f"{statistics.median(values):.3g}", f"{min(values):.3g}"
        yield Figure(what, *cells, f"{len(values)} rounds")


def quartiles(record: Record) -> Iterator[Figure]:
    """Yield how many times as fast as another vector env ours is: median and lower quartile."""
    for line in map(json.loads, (RUNS / record["file"]).read_text().splitlines()):
        for name in record["quartiles"]:
            if line["envs"] == record["envs"] and line["obs"] in record["obs"]:
                low, median, _ = line["times"][name]
                yield Figure(f"`{line['obs']}`, times {name}", f"{median:.3g}", f"{low:.3g}", record["of"])


def speeds(record: Record) -> Iterator[Figure]:
    """Yield steps/s."""
    for name, what in record["speed"].items():
        values = [one["speed"] for one in _stored(record["file"])["rounds"][name]]
        yield Figure(what, f"{statistics.median(values):,.0f}", f"{min(values):,.0f}", f"{len(values)} rounds")


def frames(record: Record) -> Iterator[Figure]:
    """Yield how many frames were compared, and how many differed."""
    lines = [json.loads(line) for line in (RUNS / record["file"]).read_text().splitlines()]
    counted = [(one["differences"], one["frames"]) for one in lines if one["seed"] in record["frames"]]
    differ, compared = map(sum, zip(*counted, strict=True))
    yield Figure(record["what"], str(differ), str(differ), f"{compared:,} frames")


def declared(record: Record) -> Iterator[Figure]:
    """Yield what the record itself says."""
    yield Figure(record["what"], record["median"], record.get("worst", ""), record.get("of", ""))


FIGURES: dict[str, Callable[[Record], Iterator[Figure]]] = {
    "to": scores,
    "gap": gaps,
    "differs": differences,
    "last": last_scores,
    "greedy": greedy_games,
    "over": ratios,
    "quartiles": quartiles,
    "speed": speeds,
    "frames": frames,
    "median": declared,
}


def _names(record: Record) -> list[str]:
    """Return the names of files, with the arm after a colon where a file has several."""
    return [record["file"]] if isinstance(record["file"], str) else record["file"]


def _stored(name: str) -> Any:
    return json.loads((RUNS / name).read_text())


def _runs(record: Record) -> dict[str, Lines]:
    """Return the lines of each seed of a record."""
    found: dict[str, Lines] = {}
    for name in _names(record):
        file, _, arm = name.partition(":")
        stored = _stored(file)
        seeds = stored["arms"][arm]["seeds"] if arm else {seed: run["lines"] for seed, run in stored["seeds"].items()}
        found |= {seed: lines_of(stored["columns"], lines) for seed, lines in seeds.items()}
    chosen = [str(seed) for seed in record.get("seeds", found)]
    return {seed: found[seed] for seed in chosen}


def _reached(lines: Lines, record: Record, score: float | str) -> float:
    value = reached(lines, record["by"], None if score == "half" else float(score))
    return value / MILLION if record["by"] == "steps" else value


def _number(value: float, record: Record) -> str:
    return "–" if np.isinf(value) else f"{value:.2f}" if record["by"] == "steps" else f"{value:.0f}"


def _seeds(values: list[float]) -> str:
    return "1 seed" if len(values) == 1 else f"{len(values)} seeds"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
