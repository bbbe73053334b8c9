"""What can be set, what each preset changes, and what the command line sets; all without loading NumPy or Numba."""

import itertools
from collections.abc import Mapping
from pathlib import Path

from fastpong import __version__
from fastpong.config import GROUPS, PRESETS, allowed, find_setting, names_by_group, new_config, number, settings
from fastpong.config_sources import from_environment, parse_assignments, read_toml, to_toml
from fastpong.errors import UsageError, tell
from fastpong.parallel.machine import launched


def describe_settings(name: str | None) -> list[str]:
    """Return lines about one setting, or all by groups: default, what it may be, and its meaning.

    Raises `UsageError` for an unknown one.
    """
    if name:
        return _describe(find_setting(name).name)
    lines: list[str] = []
    for group, names in names_by_group().items():
        lines += ["", f"[{group}] {GROUPS[group]}", *itertools.chain(*map(_describe, names))]
    return lines[1:]


def _describe(name: str) -> list[str]:
    setting = settings()[name]
    return [f"  {name} = {number(setting.default)}  ({allowed(name)})", f"      {setting.metadata['help']}"]


def describe_presets() -> list[str]:
    """Return lines about each preset, with its changes to the defaults."""
    lines = []
    for preset, changes in PRESETS.items():
        lines.append(preset)
        lines += [f"  {name} = {number(value)}" for name, value in changes.items()] or ["  the defaults"]
    return lines


def changes_of(
    flags: Mapping[str, object], assignments: list[str], config_file: Path | None, resume: bool
) -> dict[str, object]:
    """Return the settings that the command line changes; raises `UsageError` if a new run cannot have them.

    Before the run of `resume` is read, nobody knows what it allows.

    `flags` are settings that have an option of their own (None: not given). They and `assignments`, ``KEY=VALUE``
    texts, go before variables of the environment, and these before `config_file`.
    """
    changes = read_toml(config_file)[0] if config_file is not None else {}
    changes |= from_environment(tell if launched()[0] == 0 else lambda text: None)
    changes |= _of_command_line(flags, assignments)
    if not resume:
        new_config(changes)
    return changes


def _of_command_line(flags: Mapping[str, object], assignments: list[str]) -> dict[str, object]:
    """Join them; the last of two assignments counts. Raises `UsageError` where an option says something else."""
    given = {name: value for name, value in flags.items() if value is not None}
    assigned = parse_assignments(assignments)
    for name in given.keys() & assigned.keys():
        if given[name] != assigned[name]:
            raise UsageError(f"{name} is given twice, as {given[name]} and as {assigned[name]}: leave out one")
    return given | assigned


def print_config(changes: dict[str, object]) -> None:
    """Print the settings that a new run would have, as its ``config.toml``."""
    text = to_toml(new_config(changes), {"fastpong": __version__})
    tell(*text.rstrip("\n").split("\n"), result=True)
