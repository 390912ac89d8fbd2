"""A vector of lanes for compiled loops: pairs side by side, one in each lane.

One value of type `Lanes` is 64 bytes: 16 lanes of float32 or 8 of float64. Compiled code loads it
from an array, computes with it as if it were a number, and stores it again; LLVM keeps it in
registers and splits it where the machine's are shorter. So a kernel reads like that of one pair.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

WIDTH = 64  # bytes


class Lanes(types.Type):  # type: ignore[misc]
    """numba's type of a vector; the lanes hold ``dtype``."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.count = dtype, 8 * WIDTH // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        scalar = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(scalar, lanes.count))


def _address(context: Any, builder: Any, signature: Any, args: Any, lanes: Lanes) -> Any:
    """Pointer to the vector that begins at ``array[index]``, the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    vector = context.get_value_type(lanes)
    return builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def load(_: Any, array: Any, index: Any) -> Any:
    """The vector at ``array[index : index + lanes]`` of a one-dimensional contiguous array."""
    lanes = Lanes(array.dtype)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args, lanes)
        return builder.load(address, align=lanes.dtype.bitwidth // 8)

    return lanes(array, types.intp), build


@intrinsic  # type: ignore[untyped-decorator]
def store(_: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index : index + lanes] = value``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature, args, value)
        builder.store(args[2], address, align=value.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), build


@intrinsic  # type: ignore[untyped-decorator]
def spread(_: Any, value: Any) -> Any:
    """A vector with ``value`` in every lane."""
    lanes = Lanes(value)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        empty = ir.Constant(context.get_value_type(lanes), ir.Undefined)
        one = builder.insert_element(empty, args[0], ir.Constant(ir.IntType(32), 0))
        first = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
        return builder.shuffle_vector(one, empty, first)

    return lanes(value), build


@intrinsic  # type: ignore[untyped-decorator]
def add(_: Any, a: Any, b: Any) -> Any:
    """Lane by lane, as ``a + b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic  # type: ignore[untyped-decorator]
def subtract(_: Any, a: Any, b: Any) -> Any:
    """Lane by lane, as ``a - b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fsub(*args)


@intrinsic  # type: ignore[untyped-decorator]
def multiply(_: Any, a: Any, b: Any) -> Any:
    """Lane by lane, as ``a * b``."""
    return a(a, b), lambda context, builder, signature, args: builder.fmul(*args)


@intrinsic  # type: ignore[untyped-decorator]
def add_square(_: Any, total: Any, a: Any) -> Any:
    """``total + a * a``, rounded once where the machine can."""
    fused = ("contract",)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], builder.fmul(args[1], args[1], flags=fused), flags=fused)

    return total(total, a), build


@intrinsic  # type: ignore[untyped-decorator]
def smaller(_: Any, a: Any, b: Any) -> Any:
    """Lane by lane the smaller one."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[0], args[1])

    return a(a, b), build


@intrinsic  # type: ignore[untyped-decorator]
def if_less(_: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """``then`` in the lanes where ``a < b``, else ``otherwise``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return then(a, b, then, otherwise), build


def _operator(symbol: Any, function: Any) -> None:
    @overload(symbol)  # type: ignore[untyped-decorator]
    def _of_lanes(a: Any, b: Any) -> Any:
        def compute(a: Any, b: Any) -> Any:
            return function(a, b)

        return compute if isinstance(a, Lanes) and a == b else None


_operator(operator.add, add)
_operator(operator.sub, subtract)
_operator(operator.mul, multiply)
