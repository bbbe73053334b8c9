"""A game in a window, with the keys of the terminal's."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fastpong.arrays import U8
from fastpong.errors import UsageError, missing

_SIZE = (840, 630)
"""Of a new window, in pixels: the proportions of a television's screen."""

_DRIVERS = {"WAYLAND_DISPLAY": "wayland", "DISPLAY": "x11"}
"""SDL's drivers, and the variable that says that there is such a display."""


def show(pictures: Iterator[U8], status: Callable[[], Sequence[str]]) -> None:
    """Draw pictures uint8 (210, 160, 3) in a window, with a title of parts, until they end or somebody ends them.

    That is closing the window, q, Esc or ctrl-C; space pauses. Raises `UsageError` if there is no display, and
    `FastpongError` without pygame.
    """
    drivers = [driver for name, driver in _DRIVERS.items() if os.environ.get(name)]
    chosen = "SDL_VIDEODRIVER" in os.environ or sys.platform != "linux"
    if not drivers and not chosen:
        raise UsageError("there is no display for a window: use --terminal, or --out game.gif")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError:
        raise missing("a window (--terminal needs none)", "pygame", "play") from None
    if not chosen:
        os.environ["SDL_VIDEODRIVER"] = ",".join(drivers)  # else SDL may draw where nobody sees it
    try:
        window = pygame.display.set_mode(_SIZE, pygame.RESIZABLE)
        for picture in pictures:
            height, width, _ = picture.shape
            surface = pygame.image.frombuffer(picture.tobytes(), (width, height), "RGB")
            window.blit(pygame.transform.scale(surface, window.get_size()), (0, 0))
            pygame.display.set_caption("   ".join([*status(), "space: pause", "q: end"]))
            pygame.display.flip()
            if _asks_to_end(pygame):
                break
    except pygame.error as error:
        raise UsageError(f"there is no window ({error}): use --terminal, or --out game.gif") from None
    except KeyboardInterrupt:
        pass
    finally:
        pygame.quit()


def _asks_to_end(pygame: Any) -> bool:
    """Look at what has happened to the window; after a pause, wait for space again."""
    paused = False
    while True:
        for event in pygame.event.get():
            pressed = event.key if event.type == pygame.KEYDOWN else None
            if event.type == pygame.QUIT or pressed in (pygame.K_q, pygame.K_ESCAPE):
                return True
            paused ^= pressed == pygame.K_SPACE
        if not paused:
            return False
        time.sleep(0.05)
