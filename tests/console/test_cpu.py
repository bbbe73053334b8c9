"""The processor against py65, another 6502: every documented instruction, from random states."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from py65.devices.mpu6502 import MPU

from fastpong.arrays import U8
from fastpong.console import cpu
from fastpong.console.opcodes import OPCODES, Opcode
from tests.console.pair import console

TRIALS = 30
DECIMAL = np.array([int(str(number), 16) for number in range(100)], np.uint8)
DEC_ABSOLUTE = 0xCE  # py65 1.2 counts 3 cycles, the data sheet 6
CARTRIDGE, RIOT, PORTS = 0x1000, 0x80, 0x200


class Outside(Exception):
    """An instruction touches the TIA or ports, which are not memory."""


class Memory:
    """RAM and cartridge of the console, for py65."""

    def __init__(self, ram: U8, rom: U8):
        self.ram, self.rom = ram, rom

    def __getitem__(self, address: int) -> int:
        if address & CARTRIDGE:
            return int(self.rom[address & len(self.rom) - 1])
        return int(self.ram[self._index(address)])

    def __setitem__(self, address: int, value: int) -> None:
        if not address & CARTRIDGE:
            self.ram[self._index(address)] = value

    def _index(self, address: int) -> int:
        if not address & RIOT or address & PORTS:
            raise Outside
        return address & 0x7F


def flags(s: Any) -> str:
    return "".join(name for name in "NVDIZC" if s[name])


def random_bytes(rng: np.random.Generator, size: int, decimal: bool) -> U8:
    """Any bytes, or any two decimal digits in each."""
    if not decimal:
        return rng.integers(0, 256, size, np.uint8)
    return DECIMAL[rng.integers(0, 100, size)]


def run_both(code: int, opcode: Opcode, decimal: bool, rng: np.random.Generator) -> bool:
    """Run an instruction in both and compare; return whether it stayed in memory."""
    (s, screen), rom = console(), random_bytes(rng, int(rng.choice([2048, 4096])), decimal)
    s.ram[:] = random_bytes(rng, 128, decimal)
    s.A, s.X, s.Y, s.S = random_bytes(rng, 4, decimal)
    if opcode.name in ("BRK", "JSR", "PHA", "PHP", "PLA", "PLP", "RTI", "RTS"):
        s.S |= 0x80  # in RAM
    s.N, s.V, s.D, s.I, s.Z, s.C = rng.integers(0, 2, 6)
    s.D = decimal or (s.D and opcode.name not in ("ADC", "SBC"))
    s.PC = CARTRIDGE | int(rng.integers(0, 1 << 16))
    rom[s.PC & len(rom) - 1] = code
    other = MPU(memory=Memory(s.ram.copy(), rom))
    other.a, other.x, other.y, other.sp, other.pc = (int(s[name]) for name in ("A", "X", "Y", "S", "PC"))
    other.p = s.N << 7 | s.V << 6 | 0x30 | s.D << 3 | s.I << 2 | s.Z << 1 | s.C
    try:
        other.step()
    except Outside:
        return False
    cpu.instruction(s, rom, screen)
    cycles = 6 if code == DEC_ABSOLUTE else other.processorCycles
    registers = [other.a, other.x, other.y, other.sp, other.pc, cycles]
    assert [s.A, s.X, s.Y, s.S, s.PC, s.cycle] == registers
    np.testing.assert_array_equal(s.ram, other.memory.ram)
    compared = "DIC" if decimal else "NVDIZC"  # N, V and Z of the real chip follow from the binary result
    expected = "".join(flag for bit, flag in zip((7, 6, 3, 2, 1, 0), "NVDIZC", strict=True) if other.p >> bit & 1)
    assert [f for f in flags(s) if f in compared] == [f for f in expected if f in compared]
    return True


@pytest.mark.parametrize("name", sorted({opcode.name for opcode in OPCODES.values()}))
def test_instruction(name: str) -> None:
    for code, opcode in OPCODES.items():
        if opcode.name == name:
            rng, done = np.random.default_rng(code), 0
            while done < TRIALS:
                done += run_both(code, opcode, False, rng)


@pytest.mark.parametrize("name", ["ADC", "SBC"])
def test_decimal_mode(name: str) -> None:
    for code, opcode in OPCODES.items():
        if opcode.name == name:
            rng, done = np.random.default_rng(code), 0
            while done < TRIALS:
                done += run_both(code, opcode, True, rng)


def run(s: Any, rom: U8, *program: int, at: int = 0x1000) -> None:
    """Place a program in the cartridge and execute one instruction of it."""
    rom[at & len(rom) - 1 :][: len(program)] = program
    s.PC = at
    cpu.instruction(s, rom, console()[1])


def test_flags_after_decimal_addition_follow_from_the_decimal_result() -> None:
    """In ALE; the real chip says that 0x9A, the binary sum, is not zero."""
    (s, _), rom = console(), np.zeros(2048, np.uint8)
    s.A, s.D, s.C = 0x99, 1, 1
    run(s, rom, 0x69, 0x00)
    assert s.A == 0 and flags(s) == "DZC"


def test_cycles_of_branches_and_indexed_reads() -> None:
    (s, _), rom = console(), np.zeros(2048, np.uint8)
    for program, cycles in (
        ((0xD0, 0x10), 3),  # taken
        ((0xF0, 0x10), 2),  # not taken
        ((0xD0, 0x80), 4),  # to another page
        ((0xBD, 0x01, 0x10), 4),  # read
        ((0xBD, 0xFF, 0x10), 5),  # read in another page
        ((0x9D, 0xFF, 0x10), 5),  # a write takes that cycle always
    ):
        s.cycle, s.Z, s.X = 0, 0, 1
        run(s, rom, *program)
        assert s.cycle == cycles


def test_an_undefined_instruction_ends_the_frame() -> None:
    (s, _), rom = console(), np.zeros(2048, np.uint8)
    run(s, rom, 0x02)
    assert (s.frame_over, s.PC, s.cycle) == (1, 0x1000, 0)


def test_pushing_to_the_tia_writes_registers() -> None:
    """As Pong does it: the stack pointer is at ENABL, and the flag Z is its bit 1."""
    (s, _), rom = console(), np.zeros(2048, np.uint8)
    for zero in (1, 0):
        s.S, s.Z = 0x1F, zero
        run(s, rom, 0x08)
        assert (s.ENABL, s.S) == (2 * zero, 0x1E)


PLAIN = """
import numpy as np
from fastpong.console import cartridge, controls, cpu
from tests.console.pair import console
rom, (s, screen) = cartridge.read(), console()
controls.power_on(s, rom)
for _ in range(1000):
    cpu.instruction(s, rom, screen)
print(s.tobytes().hex())
"""


def test_as_plain_python(capsys: pytest.CaptureFixture[str]) -> None:
    """A student may step through it with a debugger."""
    exec(PLAIN, {})
    command, environment = [sys.executable, "-c", PLAIN], os.environ | {"NUMBA_DISABLE_JIT": "1"}
    plain = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert len(plain) > 200 and capsys.readouterr().out == plain
