"""Small dense products that stay in registers, for the hidden layer: tiles of 16 channels by 64 (or 16) columns.

Numba's loops do not keep a row of sums in registers from one row of weights to the next, and a call of BLAS costs more
than a tile. So these few products are written as LLVM vector code, which LLVM maps to what the processor has. The
plain Python beside each says what it computes, and is what runs when numba is disabled.

Arguments, all matrices float32 and contiguous: `acts` (entries, 16) channels; `weights` (…, columns), of which the rows
`base` … `base + 15` are the tile; a column at which the tile begins; rows of `acts` and of a matrix (samples, columns)
that belong together.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import config as numba_config
from numba.extending import intrinsic

CHANNELS = 16
"""Rows of a tile, and lanes of a vector."""
WIDE, NARROW = 4, 1
"""Vectors in a row of a tile: 64 or 16 columns."""

_VECTOR = ir.VectorType(ir.FloatType(), CHANNELS)
_LANES = ir.VectorType(ir.IntType(32), CHANNELS)
_PLAIN: bool = getattr(numba_config, "DISABLE_JIT")  # noqa: B009  (numba's own module is not typed)
_INT = types.int64
_I64 = ir.IntType(64)


class _Matrix:
    """Addresses in a contiguous matrix, for generated code."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any):
        view = context.make_array(kind)(context, builder, value)
        self.builder, self.data, self.width = builder, view.data, builder.extract_value(view.shape, 1)

    def at(self, row: Any, column: Any = None) -> Any:
        index = self.builder.mul(row, self.width)
        return self.builder.gep(self.data, [index if column is None else self.builder.add(index, column)])

    def below(self, place: Any) -> Any:
        return self.builder.gep(place, [self.width])


def _load(builder: Any, place: Any, vectors: int) -> list[Any]:
    places = [builder.gep(place, [_I64(i * CHANNELS)]) for i in range(vectors)]
    return [builder.load(builder.bitcast(p, _VECTOR.as_pointer()), align=4) for p in places]


def _store(builder: Any, place: Any, values: list[Any]) -> None:
    for i, value in enumerate(values):
        p = builder.gep(place, [_I64(i * CHANNELS)])
        builder.store(value, builder.bitcast(p, _VECTOR.as_pointer()), align=4)


def _spread(builder: Any, place: Any, channel: int) -> Any:
    """Load a float into all lanes."""
    number, nothing = builder.load(builder.gep(place, [_I64(channel)])), ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_LANES, [0] * CHANNELS))


def _fma(builder: Any, a: Any, b: Any, total: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(builder.module.declare_intrinsic("llvm.fmuladd.v16f32", fnty=kind), [a, b, total])


def _sum_lanes(builder: Any, vectors: list[Any]) -> Any:
    """Add up the lanes of 16 vectors: the sum of vector i comes to lane i."""
    pairs = [ir.Constant(_LANES, list(range(start, 2 * CHANNELS, 2))) for start in (0, 1)]
    while len(vectors) > 1:
        vectors = [
            builder.fadd(*(builder.shuffle_vector(x, y, lanes) for lanes in pairs))
            for x, y in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def _add_rows(samples: int, vectors: int) -> Any:
    """Make a function for one or two samples: sums[m] += acts[e] · weights, for (e0, m0), (e1, m1)."""

    def add_rows(typing: Any, sums: Any, acts: Any, weights: Any, base: Any, column: Any,
                 e0: Any, e1: Any, m0: Any, m1: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, by, rows = (_Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            base, column, entries, owners = values[3], values[4], values[5:7], values[7:9]
            places = [into.at(owner, column) for owner in owners[:samples]]
            factors = [by.at(entry) for entry in entries[:samples]]
            totals = [_load(builder, place, vectors) for place in places]
            row = rows.at(base, column)
            for c in range(CHANNELS):
                numbers = _load(builder, row, vectors)
                for i, factor in enumerate(factors):
                    a = _spread(builder, factor, c)
                    totals[i] = [_fma(builder, a, x, total) for x, total in zip(numbers, totals[i], strict=True)]
                row = rows.below(row)
            for place, total in zip(places, totals, strict=True):
                _store(builder, place, total)
            return context.get_dummy_value()

        return types.void(sums, acts, weights, *[_INT] * 6), code

    def plain(sums: Any, acts: Any, weights: Any, base: int, column: int, e0: int, e1: int, m0: int, m1: int) -> None:
        part = slice(column, column + vectors * CHANNELS)
        for entry, owner in ((e0, m0), (e1, m1))[:samples]:
            sums[owner, part] += acts[entry] @ weights[base : base + CHANNELS, part]

    return plain if _PLAIN else intrinsic(add_rows)


def _dot_rows(vectors: int) -> Any:
    """Make a function: dots[0] += weights · grads[m], over the columns of the tile."""

    def dot_rows(typing: Any, dots: Any, grads: Any, weights: Any, base: Any, column: Any, m: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, by, rows = (_Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            base, column, owner = values[3:]
            factors, row, products = _load(builder, by.at(owner, column), vectors), rows.at(base, column), []
            for _ in range(CHANNELS):
                numbers = _load(builder, row, vectors)
                product = builder.fmul(numbers[0], factors[0])
                for x, y in zip(numbers[1:], factors[1:], strict=True):
                    product = _fma(builder, x, y, product)
                products.append(product)
                row = rows.below(row)
            place = into.at(_I64(0))
            _store(builder, place, [builder.fadd(_load(builder, place, 1)[0], _sum_lanes(builder, products))])
            return context.get_dummy_value()

        return types.void(dots, grads, weights, *[_INT] * 3), code

    def plain(dots: Any, grads: Any, weights: Any, base: int, column: int, m: int) -> None:
        part = slice(column, column + vectors * CHANNELS)
        dots[0] += weights[base : base + CHANNELS, part] @ grads[m, part]

    return plain if _PLAIN else intrinsic(dot_rows)


def _replace_positive() -> Any:
    """Make a function: acts[e] = dots[0] where acts[e] > 0, else 0; and dots[0] = 0."""

    def replace_positive(typing: Any, acts: Any, e: Any, dots: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into = _Matrix(context, builder, signature.args[0], values[0]).at(values[1])
            source = _Matrix(context, builder, signature.args[2], values[2]).at(_I64(0))
            zeros = ir.Constant(_VECTOR, [0.0] * CHANNELS)
            positive = builder.fcmp_ordered(">", _load(builder, into, 1)[0], zeros)
            _store(builder, into, [builder.select(positive, _load(builder, source, 1)[0], zeros)])
            _store(builder, source, [zeros])
            return context.get_dummy_value()

        return types.void(acts, _INT, dots), code

    def plain(acts: Any, e: int, dots: Any) -> None:
        acts[e] = dots[0] * (acts[e] > 0)
        dots[0] = 0.0

    return plain if _PLAIN else intrinsic(replace_positive)


def _add_outer(samples: int, vectors: int) -> Any:
    """Make a function for one sample or four: weights[base + c] += acts[e, c] · grads[m], for all (e, m)."""

    def add_outer(typing: Any, weights: Any, acts: Any, grads: Any, base: Any, column: Any,
                  e0: Any, e1: Any, e2: Any, e3: Any, m0: Any, m1: Any, m2: Any, m3: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            into, by, rows = (_Matrix(context, builder, signature.args[i], values[i]) for i in range(3))
            base, column, entries, owners = values[3], values[4], values[5:9], values[9:13]
            factors = [by.at(entry) for entry in entries[:samples]]
            grads = [_load(builder, rows.at(owner, column), vectors) for owner in owners[:samples]]
            row = into.at(base, column)
            for c in range(CHANNELS):
                totals = _load(builder, row, vectors)
                for factor, grad in zip(factors, grads, strict=True):
                    a = _spread(builder, factor, c)
                    totals = [_fma(builder, a, x, total) for x, total in zip(grad, totals, strict=True)]
                _store(builder, row, totals)
                row = into.below(row)
            return context.get_dummy_value()

        return types.void(weights, acts, grads, *[_INT] * 10), code

    def plain(weights: Any, acts: Any, grads: Any, base: int, column: int, *places: int) -> None:
        part = slice(column, column + vectors * CHANNELS)
        for entry, owner in zip(places[:samples], places[4 : 4 + samples], strict=True):
            weights[base : base + CHANNELS, part] += acts[entry][:, None] * grads[owner, part]

    return plain if _PLAIN else intrinsic(add_outer)


def _add_run(gradient: bool) -> Any:
    """Make a function that adds a run to the channels of four sites, or takes its gradient from them.

    ``acts[e0 … e3] += sums[within] − sums[above]``, a quarter of these 64 numbers for each; or the gradient,
    ``sums[within] += acts[e0 … e3]`` and ``sums[above] −= acts[e0 … e3]``.
    """

    def add_run(typing: Any, acts: Any, sums: Any, within: Any, above: Any,
                e0: Any, e1: Any, e2: Any, e3: Any) -> Any:  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            by, of = (_Matrix(context, builder, signature.args[i], values[i]) for i in range(2))
            rows = [of.at(row) for row in values[2:4]]
            places = [by.at(entry) for entry in values[4:]]
            plus, minus = (_load(builder, row, WIDE) for row in rows)
            here = [_load(builder, place, 1)[0] for place in places]
            if gradient:
                _store(builder, rows[0], [builder.fadd(x, y) for x, y in zip(plus, here, strict=True)])
                _store(builder, rows[1], [builder.fsub(x, y) for x, y in zip(minus, here, strict=True)])
            else:
                for place, x, y, z in zip(places, here, plus, minus, strict=True):
                    _store(builder, place, [builder.fadd(x, builder.fsub(y, z))])
            return context.get_dummy_value()

        return types.void(acts, sums, *[_INT] * 6), code

    def plain(acts: Any, sums: Any, within: int, above: int, *entries: int) -> None:
        for d, entry in enumerate(entries):
            part = slice(d * CHANNELS, (d + 1) * CHANNELS)
            if gradient:
                sums[within, part] += acts[entry]
                sums[above, part] -= acts[entry]
            else:
                acts[entry] += sums[within, part] - sums[above, part]

    return plain if _PLAIN else intrinsic(add_run)


add_run, add_run_gradient = _add_run(False), _add_run(True)
add_rows_wide, add_two_rows_wide, add_rows_narrow = _add_rows(1, WIDE), _add_rows(2, WIDE), _add_rows(1, NARROW)
dot_rows_wide, dot_rows_narrow = _dot_rows(WIDE), _dot_rows(NARROW)
add_outer_wide, add_four_outer_wide, add_outer_narrow = _add_outer(1, WIDE), _add_outer(4, WIDE), _add_outer(1, NARROW)
replace_positive = _replace_positive()
