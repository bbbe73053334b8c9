"""Which instructions of a cartridge can be reached, and from where to where."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from fastpong.arrays import U8
from fastpong.console.opcodes import ABSOLUTE, BREAK_VECTOR, OPCODES, RELATIVE, SIZE


class Instruction(NamedTuple):
    """An instruction of the cartridge."""

    name: str
    mode: int
    operand: int  # the byte or two after the code; of a branch the address to which it leads
    next: int  # address of the instruction that follows
    cycles: int
    crossing: int  # see `Opcode`


Code = dict[int, Instruction]
"""Instructions by address."""


def byte_at(
    rom: U8,  # (2048 or 4096,)
    address: int,  # 0x1000 … 0xFFFF
) -> int:
    """Return a byte of a cartridge, which is there at many addresses."""
    return int(rom[address & len(rom) - 1])


def word_at(
    rom: U8,  # (2048 or 4096,)
    address: int,  # 0x1000 … 0xFFFF
) -> int:
    """Return the address that two bytes of a cartridge are, the lower one first."""
    return byte_at(rom, address) | byte_at(rom, address + 1) << 8


def decode(
    rom: U8,  # (2048 or 4096,)
    address: int,  # 0x1000 … 0xFFFF
) -> Instruction | None:
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


def reachable(
    rom: U8,  # (2048 or 4096,)
    entries: Iterable[int],  # addresses at which the code begins
    hooks: Collection[int],  # addresses at which it is not followed
) -> tuple[Code, set[int]]:
    """Follow the code through branches, jumps and subroutines; return it, and the addresses of what calls return to."""
    code: Code = {}
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
                todo += [operand if name == "JSR" else word_at(rom, BREAK_VECTOR), comes_back]
                returns.add(comes_back)
            if name in ("JMP", "JSR", "BRK", "RTS", "RTI"):
                break
            address = after
    return code, returns
