"""Write ``docs/settings.md`` from the code that defines settings, metrics and presets: python docs/make_settings.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastpong.commands.settings import allowed, number
from fastpong.config import GROUPS, PRESETS, names_by_group, settings
from fastpong.runs.metrics import METRICS

PATH = Path(__file__).parent / "settings.md"

INTRODUCTION = """\
# Settings

`--set key=value` changes any of these for a run; so does a TOML file for `--config`, where each group is a table, or
a variable of the environment, as `FASTPONG_GAMMA=0.9`. Options come before variables, these before files, and these
before the preset. A run writes its settings to `config.toml` in its folder. Steps are agent steps of `frame_skip`
frames, summed over all envs. `fastpong settings` prints them; `python docs/make_settings.py` writes this page.
"""

METRICS_TEXT = """\
## Metrics

Each line of `metrics.jsonl` in a run folder is one JSON object with these keys. A value that does not exist yet is
null. Keys of a learner appear with its first batch.
"""

PRESETS_TEXT = """\
## Presets

`--preset NAME` starts from other defaults. [Reference programs](reference-programs.md) says what they reproduce.
"""

LEARNERS = {"ppo": "PPO only", "reinforce": "REINFORCE only", "ray": "preset `ray` only", "ppg": "preset `ppg` only"}


def text() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *groups(), METRICS_TEXT, *metrics(), PRESETS_TEXT, *presets()])


def groups() -> Iterator[str]:
    """Yield a section for each group of settings."""
    known = settings()
    for group, names in names_by_group().items():
        rows = [
            (f"`{n}`", f"`{number(known[n].default)}`", range_of(n, known[n]), with_learner(known[n], group))
            for n in names
        ]
        yield f"## `[{group}]`: {GROUPS[group]}\n"
        yield table(("setting", "default", "range", "meaning"), rows)


def metrics() -> Iterator[str]:
    """Yield the table of metrics."""
    rows = [
        (f"`{key}`", metric.unit, metric.meaning + (f" ({LEARNERS[metric.only]})" if metric.only else ""))
        for key, metric in METRICS.items()
    ]
    yield table(("key", "unit", "meaning"), rows)


def presets() -> Iterator[str]:
    """Yield the table of presets."""
    rows = []
    for preset, changes in PRESETS.items():
        what = ", ".join(f"`{name} = {number(value)}`" for name, value in changes.items())
        rows.append((f"`{preset}`", what or "none: these are the defaults"))
    yield table(("preset", "changes"), rows)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table, with an empty line after it."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def range_of(name: str, setting: Any) -> str:
    """Return what a setting may be, with choices as code."""
    words = name == "preset" or "choices" in setting.metadata
    return ", ".join(f"`{choice}`" for choice in allowed(name).split(", ")) if words else allowed(name)


def with_learner(setting: Any, group: str) -> str:
    """Return the meaning of a setting, and the learner that alone uses it unless its group says so."""
    only = setting.metadata["algorithm"]
    named = group in ("ppo", "late", "starts", "reinforce")
    return str(setting.metadata["help"]) + (f" ({LEARNERS[only]})" if only and not named else "")


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
