"""``fastpong settings`` and ``fastpong presets``: what can be set, and what each preset changes."""

import itertools

from fastpong.config import GROUPS, PRESETS, allowed, find_setting, names_by_group, number, settings


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
