"""``fastpong settings`` and ``fastpong presets``: what can be set, and what each preset changes."""

import math

from fastpong.config import GROUPS, PRESETS, find_setting, names_by_group, settings


def describe_settings(name: str | None) -> str:
    """Return one setting, or all by groups: default, what it may be, and its meaning; `UsageError` if unknown."""
    if name:
        return _describe(find_setting(name).name)
    groups = names_by_group().items()
    return "\n\n".join(f"[{group}] {GROUPS[group]}\n" + "\n".join(map(_describe, names)) for group, names in groups)


def _describe(name: str) -> str:
    setting = settings()[name]
    return f"  {name} = {number(setting.default)}  ({allowed(name)})\n      {setting.metadata['help']}"


def describe_presets() -> str:
    """Return each preset with its changes to the defaults."""
    lines = []
    for preset, changes in PRESETS.items():
        lines.append(preset)
        lines += [f"  {name} = {number(value)}" for name, value in changes.items()] or ["  the defaults"]
    return "\n".join(lines)


def allowed(name: str) -> str:
    """Return what a setting may be."""
    meta = settings()[name].metadata
    choices = list(PRESETS) if name == "preset" else meta.get("choices")
    if choices:
        return ", ".join(choices)
    low, high = _bound(meta["low"]), _bound(meta["high"])
    return f"{low} … {high}" if math.isfinite(meta["high"]) else f"{low} or more"


def _bound(value: float) -> str:
    if value == 2**63 - 1:
        return "2⁶³ − 1"
    return number(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def number(value: object) -> str:
    """Return a value as TOML and the command line read it, large integers in groups of digits."""
    return f"{value:_}" if isinstance(value, int) and value >= 10_000 else str(value)
