"""The 6507: fetch an instruction, find its operand, do it.

All cycles of an instruction are counted before it reads or writes its operand, as in ALE. Nearly all instructions
touch memory in their last cycle, so that this is also the moment at which the real processor does it.
"""

from typing import Any

from fastpong.arrays import U8
from fastpong.console import opcodes as op
from fastpong.console.alu import branch_taken, changed, set_nz, set_status, status, transfer, use
from fastpong.console.bus import peek, poke, pull, push
from fastpong.kernels.compile.jit import once

_READ = (op.LDA, op.LDX, op.LDY, op.ADC, op.SBC, op.AND, op.ORA, op.EOR, op.BIT, op.CMP, op.CPX, op.CPY)
_CHANGE = (op.ASL, op.LSR, op.ROL, op.ROR, op.INC, op.DEC)
_WRITE = (op.STA, op.STX, op.STY)
_JUMP = (op.JMP, op.JSR, op.RTS, op.RTI, op.BRK)
_STACK = (op.PHA, op.PHP, op.PLA, op.PLP)


@once
def fetch(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    last: int,  # the byte that was last on the data bus
) -> int:
    """Read the byte at the program counter, and move on to the next."""
    byte = peek(s, rom, screen, s.PC, last)
    s.PC = s.PC + 1 & 0xFFFF
    return byte


@once
def fetch_address(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    code: int,  # of the instruction
) -> tuple[int, int]:
    """Fetch the rest of an instruction; return the address of its operand, and the last byte on the data bus.

    An index that leads to another page may cost a cycle, which is counted.
    """
    mode = op.MODE[code]
    if mode == op.IMPLIED or mode == op.ACCUMULATOR:
        return 0, code
    if mode == op.IMMEDIATE:
        address = int(s.PC)
        s.PC = address + 1 & 0xFFFF
        return address, code
    low = fetch(s, rom, screen, code)
    if mode == op.ZERO_PAGE:
        return low, low
    if mode == op.ZERO_PAGE_X:
        return low + s.X & 0xFF, low
    if mode == op.ZERO_PAGE_Y:
        return low + s.Y & 0xFF, low
    if mode == op.RELATIVE:
        return s.PC + (low - 256 if low > 127 else low) & 0xFFFF, low
    if mode == op.INDIRECT_X:
        return read_pointer(s, rom, screen, low + s.X & 0xFF, low)
    if mode == op.INDIRECT_Y:
        base, high = read_pointer(s, rom, screen, low, low)
        return add_index(s, base, s.Y, code), high
    high = fetch(s, rom, screen, low)
    if mode == op.INDIRECT:
        return read_pointer(s, rom, screen, high << 8 | low, high)
    if mode == op.ABSOLUTE_X:
        return add_index(s, high << 8 | low, s.X, code), high
    if mode == op.ABSOLUTE_Y:
        return add_index(s, high << 8 | low, s.Y, code), high
    return high << 8 | low, high


@once
def read_pointer(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    pointer: int,  # 0 … 0xFFFF
    last: int,  # the byte that was last on the data bus
) -> tuple[int, int]:
    """Return the address that lies at a pointer, and its upper byte. A pointer does not leave its page."""
    low = peek(s, rom, screen, pointer, last)
    high = peek(s, rom, screen, pointer & 0xFF00 | pointer + 1 & 0xFF, low)
    return high << 8 | low, high


@once
def add_index(
    s: Any,  # STATE
    base: int,  # 0 … 0xFFFF
    index: int,  # 0 … 255
    code: int,  # of the instruction
) -> int:
    """Return a base with an index added, and count the cycle that the carry into the upper byte costs."""
    address = base + index & 0xFFFF
    if (address ^ base) & 0xFF00:
        s.cycle += op.CROSSING[code]
    return address


@once
def instruction(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
) -> None:
    """Execute one instruction. One that is not documented ends the frame, and is not executed.

    What was on the data bus before is not kept. It would matter to a program that lies in the registers of the TIA.
    """
    start = int(s.PC)
    code = fetch(s, rom, screen, 0)
    operation = op.OPERATION[code]
    if operation == op.UNDEFINED:
        s.PC, s.frame_over = start, 1
        return
    s.cycle += op.CYCLES[code]
    address, last = fetch_address(s, rom, screen, code)
    if operation in _READ:
        use(s, operation, peek(s, rom, screen, address, last))
    elif op.MODE[code] == op.ACCUMULATOR:
        s.A = changed(s, operation, s.A)
    elif operation in _CHANGE:
        poke(s, screen, address, changed(s, operation, peek(s, rom, screen, address, last)))
    elif operation in _WRITE:
        value = s.A if operation == op.STA else s.X if operation == op.STX else s.Y
        poke(s, screen, address, value)
    elif op.MODE[code] == op.RELATIVE:
        if branch_taken(s, operation):
            s.cycle += 2 if (s.PC ^ address) & 0xFF00 else 1
            s.PC = address
    elif operation in _JUMP:
        jump(s, rom, screen, operation, address, last)
    elif operation in _STACK:
        push_or_pull(s, rom, screen, operation, last)
    else:
        transfer(s, operation)


@once
def jump(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    operation: int,
    address: int,  # 0 … 0xFFFF
    last: int,  # the byte that was last on the data bus
) -> None:
    """Jump, call, break, or return. A call pushes the address of its last byte; BRK that of the second after it."""
    if operation == op.JMP:
        s.PC = address
    elif operation == op.JSR:
        push_word(s, screen, s.PC - 1 & 0xFFFF)
        s.PC = address
    elif operation == op.RTS:
        s.PC = pull_word(s, rom, screen, last) + 1 & 0xFFFF
    elif operation == op.RTI:
        flags = pull(s, rom, screen, last)
        set_status(s, flags)
        s.PC = pull_word(s, rom, screen, flags)
    else:
        push_word(s, screen, s.PC + 1 & 0xFFFF)
        push(s, screen, status(s))
        s.I = 1
        s.PC, _ = read_pointer(s, rom, screen, op.BREAK_VECTOR, last)


@once
def push_or_pull(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    operation: int,
    last: int,  # the byte that was last on the data bus
) -> None:
    """Put A or the flags on the stack, or take them from there."""
    if operation == op.PHA:
        push(s, screen, s.A)
    elif operation == op.PHP:
        push(s, screen, status(s))
    elif operation == op.PLA:
        s.A = pull(s, rom, screen, last)
        set_nz(s, s.A)
    else:
        set_status(s, pull(s, rom, screen, last))


@once
def push_word(
    s: Any,  # STATE
    screen: U8,  # (210, 160)
    word: int,  # 0 … 0xFFFF
) -> None:
    """Push two bytes, the upper one first."""
    push(s, screen, word >> 8)
    push(s, screen, word & 255)


@once
def pull_word(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160)
    last: int,  # the byte that was last on the data bus
) -> int:
    """Pull two bytes, the lower one first."""
    low = pull(s, rom, screen, last)
    return pull(s, rom, screen, low) << 8 | low
