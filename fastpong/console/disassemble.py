"""Which instructions of a cartridge can be reached, and from where to where."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from fastpong.arrays import U8
from fastpong.console.opcodes import ABSOLUTE, OPCODES, RELATIVE, SIZE

INTERRUPT_VECTOR = 0xFFFE
"""Where the address stands to which BRK goes."""


class Instruction(NamedTuple):
    """An instruction of the cartridge."""

    name: str
    mode: int
    operand: int  # the byte or two after the code; of a branch the address to which it leads
    next: int  # address of the instruction that follows
    cycles: int
    crossing: int  # see `Opcode`


class Code(NamedTuple):
    """Instructions by address, and the addresses to which subroutines return."""

    instructions: dict[int, Instruction]
    returns: set[int]


def byte_at(rom: U8, address: int) -> int:
    """Return a byte of a cartridge, which repeats itself in the upper half of the addresses."""
    return int(rom[address & len(rom) - 1])


def word_at(rom: U8, address: int) -> int:
    """Return an address that stands in a cartridge."""
    return byte_at(rom, address) | byte_at(rom, address + 1) << 8


def decode(rom: U8, address: int) -> Instruction | None:
    """Return the instruction at an address, None if its code is not documented."""
    opcode = OPCODES.get(byte_at(rom, address))
    if opcode is None:
        return None
    after = address + int(SIZE[opcode.mode])
    operand = word_at(rom, address + 1)
    if SIZE[opcode.mode] == 2:
        operand &= 0xFF
    if opcode.mode == RELATIVE:
        operand = after + (operand ^ 0x80) - 0x80
    return Instruction(opcode.name, opcode.mode, operand, after, opcode.cycles, opcode.crossing)


def reachable(rom: U8, entries: Iterable[int], hooks: Collection[int]) -> Code:
    """Follow the code from some entries through branches, jumps and subroutines, up to the hooked addresses."""
    code: dict[int, Instruction] = {}
    returns: set[int] = set()
    todo = list(entries)
    while todo:
        address = todo.pop()
        while address not in code and address not in hooks:
            instruction = decode(rom, address)
            if instruction is None:
                break
            code[address] = instruction
            name, mode, operand, after = instruction[:4]
            if mode == RELATIVE or name == "JMP" and mode == ABSOLUTE:
                todo.append(operand)
            elif name in ("JSR", "BRK"):
                comes_back = after if name == "JSR" else address + 2
                todo += [operand if name == "JSR" else word_at(rom, INTERRUPT_VECTOR), comes_back]
                returns.add(comes_back)
            if name in ("JMP", "JSR", "BRK", "RTS", "RTI"):
                break
            address = after
    return Code(code, returns)
