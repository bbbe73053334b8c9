"""The RIOT, MOS Technology's 6532: 128 bytes of RAM, a timer, and the ports of joysticks and switches.

Ports are only read here: a console's program may also make them outputs, but no cartridge that is run here does.
"""

from typing import Any

from fastpong.kernels.compile.jit import once

RIOT, PORTS, TIMER = 0x80, 0x200, 0x14
"""Address bits that choose: the RIOT, in it not the RAM, and to set the timer (both bits)."""

SWCHA, SWCHB, INTIM = 0, 2, 4
"""The lower three bits of addresses that are read: buttons of the paddles, switches of the console, the timer."""

TIMER_SHIFTS = (0, 3, 6, 10)
"""Intervals of the timer as powers of 2 of cycles, by the lower two bits of the address at which it is set."""


@once
def read_riot(
    s: Any,  # STATE
    address: int,  # its lower three bits count
) -> int:
    """Return what the processor reads from a port or from the timer."""
    register = address & 7
    if register == SWCHA:
        return int(s.SWCHA)
    if register == SWCHB:
        return int(s.SWCHB)
    if register & 5 == INTIM:
        return _read_timer(s)
    return 0  # directions of the ports: all inputs


@once
def _read_timer(
    s: Any,  # STATE
) -> int:
    """Return INTIM. It counts intervals down to 0; then it has run out, and counts cycles, from 255 down.

    The first read after that makes it count intervals again.
    """
    timer, interval = int(s.timer), 1 << s.timer_shift
    cycles = int(s.cycle) - 1 - int(s.timer_set)
    left = timer - (cycles >> s.timer_shift) - 1
    if left >= 0:
        return int(left & 255)
    left = timer * interval - cycles - 1
    if left <= -2 and not s.timer_ran_out:
        s.timer_ran_out, s.timer_read = 1, s.cycle
    if s.timer_ran_out:
        late = int(s.timer_read) - (int(s.timer_set) + timer * interval)
        left = timer - (cycles >> s.timer_shift) - late
    return int(left & 255)


@once
def set_timer(
    s: Any,  # STATE
    address: int,  # its lower two bits: an interval of 1, 8, 64 or 1024 cycles
    value: int,  # 0 … 255: intervals
) -> None:
    """Start the timer: the processor writes TIM1T, TIM8T, TIM64T or T1024T."""
    s.timer_shift = TIMER_SHIFTS[address & 3]
    s.timer, s.timer_set, s.timer_ran_out = value, s.cycle, 0
