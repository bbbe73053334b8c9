"""Write ``docs/settings.md`` from `fastpong.config`: python docs/make_settings.py."""

import math
from pathlib import Path

from fastpong.config import PRESETS, settings

PATH = Path(__file__).parent / "settings.md"


def text() -> str:
    """Return the page."""
    lines = [
        "# Settings",
        "",
        "Change any of them with `--set key=value`, or in a TOML file for `--config`. This page is written by",
        "`python docs/make_settings.py`.",
        "",
        "| setting | default | range | meaning |",
        "|---|---|---|---|",
    ]
    for name, setting in settings().items():
        meta = setting.metadata
        if name == "preset":
            allowed = ", ".join(PRESETS)
        elif "choices" in meta:
            allowed = ", ".join(meta["choices"])
        else:
            allowed = f"{meta['low']:g} … {meta['high']:g}" if math.isfinite(meta["high"]) else f"≥ {meta['low']:g}"
        lines.append(f"| `{name}` | {setting.default} | {allowed} | {meta['help']} |")
    lines += ["", "| preset | changes |", "|---|---|"]
    for preset, changes in PRESETS.items():
        what = ", ".join(f"`{name} = {value}`" for name, value in changes.items()) or "none: these are the defaults"
        lines.append(f"| `{preset}` | {what} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
