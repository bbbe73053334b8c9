"""The page in Chromium, as a person uses it; the pictures are left in ``build/look``.

Playwright and Chromium are not part of the `test` extra: ``.ci/look`` runs these tests where Chromium is.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastpong.agent import load
from fastpong.commands.play import play
from tests.support.trainings import run, small

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
PICTURES = Path(__file__).parents[2] / "build" / "look"

NUMBERS = "[...document.querySelectorAll('#choices .bar span:last-child')].map((one) => one.textContent).join()"
WHERE = "document.getElementById('where').textContent"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a short run."""
    folder = tmp_path_factory.mktemp("look")
    run(folder / "first", small("fast", log_interval=1000), 3000)
    play(load(folder / "first"), folder / "game.html", checkpoint=folder / "first")
    return folder / "game.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def wait_until(page: Any, expression: str) -> Any:
    """Wait for something true, and return it: Playwright's own way would need what the page forbids."""
    end = time.monotonic() + 60
    while not (value := page.evaluate(expression)):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)
    return value


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Callable[..., Any]]:
    """Open the page; at the end it must not have complained."""
    complaints: list[str] = []

    def open_page(width: int = 1100, colours: str = "light") -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(page_file.as_uri())
        wait_until(page, "window.ready")
        return page

    yield open_page
    assert complaints == []


@pytest.mark.parametrize(("width", "colours"), [(1100, "light"), (1100, "dark"), (390, "light")])
def test_it_measures_itself_and_fits(width: int, colours: str, opened: Callable[..., Any]) -> None:
    page = opened(width, colours)
    measured = wait_until(page, "window.measured")
    assert measured["worst"] < 1e-4 and measured["count"] > 500
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"page-{width}-{colours}.png", full_page=True)


@pytest.mark.parametrize("at", [(0.5, 0.5), (0.88, 0.5)])
def test_what_is_dragged_changes_its_mind(at: tuple[float, float], opened: Callable[..., Any]) -> None:
    """The ball, and the own paddle."""
    page = opened()
    before = page.evaluate(NUMBERS)
    box = page.locator("#court").bounding_box()
    x, y = (box[side] + share * box[size] for side, size, share in zip("xy", ("width", "height"), at, strict=True))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 0.3 * box["height"], steps=4)
    page.mouse.up()
    wait_until(page, f"{NUMBERS} !== {before!r}")
    page.screenshot(path=PICTURES / f"dragged-{at[0]}.png")
    page.click("text=put back")
    wait_until(page, f"{NUMBERS} === {before!r}")


def test_keys_buttons_and_charts_move_the_game(opened: Callable[..., Any]) -> None:
    page = opened()

    def step() -> int:
        return int(page.evaluate(WHERE).split()[1].replace(",", ""))

    begin = step()
    for key, expected in (("ArrowRight", begin + 1), ("ArrowLeft", begin), ("ArrowLeft", begin - 1)):
        page.keyboard.press(key)
        page.wait_for_timeout(100)
        assert step() == expected
    page.keyboard.press(" ")
    wait_until(page, f"parseInt({WHERE}.split(' ')[1].replace(',', '')) > {begin}")
    page.click("#play")  # a pause
    stopped = step()
    page.wait_for_timeout(300)
    assert step() == stopped
    width = page.locator("#game").bounding_box()["width"]
    page.locator("#game").click(position={"x": width - 6, "y": 20})
    wait_until(page, f"parseInt({WHERE}.split(' ')[1].replace(',', '')) > {stopped}")
    page.locator("#carpet").click()
    page.wait_for_timeout(100)
    assert abs(step() - begin) < 400
