"""Vectors of 16 numbers as LLVM code: the parts of the generated functions in `tiles.py` and `gathers.py`.

LLVM maps such a vector to what the processor has: one register with AVX-512, two with AVX2.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core import config as numba_config
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

LANES = 16
"""Numbers in a vector, and channels of a position."""

VECTORS_PER_TILE = 4
"""Vectors in the row of a tile."""

COLUMNS = VECTORS_PER_TILE * LANES
"""Columns of a tile: hidden units are a multiple of them."""


def _has_avx512() -> bool:
    """Return whether Numba compiles for AVX-512; it looks in the same two places."""
    given: str | None = getattr(numba_config, "CPU_FEATURES")  # noqa: B009  (numba's own module is not typed)
    if given is not None:
        return "+avx512f" in given.split(",")
    try:
        return bool(binding.get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # LLVM does not know for this kind of processor
        return False


ACCUMULATORS = VECTORS_PER_TILE if _has_avx512() else 1
"""Vectors of each of four rows of sums that are worked on at once: as many as there are registers for, which are 32 of
16 numbers with AVX-512, but 16 of 8 with AVX2. Sums that find no register are written to memory and read at each step.
"""

PLAIN: bool = getattr(numba_config, "DISABLE_JIT")  # noqa: B009  (numba's own module is not typed)
INT64 = ir.IntType(64)

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INTEGERS = _ORDER = ir.VectorType(ir.IntType(32), LANES)
_cgutils: Any = cgutils  # not typed


def constant(number: float) -> Any:
    """Return a vector of so many times this number."""
    return ir.Constant(_VECTOR, [number] * LANES)


ZEROS = constant(0.0)


class Matrix:
    """A contiguous matrix, for generated code."""

    def __init__(self, builder: Any, view: Any):
        self.builder, self.data, self.width = builder, view.data, builder.extract_value(view.shape, 1)

    def at(self, row: Any, column: Any = None) -> Any:
        """Address of a number."""
        index = self.builder.mul(row, self.width)
        return self.builder.gep(self.data, [index if column is None else self.builder.add(index, column)])

    def below(self, place: Any) -> Any:
        """Address of the number below that at an address."""
        return self.builder.gep(place, [self.width])


class Numbers:
    """A contiguous array with one axis, for generated code; integers are read as int64."""

    def __init__(self, builder: Any, view: Any, signed: bool):
        self.builder, self.data, self.length = builder, view.data, builder.extract_value(view.shape, 0)
        self._extend = builder.sext if signed else builder.zext

    def __getitem__(self, index: Any) -> Any:
        number = self.builder.load(self.builder.gep(self.data, [index]))
        return number if number.type == INT64 else self._extend(number, INT64)


def vector_code(plain: F, returns: Any = types.void) -> Callable[[Callable[..., Any]], F]:
    """Return a decorator for what builds the LLVM code of the function `plain`, which runs where Numba is disabled.

    The decorated function gets LLVM's builder and the arguments of `plain`: a `Matrix` or `Numbers` for each array, an
    int64 for each integer. It returns the LLVM value of what `plain` returns, of Numba's type `returns`.
    """

    def decorate(build: Callable[..., Any]) -> F:
        def typed(typing: Any, *kinds: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                def wrapped(kind: Any, value: Any) -> Any:
                    if not isinstance(kind, types.Array):
                        return value
                    view = context.make_array(kind)(context, builder, value)
                    if kind.ndim == 2:
                        return Matrix(builder, view)
                    return Numbers(builder, view, getattr(kind.dtype, "signed", True))

                result = build(builder, *map(wrapped, signature.args, values))
                return context.get_dummy_value() if returns is types.void else result

            return returns(*(types.int64 if isinstance(kind, types.Integer) else kind for kind in kinds)), code

        typed.__signature__ = inspect.signature(build)  # type: ignore[attr-defined]  # Numba counts the arguments
        return plain if PLAIN else cast(F, intrinsic(typed))

    return decorate


def _plain_lowest_bit(bits: Any) -> int:
    """Return the place of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


@vector_code(_plain_lowest_bit, types.int64)
def lowest_bit(builder: Any, bits: Any) -> Any:
    """Count the zeros below it."""
    return builder.cttz(bits, ir.IntType(1)(1))


def load(builder: Any, place: Any, vectors: int) -> list[Any]:
    """Load some vectors, one after the other in memory, of numbers as they are at `place`: float32 or int32."""
    kind = ir.VectorType(place.type.pointee, LANES)
    places = [builder.gep(place, [INT64(i * LANES)]) for i in range(vectors)]
    return [builder.load(builder.bitcast(p, kind.as_pointer()), align=4) for p in places]


def store(builder: Any, place: Any, values: list[Any]) -> None:
    """Store some vectors, one after the other in memory."""
    for i, value in enumerate(values):
        p = builder.gep(place, [INT64(i * LANES)])
        builder.store(value, builder.bitcast(p, value.type.as_pointer()), align=4)


def add(builder: Any, x: Any, y: Any) -> Any:
    """Compute x + y, of vectors of floats or of integers."""
    return builder.fadd(x, y) if x.type == _VECTOR else builder.add(x, y)


LOW, HIGH = -(2.0**31), 2.0**31 - 2.0**7
"""The least and the greatest float32 that an int32 can be."""


def nearest(builder: Any, value: Any) -> Any:
    """Return the integers next to the floats of a vector, `LOW` … `HIGH`; NaN is `HIGH`."""
    for limit, nearer in ((constant(HIGH), "<"), (constant(LOW), ">")):  # what an int32 is beyond, no processor agrees
        value = builder.select(builder.fcmp_ordered(nearer, value, limit), value, limit)
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    whole = builder.call(builder.module.declare_intrinsic("llvm.rint.v16f32", fnty=kind), [value])
    return builder.fptosi(whole, _INTEGERS)


def spread(builder: Any, place: Any, lane: int) -> Any:
    """Load a float into all lanes."""
    number, nothing = builder.load(builder.gep(place, [INT64(lane)])), ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_ORDER, [0] * LANES))


def fma(builder: Any, a: Any, b: Any, total: Any) -> Any:
    """Compute a · b + total."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(builder.module.declare_intrinsic("llvm.fmuladd.v16f32", fnty=kind), [a, b, total])


def positive(builder: Any, condition: Any, value: Any) -> Any:
    """Compute `value` where `condition` > 0, else 0."""
    return builder.select(builder.fcmp_ordered(">", condition, ZEROS), value, ZEROS)


def masked(builder: Any, condition: Any, value: Any) -> Any:
    """Compute `value` where `condition`, one bit for all lanes, else 0; without a branch."""
    numbers = ir.VectorType(ir.IntType(32), LANES)
    nothing = ir.Constant(numbers, ir.Undefined)
    one = builder.insert_element(nothing, builder.sext(condition, ir.IntType(32)), ir.IntType(32)(0))
    mask = builder.shuffle_vector(one, nothing, ir.Constant(_ORDER, [0] * LANES))
    return builder.bitcast(builder.and_(mask, builder.bitcast(value, numbers)), _VECTOR)


def sum_lanes(builder: Any, vector_of: Callable[[int], Any], first: int = 0, count: int = LANES) -> Any:
    """Add up the lanes of 16 vectors: the sum of vector i comes to lane i.

    Pairs of neighbouring lanes are added four times. Each vector is computed (`vector_of(i)`) when it is needed, so
    that few are alive at once.
    """
    if count == 1:
        return vector_of(first)
    x, y = (sum_lanes(builder, vector_of, half, count // 2) for half in (first, first + count // 2))
    pairs = []
    for start in (0, 1):
        if count <= 4:
            # Neighbours, which stay in their quarter of a vector: to put them in order would take more instructions.
            lanes = [4 * q + k + start for q in range(4) for k in (0, 2, LANES, LANES + 2)]
        else:
            # Neighbouring quarters, each of which has a lane for four vectors by now.
            lanes = [4 * (q + start) + k for q in (0, 2, 4, 6) for k in range(4)]
        pairs.append(builder.shuffle_vector(x, y, ir.Constant(_ORDER, lanes)))
    return builder.fadd(*pairs)


def loop(builder: Any, start: Any, end: Any) -> AbstractContextManager[Any]:
    """Repeat what is built inside for the numbers start … end − 1; entering gives the number, and something else."""
    inside: AbstractContextManager[Any] = _cgutils.for_range_slice(builder, start, end, INT64(1), INT64)
    return inside


def variables(builder: Any, values: list[Any]) -> list[Any]:
    """Return places for what changes in a `loop`; LLVM keeps it in registers."""
    places = [_cgutils.alloca_once(builder, value.type) for value in values]
    for place, value in zip(places, values, strict=True):
        builder.store(value, place)
    return places


def add_products(builder: Any, start: Any, lists: tuple[Any, Any], begin: Any, end: Any, shape: tuple[int, int]) -> Any:
    """Add the products of the numbers begin … end − 1 of two lists to `start`: (vectors, lanes) of sums at once."""
    vectors, lanes = shape
    kind = ir.VectorType(ir.FloatType(), lanes)
    fused = builder.module.declare_intrinsic(f"llvm.fma.v{lanes}f32", fnty=ir.FunctionType(kind, [kind] * 3))
    zeros = ir.Constant(kind, [0.0] * lanes)
    first = builder.insert_element(zeros, start, ir.IntType(32)(0))
    sums = variables(builder, [first, *[zeros] * (vectors - 1)])
    with _cgutils.for_range_slice(builder, begin, end, INT64(vectors * lanes), INT64) as (j, _):
        for k, place in enumerate(sums):
            at = builder.add(j, INT64(k * lanes))
            x, y = (builder.bitcast(builder.gep(of, [at]), kind.as_pointer()) for of in lists)
            product = [builder.load(x, align=4), builder.load(y, align=4), builder.load(place)]
            builder.store(builder.call(fused, product), place)
    found = [builder.load(place) for place in sums]
    while len(found) > 1:
        found = [builder.fadd(x, y) for x, y in zip(found[::2], found[1::2], strict=True)]
    total = found[0]
    while lanes > 1:
        lanes //= 2
        order = ir.VectorType(ir.IntType(32), lanes)
        halves = [ir.Constant(order, list(range(k, k + lanes))) for k in (0, lanes)]
        total = builder.fadd(*(builder.shuffle_vector(total, total, half) for half in halves))
    return builder.extract_element(total, ir.IntType(32)(0))
