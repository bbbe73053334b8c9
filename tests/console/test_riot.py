"""The RIOT: its timer and ports, at the addresses of the console."""

import numpy as np
import pytest

from fastpong.console import bus
from tests.console.pair import console

INTIM, TIM1T, SWCHA, SWCHB = 0x284, 0x294, 0x280, 0x282
NO_ROM = np.zeros(2048, np.uint8)


@pytest.mark.parametrize(("choice", "interval"), [(0, 1), (1, 8), (2, 64), (3, 1024)])
def test_timer(choice: int, interval: int) -> None:
    """It counts down once at once, then once an interval, and when it has run out, once a cycle."""
    s, screen = console()

    def value(cycle: int) -> int:
        s.cycle = cycle
        return bus.peek(s, NO_ROM, screen, INTIM, 0)

    s.cycle = 100
    bus.poke(s, screen, TIM1T + choice, 3)
    cycles = 0, interval - 1, interval, 2 * interval, 3 * interval - 1
    assert [value(101 + cycle) for cycle in cycles] == [2, 2, 1, 0, 0]
    assert value(101 + 3 * interval) == 255
    bus.poke(s, screen, TIM1T + choice, 200)
    assert value(s.cycle + 1) == 199


def test_ports() -> None:
    s, screen = console()
    s.SWCHA, s.SWCHB = 0x7F, 0x3F
    assert [bus.peek(s, NO_ROM, screen, address, 0) for address in (SWCHA, SWCHB, SWCHA + 1)] == [0x7F, 0x3F, 0]
    bus.poke(s, screen, SWCHA, 0)
    assert s.SWCHA == 0x7F


def test_ram_has_two_addresses() -> None:
    """In the zero page, and where the stack is."""
    s, screen = console()
    bus.poke(s, screen, 0x0080, 5)
    bus.poke(s, screen, 0x01FF, 6)
    assert [bus.peek(s, NO_ROM, screen, address, 0) for address in (0x0180, 0x00FF, 0x0580, 0xE0FF)] == [5, 6, 5, 6]


def test_a_cartridge_of_2048_bytes_is_there_twice() -> None:
    (s, screen), rom = console(), np.arange(2048, dtype=np.uint16).astype(np.uint8)
    bus.poke(s, screen, 0x1005, 99)  # which changes nothing
    assert [bus.peek(s, rom, screen, address, 0) for address in (0x1005, 0x1805, 0xF805, 0x3005)] == [5] * 4
