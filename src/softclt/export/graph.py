"""ONNX graphs written down as arithmetic: values with operators, collected as nodes.

ONNX knows no promotion of types, so a value carries its own, and a number beside it takes that.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

OPSET = 20  # the first with Gelu
IR_VERSION = 9  # of its time, so that old runtimes read it, too

Operand: TypeAlias = Union["Value", float]


class ExportError(ValueError):
    """A model that cannot become a graph, with the reason."""


class Value:
    """Something that the graph computes: its name there and its type."""

    def __init__(self, graph: "Graph", name: str, dtype: DTypeLike) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def _with(self, kind: str, other: Operand, *, compares: bool = False) -> "Value":
        if not isinstance(other, Value):
            other = self.graph.constant(other, self.dtype)
        return self.graph.op(kind, self, other, dtype=np.bool_ if compares else None)

    def __add__(self, other: Operand) -> "Value":
        return self._with("Add", other)

    def __sub__(self, other: Operand) -> "Value":
        return self._with("Sub", other)

    def __mul__(self, other: Operand) -> "Value":
        return self._with("Mul", other)

    def __truediv__(self, other: Operand) -> "Value":
        return self._with("Div", other)

    def __floordiv__(self, other: Operand) -> "Value":
        """Of whole numbers, none of them below 0: ONNX rounds towards 0."""
        return self._with("Div", other)

    def __mod__(self, other: Operand) -> "Value":
        return self._with("Mod", other)

    def __and__(self, other: "Value") -> "Value":
        return self._with("And", other)

    def __lt__(self, other: Operand) -> "Value":
        return self._with("Less", other, compares=True)

    def __gt__(self, other: Operand) -> "Value":
        return self._with("Greater", other, compares=True)

    def __ge__(self, other: Operand) -> "Value":
        return self._with("GreaterOrEqual", other, compares=True)

    def __le__(self, other: Operand) -> "Value":
        return self._with("LessOrEqual", other, compares=True)

    def __matmul__(self, other: "Value") -> "Value":
        return self._with("MatMul", other)

    def __invert__(self) -> "Value":
        return self.graph.op("Not", self)

    def at_least(self, other: Operand) -> "Value":
        """The larger of two."""
        return self._with("Max", other)

    def at_most(self, other: Operand) -> "Value":
        """The smaller of two."""
        return self._with("Min", other)

    def cast(self, dtype: DTypeLike) -> "Value":
        """In another type."""
        to = self.graph.type_of(dtype)
        return self if self.dtype == dtype else self.graph.op("Cast", self, dtype=dtype, to=to)

    def is_missing(self) -> "Value":
        """Where it is NaN."""
        return self.graph.op("IsNaN", self, dtype=np.bool_)

    def sum(self, *axes: int) -> "Value":
        """Over axes, which stay with length 1."""
        return self._reduced("ReduceSum", axes)

    def max(self, *axes: int) -> "Value":
        """Over axes, which stay with length 1."""
        return self._reduced("ReduceMax", axes)

    def _reduced(self, kind: str, axes: Sequence[int]) -> "Value":
        return self.graph.op(kind, self, self.graph.constant(axes, np.int64), keepdims=1)

    def any(self, *axes: int) -> "Value":
        """Over axes, which stay with length 1."""
        return self.cast(np.int32).max(*axes) > 0

    def cumsum(self, axis: int) -> "Value":
        """Sums up to each place."""
        return self.graph.op("CumSum", self, self.graph.constant(axis, np.int64))

    def where(self, yes: Operand, no: Operand, dtype: DTypeLike = np.float32) -> "Value":
        """The one where this is true, the other elsewhere; numbers are of the type."""
        both = [v if isinstance(v, Value) else self.graph.constant(v, dtype) for v in (yes, no)]
        return self.graph.op("Where", self, *both, dtype=both[0].dtype)

    def pick(self, index: "Value", axis: int) -> "Value":
        """Elements along an axis, at places of its own for each of the other axes."""
        return self.graph.op("GatherElements", self, index, axis=axis)

    def part(self, start: int, stop: int, axis: int) -> "Value":
        """Those of an axis from one place to before another."""
        ends = [self.graph.constant([number], np.int64) for number in (start, stop, axis)]
        return self.graph.op("Slice", self, *ends)

    def swap(self, *order: int) -> "Value":
        """Axes in another order."""
        return self.graph.op("Transpose", self, perm=order)

    def size(self, axis: int) -> "Value":
        """Length of an axis, as an array of one whole number."""
        return self.graph.op("Shape", self, dtype=np.int64, start=axis, end=axis + 1)

    def reshape(self, *shape: Union["Value", int]) -> "Value":
        """With axes of other lengths; 0 keeps the one that is there, -1 takes the rest."""
        return self.graph.op("Reshape", self, self.graph.shape(*shape))

    def expand(self, *shape: Union["Value", int]) -> "Value":
        """Repeated along axes of length 1; 1 keeps what is there."""
        return self.graph.op("Expand", self, self.graph.shape(*shape))


class Graph:
    """Nodes and constants, in the order in which they are asked for.

    Example:
        >>> graph = Graph()
        >>> x = graph.input("x", np.float32, ["n", 3])
        >>> model = graph.model(x * 2.0 + 1.0, "y", ["n", 3])
        >>> [node.op_type for node in model.graph.node]
        ['Mul', 'Add', 'Identity']
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {}
        self.done: dict[tuple[str, ...], Value] = {}

    def input(self, name: str, dtype: DTypeLike, shape: Sequence[str | int]) -> Value:
        """What the graph is given; a name in the shape is any length."""
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, self.type_of(dtype), shape))
        return Value(self, name, dtype)

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> Value:
        """An array; the same one is kept once."""
        from onnx import numpy_helper

        array: NDArray[Any] = np.ascontiguousarray(np.asarray(value, dtype))
        array = array.reshape(np.shape(value))  # a number has no axis
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"c{len(self.constants)}")
        return Value(self, self.constants[key].name, array.dtype)

    def op(self, kind: str, *inputs: Value, dtype: DTypeLike = None, **attributes: Any) -> Value:
        """A node with one output, of the type of its first input unless another is given.

        What was asked for before is not computed again.
        """
        from onnx import helper

        names = [value.name for value in inputs]
        key = kind, *names, repr(sorted(attributes.items()))
        if key not in self.done:
            name = f"v{len(self.nodes)}"
            self.nodes.append(helper.make_node(kind, names, [name], **attributes))
            self.done[key] = Value(self, name, inputs[0].dtype if dtype is None else dtype)
        return self.done[key]

    def second(
        self, kind: str, *inputs: Value, dtype: DTypeLike = None, **attributes: Any
    ) -> Value:
        """The second output of a node, of the type of its first input unless another is given."""
        from onnx import helper

        names, name = [value.name for value in inputs], f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, ["", name], **attributes))
        return Value(self, name, inputs[0].dtype if dtype is None else dtype)

    def shape(self, *lengths: Value | int) -> Value:
        """Whole numbers and arrays of one, as one array."""
        numbers = [length for length in lengths if not isinstance(length, Value)]
        if len(numbers) == len(lengths):
            return self.constant(numbers, np.int64)
        return self.side_by_side([self._array(length) for length in lengths], axis=0)

    def _array(self, length: Value | int) -> Value:
        return length if isinstance(length, Value) else self.constant([length], np.int64)

    def side_by_side(self, values: Sequence[Value], axis: int) -> Value:
        """Along an axis, one behind the other."""
        return values[0] if len(values) == 1 else self.op("Concat", *values, axis=axis)

    def count_up(self, length: Value) -> Value:
        """0, 1, 2, ... to before an array of one whole number."""
        zero, one = (self.constant(number, np.int64) for number in (0, 1))
        return self.op("Range", zero, self.op("Squeeze", length), one)

    def zeros(self, dtype: DTypeLike, *shape: Value | int) -> Value:
        """An array of a type and a shape."""
        from onnx import numpy_helper

        value = numpy_helper.from_array(np.zeros(1, dtype))
        return self.op("ConstantOfShape", self.shape(*shape), dtype=dtype, value=value)

    def include(self, other: Any, x: Value) -> Value:
        """What another graph, with one input and one output, makes of a value."""
        from onnx import compose, helper

        own = compose.add_prefix_graph(other, f"included{len(self.nodes)}_")
        self.nodes.append(helper.make_node("Identity", [x.name], [own.input[0].name]))
        self.nodes.extend(own.node)
        self.constants |= {(constant.name,): constant for constant in own.initializer}
        return Value(self, own.output[0].name, np.float32)

    def model(self, result: Value, name: str, shape: Sequence[str | int]) -> Any:
        """The graph as an ONNX model with this output."""
        from onnx import helper

        from softclt import __version__

        self.nodes.append(helper.make_node("Identity", [result.name], [name]))
        out = helper.make_tensor_value_info(name, self.type_of(result.dtype), shape)
        constants = list(self.constants.values())
        return helper.make_model(
            helper.make_graph(self.nodes, "softclt", self.inputs, [out], constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="softclt",
            producer_version=__version__,
        )

    @staticmethod
    def type_of(dtype: DTypeLike) -> int:
        """ONNX's number for a type."""
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
