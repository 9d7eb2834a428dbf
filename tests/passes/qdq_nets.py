"""Small networks of dequantize, float ops and quantize, written by hand, and what the pass makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from qbench.ir.build import build
from qbench.ir.dtypes import DType, integer_range, numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import OPS, Array
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.rewrite import attrs as frozen
from qbench.runtime.interpreter import run


def q(scale: float, zero_point: int = 0, dtype: DType = "int8") -> QParams:
    return QParams(scale, zero_point, dtype)


class Net:
    """A graph in the making; every method gives the name of a value."""

    def __init__(self) -> None:
        self.inputs: dict[str, TensorType] = {}
        self.nodes: list[Node] = []
        self.constants: dict[str, Constant] = {}
        self.qparams: dict[str, QParams] = {}

    def input(self, shape: Sequence[int], q: QParams, name: str = "x") -> str:
        """Real numbers of an input of integers."""
        self.inputs[name], self.qparams[name] = TensorType(tuple(shape), q.dtype), q
        return self.op("qnn.dequantize", name)

    def real(self, shape: Sequence[int], name: str = "r") -> str:
        """An input of real numbers."""
        self.inputs[name] = TensorType(tuple(shape), "float32")
        return name

    def stored(self, array: Array, q: QParams, name: str = "w") -> str:
        """Real numbers of a constant of integers."""
        self.constants[name], self.qparams[name] = Constant(array.astype(numpy_dtype(q.dtype))), q
        return self.op("qnn.dequantize", name)

    def constant(self, array: Array, name: str = "c") -> str:
        self.constants[name] = Constant(array.astype(np.float32))
        return name

    def op(self, op: str, *inputs: str, **attrs: Attr) -> str:
        return self.many(op, inputs, 1, **attrs)[0]

    def many(self, op: str, inputs: Sequence[str], count: int, **attrs: Attr) -> list[str]:
        fields = OPS[op].attributes()
        kept = {key: value for key, value in attrs.items() if value != fields[key].default}
        name = f"n{len(self.nodes)}"
        outputs = tuple(f"{name}.{index}" for index in range(count))
        self.nodes.append(Node(name, op, tuple(inputs), outputs, frozen(kept), (name,)))
        return list(outputs)

    def quantized(self, value: str, q: QParams) -> str:
        made = self.op("qnn.quantize", value)
        self.qparams[made] = q
        return made

    def graph(self, *outputs: str) -> Graph:
        return build("net", self.inputs, outputs, self.nodes, self.constants, self.qparams)


def feeds(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Random inputs: integers of the whole range, or reals."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, kind in graph.input_types().items():
        shape = tuple(int(size) for size in kind.shape)
        if kind.dtype == "float32":
            found[name] = rng.normal(size=shape).astype(np.float32)
        else:
            low, high = integer_range(kind.dtype)
            found[name] = rng.integers(low, high + 1, shape).astype(numpy_dtype(kind.dtype))
    return found


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op.removeprefix("qnn.").removeprefix("nn.") for node in graph.nodes)


def assert_equal(one: Graph, other: Graph) -> None:
    """Two graphs give the same outputs, bit for bit."""
    for seed in range(3):
        given = feeds(one, seed)
        left, right = run(one, given), run(other, given)
        for name in one.outputs:
            assert left[name].dtype == right[name].dtype
            np.testing.assert_array_equal(left[name], right[name])
