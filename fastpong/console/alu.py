"""What the processor computes: arithmetic, logic, shifts and flags. Nothing here looks at memory."""

from typing import Any

from fastpong.console import opcodes as op
from fastpong.kernels.compile.jit import once


@once
def set_nz(
    s: Any,  # STATE
    value: int,  # 0 … 255
) -> None:
    """Set the flags N and Z after a result."""
    s.N, s.Z = value >> 7, 1 if value == 0 else 0


@once
def status(
    s: Any,  # STATE
) -> int:
    """Return the flags as the byte that PHP and BRK push; its bits 4 and 5 are always set."""
    return int(s.N << 7 | s.V << 6 | 0x30 | s.D << 3 | s.I << 2 | s.Z << 1 | s.C)


@once
def set_status(
    s: Any,  # STATE
    byte: int,
) -> None:
    """Set the flags from a byte."""
    s.N, s.V, s.D = byte >> 7 & 1, byte >> 6 & 1, byte >> 3 & 1
    s.I, s.Z, s.C = byte >> 2 & 1, byte >> 1 & 1, byte & 1


@once
def add(
    s: Any,  # STATE
    value: int,  # 0 … 255
) -> None:
    """Add a value and the carry to A. To subtract, add the value with all its bits turned."""
    result = int(s.A) + value + s.C
    s.V = ((s.A ^ result) & (value ^ result)) >> 7 & 1
    s.C, s.A = result >> 8, result & 255
    set_nz(s, result & 255)


@once
def add_decimal(
    s: Any,  # STATE
    value: int,  # 0 … 255
    subtract: bool,
) -> None:
    """Add a value and the carry to A, or subtract it and the borrow, with two decimal digits in each byte.

    As in ALE, the flags N, Z and V follow from the decimal result (the real chip sets them from the binary one), and
    a digit above 9 counts as what it is.
    """
    before = int(s.A)
    a, b = (before >> 4) * 10 + (before & 15), (value >> 4) * 10 + (value & 15)
    if subtract:
        borrow = 1 - s.C
        result = a - b - borrow
        if result < 0:
            result += 100
        s.C = 1 if before >= value + borrow else 0
    else:
        result = a + b + s.C
        s.C = 1 if result > 99 else 0
    digits = (result & 255) % 100  # of a byte: a sum of digits above 9 may be larger
    s.A = digits // 10 << 4 | digits % 10
    s.V = ((before ^ s.A) & (s.A ^ value)) >> 7 & 1
    set_nz(s, s.A)


@once
def compare(
    s: Any,  # STATE
    register: int,  # 0 … 255
    value: int,  # 0 … 255
) -> None:
    """Set the flags after a subtraction whose result is not kept."""
    s.C = 1 if register >= value else 0
    set_nz(s, register - value & 255)


@once
def use(
    s: Any,  # STATE
    operation: int,
    value: int,  # 0 … 255, read from memory
) -> None:
    """Do an operation that reads a value: load, add, subtract, combine, compare."""
    if operation == op.LDA:
        s.A = value
        set_nz(s, value)
    elif operation == op.LDX:
        s.X = value
        set_nz(s, value)
    elif operation == op.LDY:
        s.Y = value
        set_nz(s, value)
    elif operation == op.ADC or operation == op.SBC:
        if s.D:
            add_decimal(s, value, operation == op.SBC)
        else:
            add(s, value if operation == op.ADC else value ^ 255)
    elif operation == op.AND or operation == op.ORA or operation == op.EOR:
        s.A = s.A & value if operation == op.AND else s.A | value if operation == op.ORA else s.A ^ value
        set_nz(s, s.A)
    elif operation == op.BIT:
        s.N, s.V, s.Z = value >> 7, value >> 6 & 1, 1 if s.A & value == 0 else 0
    elif operation == op.CMP:
        compare(s, s.A, value)
    elif operation == op.CPX:
        compare(s, s.X, value)
    elif operation == op.CPY:
        compare(s, s.Y, value)


@once
def changed(
    s: Any,  # STATE
    operation: int,
    value: int,  # 0 … 255, read from memory or A
) -> int:
    """Return what an operation that writes back makes of a value: shift, rotate, count."""
    if operation == op.INC:
        result = value + 1 & 255
    elif operation == op.DEC:
        result = value - 1 & 255
    else:
        old = int(s.C)
        if operation == op.ASL or operation == op.ROL:
            s.C = value >> 7
            result = (value << 1 | (old if operation == op.ROL else 0)) & 255
        else:
            s.C = value & 1
            result = value >> 1 | (old << 7 if operation == op.ROR else 0)
    set_nz(s, result)
    return result


@once
def branch_taken(
    s: Any,  # STATE
    operation: int,
) -> bool:
    """Return whether a branch is taken."""
    if operation == op.BPL or operation == op.BMI:
        flag, wanted = s.N, operation == op.BMI
    elif operation == op.BVC or operation == op.BVS:
        flag, wanted = s.V, operation == op.BVS
    elif operation == op.BCC or operation == op.BCS:
        flag, wanted = s.C, operation == op.BCS
    else:
        flag, wanted = s.Z, operation == op.BEQ
    return bool((flag != 0) == wanted)


@once
def transfer(
    s: Any,  # STATE
    operation: int,
) -> None:
    """Do an operation inside the processor: copy or count a register, set or clear a flag, or nothing (NOP)."""
    if operation == op.TAX:
        use(s, op.LDX, s.A)
    elif operation == op.TAY:
        use(s, op.LDY, s.A)
    elif operation == op.TXA:
        use(s, op.LDA, s.X)
    elif operation == op.TYA:
        use(s, op.LDA, s.Y)
    elif operation == op.TSX:
        use(s, op.LDX, s.S)
    elif operation == op.INX or operation == op.DEX:
        use(s, op.LDX, s.X + (1 if operation == op.INX else -1) & 255)
    elif operation == op.INY or operation == op.DEY:
        use(s, op.LDY, s.Y + (1 if operation == op.INY else -1) & 255)
    elif operation == op.TXS:
        s.S = s.X
    elif operation == op.CLC or operation == op.SEC:
        s.C = 1 if operation == op.SEC else 0
    elif operation == op.CLD or operation == op.SED:
        s.D = 1 if operation == op.SED else 0
    elif operation == op.CLI or operation == op.SEI:
        s.I = 1 if operation == op.SEI else 0
    elif operation == op.CLV:
        s.V = 0
