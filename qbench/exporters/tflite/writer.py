"""A TFLite file as it grows, and what every exporting function needs of it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qbench.errors import shown
from qbench.exporters.tflite.flat import Operator, Tensor, serialized
from qbench.formats.tflite import TO_NCHW, TO_NHWC
from qbench.ir.dtypes import integer_range
from qbench.ir.graph import Graph, Node
from qbench.ir.names import claimed
from qbench.ir.op import bind
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim

Array = NDArray[Any]
Layout = Literal["plain", "image"]
"""In which order a tensor of the file has a value's axes: the graph's own, or with the channels last."""

_SHIFT = 128


class Inexpressible(Exception):
    """What TFLite has no word for; the exporter collects them all."""


def closed(*sizes: Dim) -> list[int]:
    """Sizes that are known; Inexpressible where one of them hangs on an open size."""
    if opened := [size for size in sizes if isinstance(size, str)]:
        raise Inexpressible(f"the size {shown(opened[0])} is open: load the model with shapes=")
    return [size for size in sizes if isinstance(size, int)]


class Writer:
    """Collects tensors and operators for a graph.

    Parameters
    ----------
    graph
        A graph of qnn ops and of ops on real numbers.
    shifted
        Whether what the graph has in uint8 the file has in int8, 128 lower: the same real numbers. Inputs and outputs
        are of the type that the graph has, with a QUANTIZE at the border.
    """

    def __init__(self, graph: Graph, shifted: bool) -> None:
        self.graph, self.shifted = graph, shifted
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []
        self.done: set[str] = set()
        """Names of nodes that were written together with others before them."""
        self._forms: dict[str, dict[Layout, int]] = {}
        self._taken = {value for value in graph.types if value not in graph.constants}
        self._inputs = [self._input(name) for name in graph.inputs]

    # values

    def op(self, node: Node) -> Any:
        """The declaration of a node, with its attributes and qparams."""
        return bind(node, self.graph.qparams)

    def rank(self, value: str) -> int:
        """How many axes a value has."""
        return self.graph.types[value].rank

    def layout(self, *values: str) -> Layout:
        """The layout in which an op that does not care works best: that in which the file has its operands."""
        images = [value for value in values if "image" in self._forms.get(value, {})]
        others = [value for value in values if value not in images and value not in self.graph.constants]
        return "image" if images and all(self.rank(value) == 4 for value in others) else "plain"

    def read(self, value: str, layout: Layout = "plain") -> int:
        """The tensor that holds a value in a layout; transposed where it is only there in the other one."""
        forms = self._forms.get(value, {})
        if layout in forms:
            return forms[layout]
        if value in self.graph.constants:
            array = self.graph.constants[value].array
            return self._constant_form(value, layout, array)
        if not forms:
            return self.make(value, layout)  # of a node that could not be written
        have: Layout = "plain" if layout == "image" else "image"
        order = TO_NHWC if layout == "image" else TO_NCHW
        result = self.make(value, layout)
        self.emit("TRANSPOSE", [forms[have], self.integers(order)], [result], "TransposeOptions")
        return result

    def make(self, value: str, layout: Layout = "plain") -> int:
        """A new tensor for a value that an operator makes."""
        plain_output = value in self.graph.outputs and layout == "image"
        first = value not in self._forms and not plain_output
        own = value in self.graph.outputs and layout == "plain"
        name = value if first or own else self.fresh(f"{value}.{'nhwc' if layout == 'image' else 'nchw'}")
        return self._form(value, layout, name)

    def alias(self, value: str, layout: Layout, tensor: int) -> None:
        """Say that a tensor which is there already holds a value too."""
        if value in self.graph.outputs and layout == "plain":
            if tensor in self._inputs or self.tensors[tensor].name in self.graph.outputs:
                self.emit(
                    "RESHAPE", [tensor, self.integers(self.tensors[tensor].shape)], [self.make(value)], "ReshapeOptions"
                )
                return
            self.tensors[tensor].name = value
        self._forms.setdefault(value, {})[layout] = tensor

    def forms(self, value: str) -> dict[Layout, int]:
        """The tensors that hold a value so far."""
        return self._forms.get(value, {})

    def q(self, value: str) -> QParams | None:
        """What the integers of a value mean in the file; None for reals."""
        q = self.graph.qparams.get(value)
        if q is None or q.dtype in ("int8", "int16", "int32", "int64"):
            return q
        if q.dtype == "uint8" and not self.shifted:
            return q
        if q.dtype not in ("uint8", "int4", "uint4"):
            raise Inexpressible(f"{q.dtype} tensors")
        zero_points = tuple(zero - self.offset(value) for zero in q.zero_points)
        return dataclasses.replace(q, dtype="int8", zero_point=zero_points if q.axis is not None else zero_points[0])

    def offset(self, value: str) -> int:
        """How much lower the file's integers of a value are than the graph's."""
        q = self.graph.qparams.get(value)
        if q is None or q.dtype not in ("uint8", "uint4") or (q.dtype == "uint8" and not self.shifted):
            return 0
        return _SHIFT if q.dtype == "uint8" else 8

    def bounds(self, value: str) -> tuple[int, int]:
        """Smallest and largest integer of a value in the file."""
        q = self.q(value)
        return (0, 0) if q is None else integer_range(q.dtype)

    # what is written

    def emit(self, code: str, inputs: Sequence[int], outputs: Sequence[int], table: str = "", **options: Any) -> None:
        """Add an operator."""
        self.operators.append(Operator(code, tuple(inputs), tuple(outputs), table, options))

    def write(
        self, node: Node, code: str, table: str = "", *, layout: Layout | None = None, makes: str = "", **options: Any
    ) -> None:
        """Add an operator on all that a node reads, which makes its value or another; in the layout that suits."""
        layout = layout or self.layout(*node.inputs)
        inputs = [self.read(value, layout) for value in node.inputs]
        self.emit(code, inputs, [self.make(makes or node.output, layout)], table, **options)

    def integers(self, numbers: Sequence[Dim]) -> int:
        """A constant list of int32; Inexpressible where one of them hangs on an open size."""
        return self.constant("shape", np.asarray(closed(*numbers), np.int32))

    def constant(self, name: str, array: Array, q: QParams | None = None) -> int:
        """A constant of the file under a name like this one."""
        return self._add(Tensor(self.fresh(name), array.shape, str(array.dtype), q, array))

    def vector(self, name: str, array: Array, axis: int, rank: int, layout: Layout) -> int:
        """A constant with a number for each index of an axis of some other value, as it broadcasts to that."""
        return self.constant(name, array.reshape(_column(axis, rank, layout)))

    def along(self, value: str, axis: int, rank: int, layout: Layout) -> int:
        """The same of a value of the graph."""
        if value in self.graph.constants:
            return self.vector(value, self.graph.constants[value].array, axis, rank, layout)
        source, shape = self.read(value), _column(axis, rank, layout)
        sizes = [size if size > 0 else self.tensors[source].shape[0] for size in shape]
        column = self.scratch(f"{value}.column", source, None, shape=sizes)
        self.emit("RESHAPE", [source, self.integers(shape)], [column], "ReshapeOptions", new_shape=shape)
        return column

    def stored(self, value: str, array: Array, axis: int | None = None) -> int:
        """A quantized constant of the graph, in the file's layout; `axis` is where its scales run along there."""
        q = self.q(value)
        if q is not None and q.axis is not None:
            q = dataclasses.replace(q, axis=axis)
        return self.constant(value, self._integers(value, array), q)

    def scratch(
        self,
        name: str,
        like: int,
        q: QParams | None,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
    ) -> int:
        """A tensor between two operators, like another where nothing else is said."""
        known = self.tensors[like]
        sizes = known.shape if shape is None else tuple(shape)
        return self._add(Tensor(self.fresh(name), sizes, dtype or known.dtype, q))

    def between(self, name: str, shape: tuple[int, ...]) -> int:
        """A float32 tensor between two operators; -1 stands for an open size."""
        return self._add(Tensor(self.fresh(name), shape, "float32", None))

    def fresh(self, name: str) -> str:
        """A name that nothing else has."""
        return claimed(name, self._taken)

    def finish(self) -> bytes:
        """The whole file."""
        outputs = [self._output(value) for value in self.graph.outputs]
        return serialized(self.graph.name, self.tensors, self.operators, self._inputs, outputs)

    def _input(self, name: str) -> int:
        if not self._changes(name):
            return self._form(name, "plain", name)
        inside = self._form(name, "plain", self.fresh(f"{name}.int8"))
        border = self.scratch(name, inside, self.graph.qparams[name], "uint8")
        self.tensors[border].name = name
        self.emit("QUANTIZE", [border], [inside], "QuantizeOptions")
        return border

    def _output(self, value: str) -> int:
        inside = self.read(value)
        if not self._changes(value):
            return inside
        if value in self.graph.inputs:
            return self._inputs[self.graph.inputs.index(value)]
        self.tensors[inside].name = self.fresh(f"{value}.int8")
        border = self.scratch(value, inside, self.graph.qparams[value], "uint8")
        self.tensors[border].name = value
        self.emit("QUANTIZE", [inside], [border], "QuantizeOptions")
        return border

    def _changes(self, value: str) -> bool:
        """Whether the file's integers of an input or output are of another type inside than at the border."""
        q = self.graph.qparams.get(value)
        return self.shifted and q is not None and q.dtype == "uint8"

    def _form(self, value: str, layout: Layout, name: str) -> int:
        kind = self.graph.types[value]
        shape = tuple(size if isinstance(size, int) else -1 for size in kind.shape)
        shape = tuple(shape[axis] for axis in TO_NHWC) if layout == "image" else shape
        q = self.q(value)
        number = self._add(Tensor(name, shape, q.dtype if q is not None else kind.dtype, q))
        self._forms.setdefault(value, {})[layout] = number
        return number

    def _constant_form(self, value: str, layout: Layout, array: Array) -> int:
        q = self.q(value)
        if layout == "image":
            array = array.reshape((1,) * (4 - array.ndim) + array.shape).transpose(TO_NHWC)
            if q is not None and q.axis is not None:
                axis = q.axis + 4 - self.rank(value)
                q = dataclasses.replace(q, axis=TO_NHWC.index(axis))
        number = self.constant(value, self._integers(value, array), q)
        self._forms.setdefault(value, {})[layout] = number
        return number

    def _integers(self, value: str, array: Array) -> Array:
        q = self.q(value)
        if q is None or q.dtype != "int8":
            return array
        return (array.astype(np.int16) - self.offset(value)).astype(np.int8)

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _column(axis: int, rank: int, layout: Layout) -> list[int]:
    place = TO_NHWC.index(axis) if layout == "image" else axis
    return [-1 if i == place else 1 for i in range(rank)]


Function = Callable[[Writer, Node], None]
EXPORTERS: dict[str, Function] = {}
"""How each op is written, by its name."""


def exporter(*ops: str) -> Callable[[Function], Function]:
    """Register a function for ops of the IR."""

    def register(function: Function) -> Function:
        EXPORTERS.update(dict.fromkeys(ops, function))
        return function

    return register
