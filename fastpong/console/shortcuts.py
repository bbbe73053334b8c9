"""Loops of a cartridge that compute what a formula says as well: the code goes to their last pass.

Each shortcut is built in front of the first instruction of such a loop, which then runs as it is.
"""

from collections.abc import Callable

from fastpong.console.disassemble import Code, Instruction
from fastpong.console.opcodes import ABSOLUTE, IMMEDIATE
from fastpong.console.riot import INTIM, PORTS, RIOT
from fastpong.console.variables import Variables
from fastpong.kernels.compile.simd import INT64

_LONGEST_WAIT = 1 << 17  # cycles; the timer never takes longer, unless a stranger made the state


def wait_for_timer(v: Variables, code: Code, address: int) -> None:
    """LDA INTIM, BNE back: seven cycles a pass, until the timer is 0."""
    read, back = code[address], code.get(code[address].next)
    if not back or (read.name, read.mode, read.operand) != ("LDA", ABSOLUTE, RIOT | PORTS | INTIM):
        return
    if back.name != "BNE" or back.operand != address or _pages_differ(back, address):
        return
    b = v.builder
    steps = b.shl(b.sub(v.load("timer"), INT64(1)), v.load("timer_shift"))
    zero_at = b.add(b.add(v.load("timer_set"), INT64(1)), steps)
    left = b.sub(zero_at, b.add(v.get("cycle"), INT64(read.cycles)))
    passes = b.sdiv(b.add(left, INT64(6)), INT64(7))
    waits = b.and_(b.icmp_signed(">", left, INT64(0)), b.icmp_signed("<", left, INT64(_LONGEST_WAIT)))
    v.tick(b.select(waits, b.mul(passes, INT64(7)), INT64(0)))


def count_down(v: Variables, code: Code, address: int) -> None:
    """DEY, BPL back: a delay of five cycles a pass."""
    step, back = code[address], code.get(code[address].next)
    if step.name != "DEY" or not back or back.name != "BPL" or back.operand != address or _pages_differ(back, address):
        return
    b, count = v.builder, v.get("Y")
    positive = b.icmp_signed("<", count, INT64(0x80))
    v.tick(b.select(positive, b.mul(count, INT64(5)), INT64(0)))
    v.set("Y", b.select(positive, INT64(0), count))


def divide(v: Variables, code: Code, address: int) -> None:
    """INY, SBC #n, BCS back: a division by n, seven cycles a pass, if it begins with the carry set."""
    step, minus = code[address], code.get(code[address].next)
    if step.name != "INY" or not minus or (minus.name, minus.mode) != ("SBC", IMMEDIATE) or minus.operand < 2:
        return
    back = code.get(minus.next)
    if not back or back.name != "BCS" or back.operand != address or _pages_differ(back, address):
        return
    b, divisor = v.builder, INT64(minus.operand)
    quotient = b.mul(b.udiv(v.get("A"), divisor), v.get("C"))
    v.tick(b.mul(quotient, INT64(7)))
    v.set("A", b.sub(v.get("A"), b.mul(quotient, divisor)))
    v.set("Y", v.low_byte(b.add(v.get("Y"), quotient)))


def _pages_differ(back: Instruction, address: int) -> bool:
    """Return whether a branch to an address leads to another page, and so takes a cycle more."""
    return (back.next ^ address) & 0xFF00 != 0


SHORTCUTS: tuple[Callable[[Variables, Code, int], None], ...] = (wait_for_timer, count_down, divide)
"""Each builds what goes to the last pass, if the instruction at an address begins a loop of its kind."""
