"""The instructions of the 6502 family, from the data sheet of MOS Technology (1976): code, addressing mode and cycles.

`OPCODES` has the 151 documented ones. Arrays by code are for compiled code, and for its comparisons each operation has
a number: ``OPERATION[0xA9] == LDA``. The 6507 of the console is a 6502 with 13 address lines and without interrupts.
"""

from typing import NamedTuple

import numpy as np

MODES = (
    "IMPLIED", "ACCUMULATOR", "IMMEDIATE", "ZERO_PAGE", "ZERO_PAGE_X", "ZERO_PAGE_Y", "ABSOLUTE", "ABSOLUTE_X",
    "ABSOLUTE_Y", "INDIRECT", "INDIRECT_X", "INDIRECT_Y", "RELATIVE",
)  # fmt: skip
"""Names of the addressing modes, in the order of their numbers."""

(
    IMPLIED, ACCUMULATOR, IMMEDIATE, ZERO_PAGE, ZERO_PAGE_X, ZERO_PAGE_Y, ABSOLUTE, ABSOLUTE_X,
    ABSOLUTE_Y, INDIRECT, INDIRECT_X, INDIRECT_Y, RELATIVE,
) = range(len(MODES))  # fmt: skip

SIZE = np.array([1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2])
"""Bytes of an instruction, int64 (13,), by mode. BRK has one, but the address it pushes is that of the second after."""

OPERATIONS = (
    "ADC", "AND", "ASL", "BCC", "BCS", "BEQ", "BIT", "BMI", "BNE", "BPL", "BRK", "BVC", "BVS", "CLC",
    "CLD", "CLI", "CLV", "CMP", "CPX", "CPY", "DEC", "DEX", "DEY", "EOR", "INC", "INX", "INY", "JMP",
    "JSR", "LDA", "LDX", "LDY", "LSR", "NOP", "ORA", "PHA", "PHP", "PLA", "PLP", "ROL", "ROR", "RTI",
    "RTS", "SBC", "SEC", "SED", "SEI", "STA", "STX", "STY", "TAX", "TAY", "TSX", "TXA", "TXS", "TYA",
)  # fmt: skip
"""Names of the operations, in the order of their numbers."""

(
    ADC, AND, ASL, BCC, BCS, BEQ, BIT, BMI, BNE, BPL, BRK, BVC, BVS, CLC,
    CLD, CLI, CLV, CMP, CPX, CPY, DEC, DEX, DEY, EOR, INC, INX, INY, JMP,
    JSR, LDA, LDX, LDY, LSR, NOP, ORA, PHA, PHP, PLA, PLP, ROL, ROR, RTI,
    RTS, SBC, SEC, SED, SEI, STA, STX, STY, TAX, TAY, TSX, TXA, TXS, TYA,
) = range(len(OPERATIONS))  # fmt: skip


class Opcode(NamedTuple):
    """An instruction: its operation, how it finds its operand, and how long it takes."""

    name: str
    mode: int
    cycles: int  # a branch that is taken needs one more, and two more if it leads to another page
    crossing: int = 0  # cycles more if the indexed address lies in another page than its base


# Each entry is code/cycles; a * is one cycle more for an index that leads to another page.
_WITH_MEMORY = """
     IMMEDIATE ZERO_PAGE ZERO_PAGE_X ZERO_PAGE_Y ABSOLUTE ABSOLUTE_X ABSOLUTE_Y INDIRECT_X INDIRECT_Y
ADC    69/2      65/3       75/4         -         6D/4     7D/4*      79/4*       61/6      71/5*
AND    29/2      25/3       35/4         -         2D/4     3D/4*      39/4*       21/6      31/5*
ASL      -       06/5       16/6         -         0E/6     1E/7         -           -         -
BIT      -       24/3         -          -         2C/4       -          -           -         -
CMP    C9/2      C5/3       D5/4         -         CD/4     DD/4*      D9/4*       C1/6      D1/5*
CPX    E0/2      E4/3         -          -         EC/4       -          -           -         -
CPY    C0/2      C4/3         -          -         CC/4       -          -           -         -
DEC      -       C6/5       D6/6         -         CE/6     DE/7         -           -         -
EOR    49/2      45/3       55/4         -         4D/4     5D/4*      59/4*       41/6      51/5*
INC      -       E6/5       F6/6         -         EE/6     FE/7         -           -         -
LDA    A9/2      A5/3       B5/4         -         AD/4     BD/4*      B9/4*       A1/6      B1/5*
LDX    A2/2      A6/3         -        B6/4        AE/4       -        BE/4*         -         -
LDY    A0/2      A4/3       B4/4         -         AC/4     BC/4*        -           -         -
LSR      -       46/5       56/6         -         4E/6     5E/7         -           -         -
ORA    09/2      05/3       15/4         -         0D/4     1D/4*      19/4*       01/6      11/5*
ROL      -       26/5       36/6         -         2E/6     3E/7         -           -         -
ROR      -       66/5       76/6         -         6E/6     7E/7         -           -         -
SBC    E9/2      E5/3       F5/4         -         ED/4     FD/4*      F9/4*       E1/6      F1/5*
STA      -       85/3       95/4         -         8D/4     9D/5       99/5        81/6      91/6
STX      -       86/3         -        96/4        8E/4       -          -           -         -
STY      -       84/3       94/4         -         8C/4       -          -           -         -
"""

_OTHERS = """
IMPLIED      BRK 00/7  CLC 18/2  CLD D8/2  CLI 58/2  CLV B8/2  DEX CA/2  DEY 88/2  INX E8/2  INY C8/2  NOP EA/2
IMPLIED      PHA 48/3  PHP 08/3  PLA 68/4  PLP 28/4  RTI 40/6  RTS 60/6  SEC 38/2  SED F8/2  SEI 78/2
IMPLIED      TAX AA/2  TAY A8/2  TSX BA/2  TXA 8A/2  TXS 9A/2  TYA 98/2
ACCUMULATOR  ASL 0A/2  LSR 4A/2  ROL 2A/2  ROR 6A/2
RELATIVE     BCC 90/2  BCS B0/2  BEQ F0/2  BMI 30/2  BNE D0/2  BPL 10/2  BVC 50/2  BVS 70/2
ABSOLUTE     JMP 4C/3  JSR 20/6
INDIRECT     JMP 6C/5
"""


def _read_tables() -> dict[int, Opcode]:
    entries: list[tuple[str, str, str]] = []  # operation, mode, code/cycles
    header, *rows = (line.split() for line in _WITH_MEMORY.strip().splitlines())
    for name, *cells in rows:
        entries += [(name, mode, cell) for mode, cell in zip(header, cells, strict=True) if cell != "-"]
    for mode, *pairs in (line.split() for line in _OTHERS.strip().splitlines()):
        entries += [(name, mode, cell) for name, cell in zip(pairs[::2], pairs[1::2], strict=True)]
    opcodes = {}
    for name, mode, cell in entries:
        code, cycles = cell.rstrip("*").split("/")
        opcodes[int(code, 16)] = Opcode(name, MODES.index(mode), int(cycles), int(cell.endswith("*")))
    return opcodes


OPCODES: dict[int, Opcode] = _read_tables()
"""The documented instructions by their code."""

BREAK_VECTOR = 0xFFFE
"""Where the address is that BRK jumps to."""

UNDEFINED = -1

OPERATION = np.full(256, UNDEFINED)
"""Number of the operation, int64 (256,), by code; `UNDEFINED` for codes that are not documented."""

MODE = np.zeros(256, np.int64)
"""Number of the addressing mode, int64 (256,), by code."""

CYCLES = np.zeros(256, np.int64)
"""Cycles, int64 (256,), by code."""

CROSSING = np.zeros(256, np.int64)
"""Cycles more for an index that leads to another page, int64 (256,), by code."""

for _code, _opcode in OPCODES.items():
    OPERATION[_code] = OPERATIONS.index(_opcode.name)
    MODE[_code], CYCLES[_code], CROSSING[_code] = _opcode[1:]
