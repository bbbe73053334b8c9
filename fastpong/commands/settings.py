"""``fastpong settings`` and ``fastpong presets``: what can be set, and what each preset changes."""

from fastpong.config import GROUPS, PRESETS, allowed, find_setting, names_by_group, number, settings


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
