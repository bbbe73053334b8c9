"""Where settings come from, and where they are kept: KEY=VALUE texts, variables of the environment, TOML files."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from fastpong import __version__, files
from fastpong.config import GROUPS, Config, check, names_by_group, nearest, settings, unknown
from fastpong.errors import UsageError

_MOST = 1 << 20  # bytes of a settings file


def parse_assignments(assignments: list[str]) -> dict[str, object]:
    """Turn ``["gamma=0.98", …]`` into a dict of checked values; raises `UsageError`."""
    changes: dict[str, object] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set wants key=value, not '{assignment}'")
        name = name.strip()
        changes[name] = check(name, text.strip())
    return changes


def from_environment(note: Callable[[str], object] = lambda text: None) -> dict[str, object]:
    """Return the settings that variables like ``FASTPONG_NUM_ENVS`` of the environment change; raises `UsageError`.

    They stand below options and above files. A variable with the name of no setting is a misspelt one, which is
    refused, or of another program (Kubernetes makes ``FASTPONG_PORT`` for a service of that name): that is noted.
    """
    changes: dict[str, object] = {}
    foreign = []
    for variable, text in os.environ.items():
        name = variable.removeprefix("FASTPONG_").lower()
        if not variable.startswith("FASTPONG_"):
            continue
        if name not in settings() and not nearest(name, settings(), 0.75):
            foreign.append(variable)
            continue
        try:
            changes[name] = check(name, text)
        except UsageError as error:
            raise UsageError(f"{variable} in the environment: {error}") from None
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        note(f"{foreign[0]}{more} in the environment: no setting of fastpong has that name")
    return changes


def read_toml(path: Path, note: Callable[[str], object] | None = None) -> tuple[dict[str, object], dict[str, object]]:
    """Read a settings file, such as the ``config.toml`` of a run.

    Returns the settings that it holds, checked, in their groups or not, and its table ``[about]`` (versions and the
    like). Raises `UsageError` if the file is missing, not TOML, of another version, or holds an impossible setting. An
    unknown one is an error as well; with `note`, which is then told, it is left out: it may be of an older fastpong.
    """
    try:
        data = files.read(path, _MOST, only_regular=note is not None)
        table = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    about = table.pop("about", {})
    if not isinstance(about, dict):
        raise UsageError(f"about is a table in a settings file, not {about!r} as in {path}")
    check_version(path, about.get("fastpong", __version__))
    flat: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict) and name not in GROUPS and not note:
            raise unknown("group", name, GROUPS)
        flat |= value if isinstance(value, dict) else {name: value}
    if note:
        for name in flat.keys() - settings().keys():
            note(f"{path} has {name!r}, which is no setting of fastpong {__version__}: it is left out")
            del flat[name]
    return {name: check(name, value) for name, value in flat.items()}, about


def check_version(path: Path, version: object) -> None:
    """Raise `UsageError` if a file is of a version of fastpong that this one does not read."""
    if str(version).split(".")[:2] != __version__.split(".")[:2]:
        raise UsageError(f"{path} is of fastpong {version}, which reads it; this is fastpong {__version__}")


def to_toml(config: Config, about: Mapping[str, object]) -> str:
    """Write the settings that the algorithm uses, in groups with their help, and a table ``[about]``."""
    lines = []
    used = settings(config.algorithm)
    for group, names in names_by_group(config.algorithm).items():
        if names:
            lines += [f"[{group}]  # {GROUPS[group]}"]
            for name in names:
                lines += [f"# {used[name].metadata['help']}", f"{name} = {_toml(getattr(config, name))}"]
            lines += [""]
    lines += ["[about]", *(f"{name} = {_toml(value)}" for name, value in about.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON does not escape DEL, TOML does
    return str(value).lower() if isinstance(value, bool) else repr(value)
