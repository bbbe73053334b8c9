"""A cartridge as LLVM code: one function, with a basic block for each instruction.

The processor's registers are variables, which LLVM keeps where it likes; a flag that nobody reads costs nothing. An
operand with a known address is a load or a store. The TIA is called, and so are hooks: functions that stand in for a
piece of the code.

What is rare is not translated: a timer that has run out, decimal mode, memory that only other cartridges have, a jump
to where none leads in play. There the function is left with its state unfinished, and the plain core takes the step
from its begin. So a gap costs time, and never exactness. Twin: `fastpong.console.cpu`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic

from fastpong.arrays import U8
from fastpong.console import opcodes as o
from fastpong.console.cartridge import CARTRIDGE
from fastpong.console.disassemble import Instruction, reachable, word_at
from fastpong.console.memory import Calls, Memory
from fastpong.console.riot import PORTS, RIOT
from fastpong.console.shortcuts import SHORTCUTS
from fastpong.kernels.compile.simd import INT64

LONGEST_FRAME = 21_000
"""Cycles after which the code is left; a frame of Pong has 19,912. So no loop runs forever, whatever the state is."""

_BRANCHES = {
    "BPL": ("N", False), "BMI": ("N", True), "BVC": ("V", False), "BVS": ("V", True),
    "BCC": ("C", False), "BCS": ("C", True), "BNE": ("result", True), "BEQ": ("result", False),
}  # fmt: skip
"""The variable that each branch looks at, and whether it is taken if that is not 0."""

_FLAG_CHANGES = {"CLC": ("C", 0), "SEC": ("C", 1), "CLI": ("I", 0), "SEI": ("I", 1), "CLV": ("V", 0), "CLD": ("D", 0)}


class Hook(NamedTuple):
    """A function (state, picture, screen) that stands in for the code at an address; it returns whether it did."""

    function: Any
    exits: tuple[int, ...]  # where it may lead


class _Translator(Memory):
    """Builds the function of a cartridge, see `translated`."""

    def __init__(
        self, context: Any, builder: Any, signature: Any, arguments: Any, rom: U8, entries: tuple[int, ...],
        indirect: tuple[int, ...], hooks: Mapping[int, Hook], calls: Calls,
    ):  # fmt: skip
        super().__init__(context, builder, signature, arguments, rom, calls)
        self.entries, self.indirect, self.hooks = entries, indirect, hooks
        exits = [address for hook in hooks.values() for address in hook.exits]
        self.code, self.returns = reachable(rom, [*entries, *indirect, *exits], hooks)

    def build(self) -> None:
        """Build the function: it runs from the state's PC, an entry, until the frame ends or the code is left."""
        b = self.builder
        self.load_all()
        self.blocks = {address: b.append_basic_block(f"at_{address:04x}") for address in [*self.code, *self.hooks]}
        self.jump_to(self.get("PC"), self.entries)
        for address in self.code:
            b.position_at_end(self.blocks[address])
            self.instruction(address)
        for address, hook in self.hooks.items():
            b.position_at_end(self.blocks[address])
            self.save_all()
            b.cbranch(self.call(hook.function), done := b.append_basic_block(), self.leave_as_saved())
            b.position_at_end(done)
            self.load_all()
            self.jump_to(self.get("PC"), hook.exits)
        b.position_at_end(self.leave)
        self.save_all()

    def leave_as_saved(self) -> Any:
        """Return a block that leaves with the variables that a hook has left in the state."""
        block = self.builder.append_basic_block()
        with self.builder.goto_block(block):
            self.load_all()
            self.builder.branch(self.leave)
        return block

    # ---- where the code goes on ------------------------------------------------------------------------------------

    def leave_if_long(self) -> None:
        """Leave the code if the frame does not end; whatever may run in circles asks."""
        self.leave_if(self.builder.icmp_signed(">=", self.get("cycle"), INT64(LONGEST_FRAME)))

    def go_to(self, address: int, since: int) -> None:
        """Go on at a known address, from another one."""
        if address <= since:
            self.leave_if_long()
        self.builder.branch(self.blocks.get(address, self.leave))

    def jump_to(self, address: Any, targets: Any) -> None:
        """Go on at one of some addresses."""
        self.leave_if_long()
        switch = self.builder.switch(address, self.leave)
        for target in sorted(set(targets)):
            if target in self.blocks:
                switch.add_case(INT64(target), self.blocks[target])

    def instruction(self, address: int) -> None:
        """Build one instruction, and where the code goes on after it."""
        for shortcut in SHORTCUTS:
            shortcut(self, self.code, address)
        instruction = self.code[address]
        self.tick(instruction.cycles)
        self.set("PC", instruction.next)  # should it end the frame
        if instruction.name in _BRANCHES:
            self.branch(instruction, address)
        elif instruction.name in ("JMP", "JSR", "BRK", "RTS", "RTI"):
            self.jump(instruction, address)
        else:
            self.compute(instruction)
            self.go_to(instruction.next, address)

    def branch(self, instruction: Instruction, address: int) -> None:
        """Go on at one of two addresses; a branch that is taken needs one cycle more, to another page two."""
        b, (name, if_set) = self.builder, _BRANCHES[instruction.name]
        taken, other = b.append_basic_block(), b.append_basic_block()
        b.cbranch(b.icmp_signed("!=" if if_set else "==", self.get(name), INT64(0)), taken, other)
        b.position_at_end(taken)
        self.tick(2 if (instruction.next ^ instruction.operand) & 0xFF00 else 1)
        self.go_to(instruction.operand, address)
        b.position_at_end(other)
        self.go_to(instruction.next, address)

    def jump(self, instruction: Instruction, address: int) -> None:
        """Go on somewhere else."""
        b, (name, mode, operand, after) = self.builder, instruction[:4]
        if name == "JMP" and mode == o.INDIRECT:
            in_ram = operand & (CARTRIDGE | PORTS | RIOT) == RIOT and operand & 0xFF != 0xFF
            assert in_ram, "a pointer outside of the RAM is not translated"
            self.jump_to(self.load_word(operand), self.indirect)
        elif name == "JMP":
            self.go_to(operand, address)
        elif name in ("JSR", "BRK"):
            comes_back = after - 1 if name == "JSR" else address + 2
            self.push(INT64(comes_back >> 8))
            self.push(INT64(comes_back & 0xFF))
            if name == "BRK":
                self.push(self.status())
                self.set("I", 1)
            self.go_to(operand if name == "JSR" else word_at(self.rom, o.BREAK_VECTOR), address)
        else:
            if name == "RTI":
                self.set_status(self.pull())
            low = self.pull()
            back = b.or_(low, b.shl(self.pull(), INT64(8)))
            if name == "RTS":
                back = b.and_(b.add(back, INT64(1)), INT64(0xFFFF))
            self.jump_to(back, self.returns)

    # ---- what instructions compute ---------------------------------------------------------------------------------

    def compute(self, instruction: Instruction) -> None:
        """Build an instruction after which the next one follows."""
        b, name = self.builder, instruction.name
        if name in ("LDA", "LDX", "LDY"):
            self.transfer(self.value(instruction), name[2])
        elif name in ("STA", "STX", "STY"):
            self.store(instruction, self.get(name[2]))
        elif name in ("TAX", "TAY", "TXA", "TYA", "TSX"):
            self.transfer(self.get(name[1]), name[2])
        elif name == "TXS":
            self.set("S", self.get("X"))
        elif name in ("INX", "INY", "DEX", "DEY"):
            self.transfer(self.low_byte(b.add(self.get(name[2]), INT64(1 if name[0] == "I" else -1))), name[2])
        elif name in ("AND", "ORA", "EOR"):
            combine = {"AND": b.and_, "ORA": b.or_, "EOR": b.xor}[name]
            self.transfer(combine(self.get("A"), self.value(instruction)), "A")
        elif name in ("ADC", "SBC"):
            self.add(self.value(instruction), name == "SBC")
        elif name in ("CMP", "CPX", "CPY"):
            difference = b.sub(self.get("A" if name == "CMP" else name[2]), self.value(instruction))
            self.set("C", b.zext(b.icmp_signed(">=", difference, INT64(0)), INT64))
            self.set_result(self.low_byte(difference))
        elif name == "BIT":
            value = self.value(instruction)
            self.set_result(value)
            self.set("V", self.bit(value, 6))
            self.set("result", b.and_(value, self.get("A")))
        elif name in ("INC", "DEC", "ASL", "LSR", "ROL", "ROR"):
            self.modify(instruction)
        elif name in _FLAG_CHANGES:
            self.set(*_FLAG_CHANGES[name])
        elif name in ("PHA", "PHP"):
            self.push(self.get("A") if name == "PHA" else self.status())
        elif name == "PLA":
            self.transfer(self.pull(), "A")
        elif name == "PLP":
            self.set_status(self.pull())
        else:
            assert name == "NOP", f"{name} is not translated"

    def transfer(self, value: Any, to: str) -> None:
        """Set a register and the flags N and Z."""
        self.set(to, value)
        self.set_result(value)

    def add(self, value: Any, subtract: bool) -> None:
        """Add to the accumulator with carry; to subtract is to add the complement. Decimal mode leaves the code."""
        b, before = self.builder, self.get("A")
        self.leave_if(b.icmp_signed("!=", self.get("D"), INT64(0)))
        if subtract:
            value = b.xor(value, INT64(0xFF))
        total = b.add(b.add(before, value), self.get("C"))
        overflow = b.and_(b.not_(b.xor(before, value)), b.xor(before, total))
        self.set("V", self.bit(overflow, 7))
        self.set("C", b.lshr(total, INT64(8)))
        self.transfer(self.low_byte(total), "A")

    def modify(self, instruction: Instruction) -> None:
        """Change a byte of memory, or the accumulator, in place."""
        b, name = self.builder, instruction.name
        value, carry = self.value(instruction), self.get("C")
        if name in ("INC", "DEC"):
            value = self.low_byte(b.add(value, INT64(1 if name == "INC" else -1)))
        elif name in ("ASL", "ROL"):
            self.set("C", b.lshr(value, INT64(7)))
            value = self.low_byte(b.shl(value, INT64(1)))
            value = b.or_(value, carry) if name == "ROL" else value
        else:
            self.set("C", b.and_(value, INT64(1)))
            value = b.lshr(value, INT64(1))
            value = b.or_(value, b.shl(carry, INT64(7))) if name == "ROR" else value
        self.set_result(value)
        if instruction.mode == o.ACCUMULATOR:
            self.set("A", value)
        else:
            self.store(instruction, value)


def translated(
    rom: U8, entries: tuple[int, ...], indirect: tuple[int, ...], hooks: Mapping[int, Hook], calls: Calls
) -> Any:
    """Return an intrinsic of Numba (state, picture, screen) that runs the cartridge `rom` from the state's PC.

    That is one of `entries`; `indirect` are the targets of JMP (…). It ends when the frame does, or earlier; then
    ``frame_over`` is 0, or ``cycle`` at least `LONGEST_FRAME`, and nothing of the state is of any use.
    """

    @intrinsic
    def run(typing: Any, s: Any, p: Any, screen: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _Translator(context, builder, signature, arguments, rom, entries, indirect, hooks, calls).build()
            return context.get_dummy_value()

        return types.none(s, p, screen), code

    return run
