"""The page to play in, in Chromium, with a scripted mouse; the pictures are left in ``build/look``.

Playwright and Chromium are not part of the `test` extra: ``.ci/look`` runs these tests where Chromium is.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastpong.agent import load
from fastpong.commands.versus import page as page_of

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
PICTURES = Path(__file__).parents[2] / "build" / "look"
"""With the cartridge's picture on them, but none of its bytes."""

BALL = "match.state.ram[BALL_ROW] && match.state.ram[BALL_ROW] - 13"  # its row on the screen; 0: it is out


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open the page; at the end it must not have complained, nor asked for anything."""
    file, complaints = tmp_path / "versus.html", []
    file.write_text(page_of(load()))
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def open_page(width: int = 1100, colours: str = "light") -> Any:
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: complaints.append(request.url))
            page.goto(file.as_uri())
            while not page.evaluate("match !== undefined && document.getElementById('button').onclick !== null"):
                page.wait_for_timeout(20)
            return page

        yield open_page
        browser.close()
    assert set(complaints) <= {file.as_uri()}


def follow(page: Any, seconds: float) -> None:
    """Hold the paddle where the ball is, until the match is over."""
    box, end = page.locator("#court").bounding_box(), time.monotonic() + seconds
    while time.monotonic() < end and page.evaluate("running"):
        if row := page.evaluate(BALL):
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * row / 210)
        page.wait_for_timeout(5)


@pytest.mark.parametrize(("width", "colours"), [(1100, "light"), (1100, "dark"), (390, "light")])
def test_it_looks_right(width: int, colours: str, opened: Callable[..., Any]) -> None:
    page = opened(width, colours)
    page.click("#button")
    follow(page, 4)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"versus-{width}-{colours}.png", full_page=True)


def test_a_mouse_that_follows_the_ball_scores(opened: Callable[..., Any]) -> None:
    page = opened()
    page.click("#button")
    begin = page.evaluate("[match.frames, performance.now()]")
    follow(page, 20)
    end = page.evaluate("[match.frames, performance.now()]")
    assert page.evaluate("match.points[0]") >= 1
    print(f"{1000 * (end[0] - begin[0]) / (end[1] - begin[1]):.1f} frames a second; the console has 60")


def test_keys_pause_and_another_match(opened: Callable[..., Any]) -> None:
    page = opened()
    page.keyboard.press(" ")
    for key, ohms in (("ArrowUp", "LEAST"), ("s", "core.PADDLE_HIGH")):
        page.keyboard.down(key)
        page.wait_for_timeout(1500)
        page.keyboard.up(key)
        assert page.evaluate(f"Math.abs(match.state.paddle[1] - {ohms}) < 2")
    page.keyboard.press(" ")
    stopped = page.evaluate("match.frames")
    page.wait_for_timeout(200)
    assert page.evaluate("match.frames") == stopped and page.text_content("#message") == "paused"
    page.click("#button")
    page.evaluate("match.state.ram[RIGHT_POINTS] = WINNING - 1")
    while page.evaluate("running"):
        page.wait_for_timeout(50)
    assert page.text_content("#message") == "The agent wins, 21 : 0."
    page.screenshot(path=PICTURES / "versus-over.png")
    page.click("#button")
    assert page.evaluate("running && match.points.join()") == "0,0"
