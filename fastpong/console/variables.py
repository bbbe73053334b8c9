"""The processor's registers as variables of an LLVM function, and the fields of a state behind a pointer."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from fastpong.console.state import RAM_BYTES, STATE
from fastpong.kernels.compile.simd import INT64

INT8 = ir.IntType(8)

_NAMES = ("A", "X", "Y", "S", "N", "V", "D", "I", "C", "PC", "cycle")
"""Fields of the state that are variables. The flag Z is one as well: ``result``, a number that is 0 if it is set."""

_FLAGS = (("N", 7), ("V", 6), ("D", 3), ("I", 2), ("C", 0))
_ALWAYS, _ZERO = 0x30, 1  # bits 5 and 4 of a pushed status; which bit is Z

_cgutils: Any = cgutils  # not typed


class Variables:
    """Loads, stores and arithmetic for the code that `translate` builds; every value is an int64 of LLVM.

    `context` is Numba's, `builder` LLVM's. `signature` and `arguments` are those of the function that is built: state,
    picture and screen, see `fastpong.console.fast`.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any):
        self.context, self.builder, self._types, self._arguments = context, builder, signature.args, arguments
        self._state = builder.bitcast(arguments[0], INT8.as_pointer())
        self._places = {name: _cgutils.alloca_once(builder, INT64, name=name) for name in (*_NAMES, "result")}

    def get(self, name: str) -> Any:
        """Return a variable."""
        return self.builder.load(self._places[name])

    def set(self, name: str, value: Any) -> None:
        """Set a variable."""
        self.builder.store(INT64(value) if isinstance(value, int) else value, self._places[name])

    def tick(self, cycles: Any) -> None:
        """Let some cycles pass."""
        self.set("cycle", self.builder.add(self.get("cycle"), INT64(cycles) if isinstance(cycles, int) else cycles))

    def is_zero(self, value: Any) -> Any:
        """Return whether a value is 0."""
        return self.builder.icmp_signed("==", value, INT64(0))

    def low_byte(self, value: Any) -> Any:
        """Return the lowest eight bits."""
        return self.builder.and_(value, INT64(0xFF))

    def bit(self, value: Any, place: int) -> Any:
        """Return a bit of a value, 0 or 1."""
        return self.builder.and_(self.builder.lshr(value, INT64(place)), INT64(1))

    def set_result(self, value: Any) -> None:
        """Set the flags N and Z as a result of 0 … 255 does."""
        self.set("N", self.builder.lshr(value, INT64(7)))
        self.set("result", value)

    def status(self) -> Any:
        """Return the flags as a byte, as PHP pushes it."""
        byte = self.builder.or_(INT64(_ALWAYS), self.builder.shl(self._zero_flag(), INT64(_ZERO)))
        for name, place in _FLAGS:
            byte = self.builder.or_(byte, self.builder.shl(self.get(name), INT64(place)))
        return byte

    def set_status(self, byte: Any) -> None:
        """Set the flags from a byte, as PLP pulls it."""
        for name, place in _FLAGS:
            self.set(name, self.bit(byte, place))
        self.set("result", self.builder.xor(self.bit(byte, _ZERO), INT64(1)))

    def _zero_flag(self) -> Any:
        return self.builder.zext(self.is_zero(self.get("result")), INT64)

    def load_all(self) -> None:
        """Read the variables from the state."""
        for name in _NAMES:
            self.set(name, self.load(name))
        self.set("result", self.builder.xor(self.load("Z"), INT64(1)))

    def save_all(self) -> None:
        """Write the variables into the state."""
        for name in _NAMES:
            self.save(name, self.get(name))
        self.save("Z", self._zero_flag())

    def load(self, name: str) -> Any:
        """Return a field of the state."""
        return self.builder.sext(self.builder.load(self._field(name)), INT64)

    def save(self, name: str, value: Any) -> None:
        """Write a field of the state."""
        place = self._field(name)
        self.builder.store(self.builder.trunc(value, place.type.pointee), place)

    def _field(self, name: str) -> Any:
        kind, offset = STATE.fields[name][:2]
        place = self.builder.gep(self._state, [INT64(offset)])
        return self.builder.bitcast(place, ir.IntType(8 * kind.itemsize).as_pointer())

    def load_ram(self, address: Any) -> Any:
        """Return a byte of the RAM, which has 128 of them at every address."""
        return self.builder.zext(self.builder.load(self._ram(address)), INT64)

    def load_word(self, address: int) -> Any:
        """Return the address that two bytes of the RAM are, the lower one first."""
        low, high = self.load_ram(INT64(address)), self.load_ram(INT64(address + 1))
        return self.builder.or_(low, self.builder.shl(high, INT64(8)))

    def save_ram(self, address: Any, value: Any) -> None:
        """Write a byte of the RAM."""
        self.builder.store(self.builder.trunc(value, INT8), self._ram(address))

    def _ram(self, address: Any) -> Any:
        return self.builder.gep(self._state, [self.builder.and_(address, INT64(RAM_BYTES - 1))])

    def call(self, function: Any, *values: Any) -> Any:
        """Call a compiled function of state, picture, screen and some int64."""
        kinds = (*self._types, *[types.int64] * len(values))
        kind = self.context.typing_context.resolve_value_type(function)
        signature = kind.get_call_type(self.context.typing_context, kinds, {})
        return self.context.get_function(kind, signature)(self.builder, (*self._arguments, *values))
