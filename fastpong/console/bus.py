"""The bus: which chip answers at which address, and the stack, which lies in the RIOT's RAM.

The 6507 has 13 address lines, and each chip looks at few of them, so that everything is found at many addresses.
Bit 12: the cartridge. Otherwise, bit 7 not set: the TIA; bit 9 not set: RAM; else ports and timer.
"""

from typing import Any

from fastpong.arrays import U8
from fastpong.console.cartridge import CARTRIDGE
from fastpong.console.riot import PORTS, RIOT, TIMER, read_riot, set_timer
from fastpong.console.state import RAM_BYTES
from fastpong.console.tia import read_tia, write_tia
from fastpong.kernels.compile.jit import once

STACK = 0x100


@once
def peek(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    address: int,
    last: int,  # the byte that was last on the data bus
) -> int:
    """Read a byte."""
    if address & CARTRIDGE:
        return int(rom[address & len(rom) - 1])
    if not address & RIOT:
        return read_tia(s, screen, address & 0x0F, last)
    if not address & PORTS:
        return int(s.ram[address & RAM_BYTES - 1])
    return read_riot(s, address)


@once
def poke(
    s: Any,  # STATE
    screen: U8,  # (210, 160)
    address: int,
    value: int,  # 0 … 255
) -> None:
    """Write a byte. The cartridge ignores it, and so do the ports, which are inputs."""
    if address & CARTRIDGE:
        return
    if not address & RIOT:
        write_tia(s, screen, address & 0x3F, value)
    elif not address & PORTS:
        s.ram[address & RAM_BYTES - 1] = value
    elif address & TIMER == TIMER:
        set_timer(s, address, value)


@once
def push(
    s: Any,  # STATE
    screen: U8,  # (210, 160)
    value: int,  # 0 … 255
) -> None:
    """Put a byte on the stack. Programs also point the stack at the TIA, to write registers in few cycles."""
    poke(s, screen, STACK | s.S, value)
    s.S = s.S - 1 & 255


@once
def pull(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    last: int,  # the byte that was last on the data bus
) -> int:
    """Take a byte from the stack."""
    s.S = s.S + 1 & 255
    return peek(s, rom, screen, STACK | s.S, last)
