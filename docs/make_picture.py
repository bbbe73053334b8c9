"""Take the README's picture of a page: ``python docs/make_picture.py game.html docs/page.png``.

It needs Chromium and Playwright, see ``.ci/look``. The page is that of a run of a minute:
``fastpong train --envs 64 --minutes 1 --run runs/first`` and ``fastpong play runs/first --out game.html``.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1040, 1140


def main() -> None:
    """Open the page, and wait until it has drawn itself."""
    page_file, picture = map(Path, sys.argv[1:])
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        sync_playwright() as player,
        player.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(page_file.absolute().as_uri())
        while not page.evaluate("window.ready"):
            page.wait_for_timeout(50)
        page.wait_for_timeout(500)
        page.screenshot(path=picture)


if __name__ == "__main__":
    main()
