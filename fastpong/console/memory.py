"""How translated code reads and writes memory: the RAM, the cartridge, the timer and the switches, and the TIA.

What only other cartridges need is not translated: there the code is left, see `fastpong.console.translate`. Twin:
`fastpong.console.bus`.
"""

from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils

from fastpong.arrays import U8
from fastpong.console import opcodes as o
from fastpong.console import registers as r
from fastpong.console.cartridge import CARTRIDGE
from fastpong.console.disassemble import Instruction, byte_at
from fastpong.console.riot import INTIM, PORTS, RIOT, SWCHA, SWCHB, TIMER, TIMER_SHIFTS
from fastpong.console.variables import INT8, Variables
from fastpong.kernels.compile.simd import INT64

_SOUND = range(r.AUDC0, r.AUDV1 + 1)

_cgutils: Any = cgutils  # not typed


class Calls(NamedTuple):
    """The functions of the TIA, of state, picture, screen and the numbers named here."""

    write: Any  # register, value
    read: Any  # register, the byte that was last on the data bus
    store: Any  # register, value: a write while nothing is shown
    is_hidden: Any  # whether nothing is shown


class Memory(Variables):
    """What the instructions of the cartridge `rom` read and write. `leave` is the block in which the code is left."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, rom: U8, calls: Calls):
        super().__init__(context, builder, signature, arguments)
        self.rom, self.calls, self.leave = rom, calls, builder.append_basic_block("leave")
        bytes_of_rom = ir.Constant(ir.ArrayType(INT8, len(rom)), bytearray(rom.tobytes()))
        self._data = _cgutils.global_constant(builder, "cartridge", bytes_of_rom)

    def leave_if(self, condition: Any) -> None:
        """Leave the code."""
        with self.builder.if_then(condition, likely=False):
            self.builder.branch(self.leave)

    def read(self, address: int) -> Any:
        """Read from a known address."""
        if address & CARTRIDGE:
            return INT64(byte_at(self.rom, address))
        if not address & RIOT:
            self.save("cycle", self.get("cycle"))
            return self.call(self.calls.read, INT64(address & 0x0F), INT64(address >> 8 or address))
        if not address & PORTS:
            return self.load_ram(INT64(address))
        if address & 7 in (SWCHA, SWCHB):
            return self.load("SWCHA" if address & 7 == SWCHA else "SWCHB")
        assert address & 7 == INTIM, f"{address:04X} is not translated"
        b = self.builder
        passed = b.ashr(b.sub(b.sub(self.get("cycle"), INT64(1)), self.load("timer_set")), self.load("timer_shift"))
        value = b.sub(b.sub(self.load("timer"), passed), INT64(1))
        self.leave_if(b.icmp_signed("<", value, INT64(0)))
        return value

    def read_at(self, address: Any, last: int, in_page_zero: bool) -> Any:
        """Read from an address that is known only when the code runs; `last` is the byte that was last on the bus."""
        b = self.builder
        value = _cgutils.alloca_once(b, INT64)
        is_tia = b.icmp_signed("==", b.and_(address, INT64(CARTRIDGE | RIOT)), INT64(0))
        with b.if_else(is_tia, likely=False) as (in_tia, elsewhere):
            with in_tia:
                self.save("cycle", self.get("cycle"))
                register = b.and_(address, INT64(0x0F))
                b.store(self.call(self.calls.read, register, INT64(last)), value)
            with elsewhere:
                if in_page_zero:
                    b.store(self.load_ram(address), value)
                else:
                    in_rom = b.icmp_signed("!=", b.and_(address, INT64(CARTRIDGE)), INT64(0))
                    in_ports = b.icmp_signed("!=", b.and_(address, INT64(PORTS)), INT64(0))
                    self.leave_if(b.and_(b.not_(in_rom), in_ports))
                    b.store(b.select(in_rom, self.rom_at(address), self.load_ram(address)), value)
        return b.load(value)

    def rom_at(self, address: Any) -> Any:
        """Return a byte of the cartridge."""
        b = self.builder
        place = b.gep(self._data, [INT64(0), b.and_(address, INT64(len(self.rom) - 1))])
        return b.zext(b.load(place), INT64)

    def write(self, address: int, value: Any) -> None:
        """Write to a known address."""
        if address & CARTRIDGE:
            return
        if not address & RIOT:
            if address & 0x3F not in _SOUND:
                self.write_tia(address & 0x3F, value)
        elif not address & PORTS:
            self.save_ram(INT64(address), value)
        else:
            assert address & TIMER == TIMER, f"{address:04X} is not translated"
            self.save("timer", value)
            self.save("timer_shift", INT64(TIMER_SHIFTS[address & 3]))
            self.save("timer_set", self.get("cycle"))
            self.save("timer_ran_out", INT64(0))

    def write_at(self, address: Any, value: Any, in_page_zero: bool) -> None:
        """Write to an address that is known only when the code runs: RAM, or a register of the TIA in page zero."""
        b = self.builder
        if not in_page_zero:
            self.leave_if(b.icmp_signed("!=", b.and_(address, INT64(CARTRIDGE | PORTS | RIOT)), INT64(RIOT)))
            self.save_ram(address, value)
            return
        with b.if_else(b.icmp_signed(">=", address, INT64(RIOT))) as (in_ram, in_tia):
            with in_ram:
                self.save_ram(address, value)
            with in_tia:
                self.call_write(b.and_(address, INT64(0x3F)), value)

    def write_tia(self, register: int, value: Any) -> None:
        """Write to a register of the TIA."""
        b = self.builder
        if register == r.WSYNC:
            clock = b.sub(b.mul(self.get("cycle"), INT64(3)), self.load("frame_start"))
            left = b.sub(INT64(r.CLOCKS), b.srem(clock, INT64(r.CLOCKS)))
            self.tick(b.srem(b.sdiv(left, INT64(3)), INT64(r.LINE_CYCLES)))
        elif register == r.VSYNC:
            self.call_write(INT64(register), value)
        else:
            self.save("cycle", self.get("cycle"))
            hidden = b.trunc(self.call(self.calls.is_hidden), ir.IntType(1))
            with b.if_else(hidden) as (unseen, seen):
                with unseen:
                    self.call(self.calls.store, INT64(register), value)
                with seen:
                    self.call(self.calls.write, INT64(register), value)

    def call_write(self, register: Any, value: Any) -> None:
        """Write to any register of the TIA: WSYNC lets time pass, and VSYNC ends the frame."""
        self.save("cycle", self.get("cycle"))
        self.call(self.calls.write, register, value)
        self.set("cycle", self.load("cycle"))
        self.leave_if(self.builder.icmp_signed("!=", self.load("frame_over"), INT64(0)))

    def push(self, value: Any) -> None:
        """Push a byte onto the stack."""
        b, at = self.builder, self.get("S")
        self.leave_if(b.icmp_signed("<", at, INT64(RIOT)))
        self.save_ram(at, value)
        self.set("S", self.low_byte(b.sub(at, INT64(1))))

    def pull(self) -> Any:
        """Pull a byte from the stack."""
        at = self.low_byte(self.builder.add(self.get("S"), INT64(1)))
        self.set("S", at)
        self.leave_if(self.builder.icmp_signed("<", at, INT64(RIOT)))
        return self.load_ram(at)

    # ---- operands --------------------------------------------------------------------------------------------------

    def address(self, instruction: Instruction) -> Any:
        """Return where the operand of an indexed instruction is, and let the cycle of another page pass."""
        b, (_, mode, operand, _, _, crossing) = self.builder, instruction
        if mode in (o.ZERO_PAGE_X, o.ZERO_PAGE_Y):
            return self.low_byte(b.add(INT64(operand), self.get("X" if mode == o.ZERO_PAGE_X else "Y")))
        if mode == o.INDIRECT_Y:
            assert operand & RIOT and operand < 0xFF, "a pointer outside of the RAM is not translated"
            base = self.load_word(operand)
        else:
            assert mode in (o.ABSOLUTE_X, o.ABSOLUTE_Y), f"mode {mode} is not translated"
            base = INT64(operand)
        index = self.get("X" if mode == o.ABSOLUTE_X else "Y")
        if crossing:
            self.tick(b.lshr(b.add(self.low_byte(base), index), INT64(8)))
        return b.and_(b.add(base, index), INT64(0xFFFF))

    def value(self, instruction: Instruction) -> Any:
        """Return the operand."""
        b, mode, operand = self.builder, instruction.mode, instruction.operand
        if mode == o.ACCUMULATOR:
            return self.get("A")
        if mode == o.IMMEDIATE:
            return INT64(operand)
        if mode in (o.ZERO_PAGE, o.ABSOLUTE):
            return self.read(operand)
        address = self.address(instruction)
        if mode in (o.ABSOLUTE_X, o.ABSOLUTE_Y) and operand & CARTRIDGE and (operand & 0xFFF) + 0xFF < CARTRIDGE:
            return self.rom_at(address)
        if mode == o.INDIRECT_Y:
            self.leave_if(b.icmp_signed("==", b.and_(address, INT64(CARTRIDGE | RIOT)), INT64(0)))
        return self.read_at(address, operand >> 8 or operand, mode in (o.ZERO_PAGE_X, o.ZERO_PAGE_Y))

    def store(self, instruction: Instruction, value: Any) -> None:
        """Write to where the operand is."""
        if instruction.mode in (o.ZERO_PAGE, o.ABSOLUTE):
            self.write(instruction.operand, value)
        else:
            in_page_zero = instruction.mode in (o.ZERO_PAGE_X, o.ZERO_PAGE_Y)
            self.write_at(self.address(instruction), value, in_page_zero)
