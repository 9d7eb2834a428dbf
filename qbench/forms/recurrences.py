"""Recurrent layers whose weights are integers: a layer for the product with the data, and what goes round."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from qbench.forms.sums import accumulator_dtype, accumulator_qparams, largest_sum
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.names import claimed
from qbench.ir.op import OPS, Array, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.float.dense import BiasAdd, Dense
from qbench.ops.float.recurrent import Gru
from qbench.ops.integer.recurrent import StoredRecurrent
from qbench.ops.qnn.border import Dequantize
from qbench.ops.qnn.products import QnnDense
from qbench.quant.arithmetic import dequantize

_MADE = "sums", "product", "entering", "kernel", "bias", "recurrence", "scales", "offset"
"""Nodes with a value of the same name, and constants."""


@dataclass(frozen=True)
class _Weight:
    """A weight [directions, rows, columns] as integers, and what they mean, for all or for each row."""

    integers: Constant
    q: QParams

    @property
    def centred(self) -> Array:
        """The integers less their zero points."""
        return self.integers.array.astype(np.int16) - self.q.zero_point_array(self.integers.shape).astype(np.int16)

    @property
    def has_8_bits(self) -> bool:
        """Whether int8 holds the integers less their zero points."""
        if self.integers.array.dtype.itemsize > 1:
            return False
        low, high = self.centred.min(initial=0), self.centred.max(initial=0)
        return bool(low >= -128 and high <= 127)

    @property
    def scales(self) -> Array:
        """One for each row [directions, rows]."""
        return np.ascontiguousarray(
            np.broadcast_to(self.q.scale_array(self.integers.shape), self.integers.shape)[..., 0]
        )

    def as_matrix(self) -> tuple[Constant, QParams]:
        """The rows of all directions one after the other."""
        times, q = len(self.integers.array), self.q
        if q.axis is not None:
            q = replace(q, scale=q.scales * times, zero_point=q.zero_points * times, axis=0)
        return Constant(_rows(self.integers.array)), q


@dataclass(frozen=True)
class _Layer:
    """All that the nodes depend on which stand for a recurrent layer."""

    node: Node
    kind: str
    data: TensorType
    weights: tuple[_Weight, _Weight]
    offset: Constant
    entering: tuple[str, QParams] | None
    """The integers of the data."""
    apart: bool
    """Whether what is added to the product with the data cannot be added to that with the state as well."""
    names: tuple[str, ...]
    """As many as `_MADE`, that nothing has yet."""


@dataclass(frozen=True)
class _Split:
    """What stands for a recurrent layer: nodes, and the constants and qparams that are theirs."""

    nodes: list[Node]
    constants: dict[str, Constant]
    qparams: dict[str, QParams]


def with_stored_recurrences(graph: Graph, memo: Memo | None = None) -> Graph:
    """The graph whose recurrent layers with weights in 8 bits read these, and never as real numbers.

    Their data are multiplied as integers where they come as such.
    """
    memo = memo or Memo()
    kinds = {op.form_of: op.name for op in OPS.values() if issubclass(op, StoredRecurrent)}
    taken, done = {*graph.types, *graph.by_name}, dict[str, _Split]()
    for node in graph.nodes:
        weights = _weights(graph, node) if node.op in kinds else None
        if weights is not None:
            data, offset = node.inputs[0], graph.constants[node.inputs[3]]
            op = bind(node)
            apart = isinstance(op, Gru) and op.linear_before_reset
            names = tuple(claimed(f"{node.name}.{what}", taken) for what in _MADE)
            layer = _Layer(
                node, kinds[node.op], graph.types[data], weights, offset, _integers(graph, data), apart, names
            )
            done[node.name] = memo.recall((__name__, node.name), (layer,), partial(_split, layer))
    if not done:
        return graph
    nodes = [made for node in graph.nodes for made in (done[node.name].nodes if node.name in done else (node,))]
    constants, qparams = dict(graph.constants), dict(graph.qparams)
    for split in done.values():
        constants |= split.constants
        qparams |= split.qparams
    return rebuild(graph, nodes=nodes, constants=constants, qparams=qparams)


def _weights(graph: Graph, node: Node) -> tuple[_Weight, _Weight] | None:
    """The kernel and the recurrence; None where these are not constants of 8 bits with scales along their rows."""
    found = [_integers(graph, value) for value in node.inputs[1:3]]
    weights = [_Weight(graph.constants[known[0]], known[1]) for known in found if known and known[0] in graph.constants]
    if len(weights) < 2 or node.inputs[3] not in graph.constants:
        return None
    fits = all(each.q.axis in (None, 1) and each.q.block is None and each.has_8_bits for each in weights)
    return (weights[0], weights[1]) if fits else None


def _integers(graph: Graph, value: str) -> tuple[str, QParams] | None:
    """What a value is dequantized from."""
    producer = graph.producers.get(value)
    return (producer.inputs[0], graph.qparams[producer.inputs[0]]) if is_op(producer, Dequantize) and producer else None


def _split(layer: _Layer) -> _Split:
    """A product, what is added to it alone if anything is, and what goes round, which adds the rest."""
    node, (kernel, recurrence) = layer.node, layer.weights
    before, after = np.split(layer.offset.array, 2, axis=1)
    entering, _, bias, *names = layer.names[2:]
    split = _integer_product(layer) or _real_product(layer, kernel)
    data = split.nodes[-1].output
    if layer.apart:
        split.nodes.append(_made(layer, BiasAdd.name, (data, bias), entering, axis=layer.data.rank - 1))
        split.constants[bias], data = Constant(before.reshape(-1)), entering
    else:
        after = np.add(before, after)
    held = recurrence.centred.astype(np.int8), recurrence.scales, np.ascontiguousarray(after)
    split.constants.update(zip(names, map(Constant, held), strict=True))
    split.nodes.append(replace(node, op=layer.kind, inputs=(data, *names, *node.inputs[4:])))
    return split


def _integer_product(layer: _Layer) -> _Split | None:
    """Products of integers with the data, as real numbers; None where 32 bits do not hold the sums."""
    if layer.entering is None or layer.entering[1].axis is not None:
        return None
    value, data = layer.entering
    matrix, q = layer.weights[0].as_matrix()
    sums = accumulator_qparams(data, q, layer.data.rank - 1)
    bound = largest_sum(QnnDense(), data, q, (layer.data, matrix.type), matrix.array)
    if accumulator_dtype(bound, None) != "int32":
        return None
    integers, product, _, kernel, *_ = layer.names
    nodes = [
        _made(layer, QnnDense.name, (value, kernel), integers),
        _made(layer, Dequantize.name, (integers,), product),
    ]
    return _Split(nodes, {kernel: matrix}, {kernel: q, integers: sums})


def _real_product(layer: _Layer, weight: _Weight) -> _Split:
    """Products of real numbers with the data."""
    _, product, _, kernel, *_ = layer.names
    real = _rows(dequantize(weight.integers.array, weight.q))
    return _Split([_made(layer, Dense.name, (layer.node.inputs[0], kernel), product)], {kernel: Constant(real)}, {})


def _made(layer: _Layer, op: str, inputs: tuple[str, ...], output: str, **attrs: Attr) -> Node:
    return Node(output, op, inputs, (output,), FrozenMap[str, Attr](attrs), layer.node.sources)


def _rows(weight: Array) -> Array:
    return np.ascontiguousarray(weight.reshape(-1, weight.shape[2]))
