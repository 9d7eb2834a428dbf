"""An ONNX graph as it grows, and what every exporting function needs of it: the table by op, and the writer."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from qbench.errors import ExportError, shown
from qbench.exporters.onnx.tail import names_in, outputs_of, tail_of
from qbench.ir.dtypes import DType, numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.ir.mapped import release
from qbench.ir.names import claimed
from qbench.ir.op import OPS, Op, Role, bind
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.quant.arithmetic import quantize

_LARGE = 1 << 16  # bytes
Array = NDArray[Any]
Kind = TypeVar("Kind", bound=Op)


class Writer:
    """Collects ONNX nodes and initializers for a graph.

    Parameters
    ----------
    graph
        The graph that is exported. Its values and nodes keep their names.
    nbits
        Whether weights that are only stored go into onnxruntime's own op.
    beside
        A file that takes the large initializers, under the name that it will have beside the model's.
    """

    def __init__(self, graph: Graph, nbits: bool = False, beside: IO[bytes] | None = None) -> None:
        self.graph = graph
        self.nbits = nbits
        self.beside = beside
        self.qparams = dict(graph.qparams)
        """What the integers behind a dequantized value mean, by its name in the graph."""
        self.halves: dict[str, list[tuple[str, str, str]]] = {}
        """Of data of 16 bits: integers, scale and zero point of each byte."""
        self.types = dict(graph.types)
        self.nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._arrays: dict[str, Constant] = {}
        self._taken = {*graph.types, *graph.by_name}
        self._reads: dict[str, str] = {}
        self.tail = tail_of(graph)
        self._taken |= names_in(self.tail.graph)
        for tensor in self.tail.graph.initializer:
            self.store(tensor.name, numpy_helper.to_array(tensor))
        for value in graph.outputs:
            if value in graph.constants:  # stored first, so that no other layout of it takes its name
                self.store(value, graph.constants[value].array)

    def fresh(self, base: str) -> str:
        """A name that nothing else has."""
        return claimed(base, self._taken)

    def op(self, node: Node, kind: type[Kind]) -> Kind:
        """The declaration of a node, with its attributes."""
        op = bind(node, self.graph.qparams)
        if not isinstance(op, kind):
            raise ExportError(f"node {shown(node.name)}: {node.op} is no {kind.__name__}")
        return op

    def type(self, value: str) -> TensorType:
        """The type of a value of the graph."""
        return self.types[value]

    def inputs(self, node: Node) -> list[str]:
        """What a node's inputs are called in the file."""
        return [self.read(value) for value in node.inputs]

    def read(self, value: str) -> str:
        """What a value is called in the file; a constant is stored at its first use."""
        if value not in self._reads:
            parameter = self.parameter(value)
            return value if parameter is None else parameter
        return self._reads[value]

    def parameter(self, value: str, perm: tuple[int, ...] | None = None) -> str | None:
        """Store a constant, or the integers of a fake-quantized one, with axes in another order if asked; else None."""
        kept = self.kept(value)
        if kept is None:
            return None
        (name, integers), q = kept, self.qparams.get(value)
        if perm is not None:
            integers = integers.transpose(perm)
            q = q if q is None or q.axis is None else dataclasses.replace(q, axis=perm.index(q.axis))
        apart = q is not None and q.dtype == "int8" and self._is_shared(value)
        name = self.fresh(name) if apart else name
        found = self.store(name, integers) if q is None else self.dequantized(name, integers, q)
        if perm is None and not apart:
            self._reads[value] = found
        return found

    def kept(self, value: str) -> tuple[str, Array] | None:
        """Name and numbers of a constant, or the integers of a fake-quantized one; else None."""
        producer = self.graph.producers.get(value)
        fake = producer if producer is not None and producer.op == "qnn.fake_quantize" else None
        name = value if fake is None else fake.inputs[0]
        if name not in self.graph.constants:
            return None
        array, q = self.graph.constants[name].array, self.qparams.get(value)
        integers = array if q is None else quantize(array, q, fake is not None and bool(fake.attrs.get("narrow")))
        release(array)
        return name, integers

    def weight(self, node: Node) -> tuple[str, Array]:
        """Name and integers of the quantized weight that a layer has."""
        kept = self.kept(node.inputs[1])
        if kept is None:
            raise ExportError(f"node {shown(node.name)}: its weight {shown(node.inputs[1])} is no constant")
        return kept

    def _is_shared(self, value: str) -> bool:
        """Whether several nodes read it, and none as a weight, which is large.

        Asked for exact sums, onnxruntime makes int8 constants unsigned, and fails where two nodes read the same one.
        """
        readers = self.graph.consumers[value]
        roles = {OPS[node.op].role(node.inputs.index(value)) for node in readers}
        return len(readers) > 1 and Role.WEIGHT not in roles

    def redirect(self, value: str, name: str) -> None:
        """From here on, nodes that read `value` read `name`."""
        self._reads[value] = name

    def emit(self, op: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attrs: Any) -> None:
        """Add an ONNX node; attributes that are None are left out."""
        given: dict[str, Any] = {key: value for key, value in attrs.items() if value is not None}
        self.nodes.append(helper.make_node(op, list(inputs), list(outputs), name=name, **given))

    def step(self, node: Node, op: str, inputs: Sequence[str], **attrs: object) -> str:
        """Add a helper node before or after a node's main one; its output's name is made up."""
        name = self.fresh(f"{node.name}.{op}")
        value = self.fresh(f"{node.outputs[0]}.{op}")
        self.emit(op, inputs, [value], name, **attrs)
        return value

    def store(self, name: str, array: Array) -> str:
        """Add an initializer under this name, or under one like it where that means something else already."""
        constant = Constant(array)
        foreign = name in self.graph.types and name not in self.graph.constants
        if foreign or self._arrays.get(name, constant) != constant:
            name = self.fresh(name)
        if name not in self._initializers:
            self._taken.add(name)
            self._arrays[name] = constant
            self._initializers[name] = self._outside(numpy_helper.from_array(constant.array, name))
        return name

    def _outside(self, tensor: TensorProto) -> TensorProto:
        """A tensor with its bytes in the other file, where there is one and they are many."""
        if self.beside is None or len(tensor.raw_data) < _LARGE:
            return tensor
        place = {"location": Path(self.beside.name).name, "offset": self.beside.tell(), "length": len(tensor.raw_data)}
        self.beside.write(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    def constant(self, node: Node, what: str, values: object, dtype: DType) -> str:
        """Add an initializer that a node needs besides its operands."""
        return self.store(f"{node.name}.{what}", np.asarray(values, numpy_dtype(dtype)))

    def integers(self, node: Node, what: str, values: Sequence[int]) -> str:
        """Add a list of int64."""
        return self.constant(node, what, list(values), "int64")

    def number(self, node: Node, what: str, value: float) -> str:
        """Add one number, of the dtype of the node's first input."""
        return self.constant(node, what, value, self.type(node.inputs[0]).dtype)

    def quantized(self, value: str, output: str, q: QParams, tensor: str) -> None:
        """Add QuantizeLinear and DequantizeLinear from `value` to `output`; names go by `tensor`."""
        integers = self.fresh(f"{tensor}.quantized")
        parameters = self._parameters(tensor, q)
        self.emit("QuantizeLinear", [value, *parameters], [integers], self.fresh(f"{tensor}.quantize"))
        self.emit("DequantizeLinear", [integers, *parameters], [output], self.fresh(f"{tensor}.dequantize"))

    def dequantized(self, name: str, integers: Array, q: QParams) -> str:
        """Add integers as an initializer with a DequantizeLinear after it; returns the name of the real numbers."""
        real = self.fresh(f"{name}.dequantized")
        inputs = [self.store(name, integers), *self._parameters(name, q, integers.shape)]
        axis = q.axis if q.block is None or q.axis is None else 1 - q.axis
        self.emit("DequantizeLinear", inputs, [real], self.fresh(f"{name}.dequantize"), axis=axis, block_size=q.block)
        return real

    def _parameters(self, tensor: str, q: QParams, shape: tuple[int, ...] = ()) -> list[str]:
        scale = np.asarray(q.scale, np.float32)
        zero_point = np.asarray(q.zero_point, np.int64).astype(numpy_dtype(q.dtype))
        if q.block is not None and q.axis is not None:
            scale, zero_point = (q.blocks(values, shape[q.axis]) for values in (scale, zero_point))
        return [self.store(f"{tensor}.scale", scale), self.store(f"{tensor}.zero_point", zero_point)]

    def finish(self) -> GraphProto:
        """The ONNX graph."""
        graph, tail = self.graph, self.tail.graph
        behind = {info.name: info for info in tail.output}
        return helper.make_graph(
            [*self.nodes, *tail.node],
            graph.name,
            [_info(value, graph.types[value]) for value in graph.inputs],
            [behind.get(value) or _info(value, graph.types[value]) for value in outputs_of(graph, self.tail)],
            list(self._initializers.values()),
        )


def _info(name: str, given: TensorType) -> ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(numpy_dtype(given.dtype))
    return helper.make_tensor_value_info(name, dtype, list(given.shape))


Function = Callable[[Writer, Node], None]

EXPORTERS: dict[str, Function] = {}
"""How each op is written, by its name."""


def exporter(*ops: str) -> Callable[[Function], Function]:
    """Register a function for ops of the IR."""

    def register(function: Function) -> Function:
        EXPORTERS.update(dict.fromkeys(ops, function))
        return function

    return register
