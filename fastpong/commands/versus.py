"""Play against a trained agent: a page with real Pong for two, the agent, and the cartridge of the user's ale-py."""

import base64
import html
import json
import os
import sys
import tempfile
import webbrowser
from pathlib import Path

from fastpong import files
from fastpong.agent import Agent
from fastpong.commands.page import filled, halves, network, of_the_page, packed
from fastpong.console import cartridge
from fastpong.errors import FastpongError, UsageError, printable, tell
from fastpong.pong import COLOURS

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables, one of which says that there is a display, or what to show a page with."""


def run(agent: Agent, out: Path | None, speed: float, as_json: bool) -> None:
    """Write the page to a file, by default in a new temporary folder, and open it if there is a display.

    Raises `UsageError` for an agent that no page can have, or a file of another type, `EnvError` if ale-py has no
    cartridge, and `FastpongError` if the page cannot be written.
    """
    if out is not None and out.suffix.lower() != ".html":
        raise UsageError(f"--versus writes a page: --out ends in .html, not '{out.suffix}'")
    text = page(agent, speed)
    try:
        path = (out or Path(tempfile.mkdtemp(prefix="fastpong-")) / "versus.html").absolute()
        files.write(path, text.encode())
    except OSError as error:
        raise FastpongError(f"cannot write {out or 'a page'}: {error.strerror or error}") from None
    told = [f"written to {path}", "it contains the cartridge of your ale-py: for you, not to publish"]
    tell(*([json.dumps({"out": str(path)})] if as_json else told), result=True)
    if sys.platform != "linux" or any(map(os.environ.get, _DISPLAYS)):
        webbrowser.open(path.as_uri())


def page(agent: Agent, speed: float = 1.0) -> str:
    """Return the page, at so many times the speed of the real game; raises `UsageError` and `EnvError` as `run`."""
    config = agent.config
    facts = {
        "rom": base64.b64encode(cartridge.read().tobytes()).decode(),
        "weights": packed(halves(of_the_page(agent).weights)),
        "network": network(config),
        "rules": rules(agent),
        "speed": speed,
        "colours": COLOURS,
    }
    parts = {
        "NAME": html.escape(printable(agent.name)), "SKIP": str(config.frame_skip),
        "STICKY": f"{config.repeat_action_probability:g}", "FACTS": json.dumps(facts),
    }  # fmt: skip
    return filled("versus.html", parts, "core", "net", "versus")


def rules(agent: Agent) -> dict[str, float]:
    """Return what ``Match`` of ``versus.js`` has to know of the agent."""
    config = agent.config
    return {"frameSkip": config.frame_skip, "sticky": config.repeat_action_probability, "sample": agent.sample}
