"""The float twin of an imported quantized graph, and which steps of the two mean the same."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from qbench.errors import GraphError, shown
from qbench.ir.build import build
from qbench.ir.dtypes import is_float
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.names import claimed
from qbench.ir.op import OPS, QuantRule, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.activation import Clip
from qbench.ops.float.dense import BiasAdd
from qbench.ops.onnx.dynamic import DynamicQuantize
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.ops.qnn.requantize import QnnRequantize
from qbench.passes.imported.borders import real_borders
from qbench.passes.imported.config import semantics_of
from qbench.passes.imported.float_forms import IDENTITY, float_form, implied_clamp, is_narrow, is_wide
from qbench.passes.imported.template import Template, Unit
from qbench.passes.imported.ties import Ties
from qbench.quant.arithmetic import dequantize

_SATURATING = (QuantRule.MAC, QuantRule.ELEMENTWISE)
_NARROW = ("int4", "uint4", "int8", "uint8", "int16", "uint16")


def find_twin(source: Graph) -> Template:
    """Find the float twin of an imported quantized graph.

    Raises
    ------
    GraphError
        Nodes that compute on integers and have no meaning in real numbers; all are listed.
    """
    if any(node.op.startswith("integer.") and not _by_range(source, node) for node in source.nodes):
        raise GraphError(
            "it is quantized already down to integers, without scales; open the file that it was made from"
        )
    semantics = semantics_of(source)
    graph, borders = real_borders(source, "away" if semantics == "tflite" else "even")
    walk = _Walk(graph)
    for node in graph.nodes:
        walk.add(node)
    if walk.complaints:
        raise GraphError("cannot be turned back into real numbers: " + "; ".join(walk.complaints))
    units, real = walk.finish()
    constants = {value: _real_constant(graph, value) for value in graph.constants} | walk.constants
    inputs = {
        name: kind.with_dtype("float32") if name in borders else kind for name, kind in graph.input_types().items()
    }
    nodes = [
        dataclasses.replace(node, inputs=tuple(real.get(value, value) for value in node.inputs))
        for unit in units
        for node in unit.twins
    ]
    twin = build(graph.name, inputs, graph.outputs, nodes, constants)
    tensors: dict[str, str] = {}
    for value in _with_scales(graph, units):
        if real[value] in twin.types:
            tensors.setdefault(real[value], value)
    ties = {value: tuple(dict.fromkeys(real[v] for v in group)) for value, group in walk.ties.groups.items()}
    _check_axes(graph, tensors)
    return Template(
        source, graph, borders, twin, units, FrozenMap(real), FrozenMap(tensors), FrozenMap(ties), semantics
    )


def _by_range(graph: Graph, node: Node) -> bool:
    """Whether a node quantizes data by the range of each run, or computes on what that gives: it stays as it is."""
    return any(is_op(one, DynamicQuantize) for one in (node, *map(graph.producers.get, node.inputs)))


def _with_scales(graph: Graph, units: Iterable[Unit]) -> Iterable[str]:
    """The quantized values whose qparams are not simply those of what was moved there."""
    yield from (value for value in graph.constants if is_narrow(graph, value))
    for unit in units:
        if not unit.moves:
            yield from (value for value in unit.outputs if is_narrow(graph, value))


def _check_axes(graph: Graph, tensors: Mapping[str, str]) -> None:
    wrong = [
        shown(name)
        for name, value in tensors.items()
        if value not in graph.constants and graph.qparams[value].axis is not None
    ]
    if wrong:
        raise GraphError(f"activations with a scale per channel cannot be tuned: {', '.join(wrong)}")


def _real_constant(graph: Graph, value: str) -> Constant:
    constant, q = graph.constants[value], graph.qparams.get(value) or _of_accumulator(graph, value)
    if q is None:
        return constant
    if is_narrow(graph, value):
        return Constant(dequantize(constant.array, q))
    scales = np.asarray(q.scales, np.float64)
    scales = (
        scales.reshape([-1 if axis == q.axis else 1 for axis in range(constant.array.ndim)])
        if q.axis is not None
        else scales[0]
    )
    return Constant((constant.array.astype(np.float64) * scales).astype(np.float32))


def _of_accumulator(graph: Graph, value: str) -> QParams | None:
    """The qparams of a bias that has none of its own: those of what it is added to."""
    reader = next((node for node in graph.consumers[value] if is_op(node, BiasAdd)), None)
    q = None if reader is None else graph.qparams.get(reader.inputs[0])
    return q if q is None else dataclasses.replace(q, axis=None if q.axis is None else 0)


def _keeps_scale(node: Node) -> bool:
    """Whether the output of an integer node has the qparams of the input, whatever they are."""
    pooled = node.op == "qnn.avg_pool2d" and node.attrs.get("semantics") == "tflite"
    return pooled or node.op == "qnn.resize_linear" or not node.op.startswith("qnn.")


@dataclass
class _Open:
    """A unit that may still grow."""

    nodes: list[Node]
    twins: list[Node]
    integer: bool = False
    implied: bool = False


class _Walk:
    """The units found so far, and what each value is in the twin."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.complaints: list[str] = []
        self.constants: dict[str, Constant] = {}
        self.ties = Ties()
        self._units: list[_Open] = []
        self._makers: dict[str, _Open] = {}
        self._same: dict[str, str] = {}  # values that are another one in real numbers
        self._names: dict[str, str] = {}  # better names in the twin
        self._rounded: dict[str, str] = {}  # the first quantized form of each float value
        self._fresh = partial(claimed, taken={*graph.types, *graph.by_name})

    def add(self, node: Node) -> None:
        """The next node."""
        graph, data = self.graph, node.inputs[0] if node.inputs else ""
        if is_op(node, Quantize):
            self._quantize(node)
        elif is_op(node, Dequantize):
            self._begin(node, ())
            self._same[node.output] = data
        elif not any(value in graph.qparams for value in (*node.inputs, *node.outputs)):
            self._float(node)
        elif self._follows(node):
            self._grow(data, node)
        elif is_op(node, QnnRequantize) and is_wide(graph, node.output):
            self._begin(node, (), integer=True)
            self._same[node.output] = data
        else:
            self._begin(node, (self._twin(node),), integer=True)
            if _keeps_scale(node):
                self.ties.join(value for value in (*node.inputs, *node.outputs) if is_narrow(graph, value))

    def finish(self) -> tuple[tuple[Unit, ...], dict[str, str]]:
        """All units, and the twin's name of each value."""
        for unit in self._units:
            self._settle(unit)
        for value in self.graph.outputs:
            self._name_output(value)
        units: list[Unit] = []
        for unit in self._units:
            for place, node in enumerate(unit.twins):
                outputs = tuple(self._names.get(value, value) for value in node.outputs)
                unit.twins[place] = dataclasses.replace(node, outputs=outputs)
            units.append(Unit(tuple(unit.nodes), tuple(unit.twins), unit.integer, unit.implied))
        return tuple(units), {value: self._name(value) for value in self.graph.types}

    def _root(self, value: str) -> str:
        while value in self._same:
            value = self._same[value]
        return value

    def _name(self, value: str) -> str:
        return self._names.get(self._root(value), self._root(value))

    def _follows(self, node: Node) -> bool:
        """Whether a node is fused to the integer unit that makes what it reads, and that nothing else reads."""
        graph, data = self.graph, node.inputs[0]
        unit = self._makers.get(data)
        alone = len(graph.consumers[data]) == 1 and data not in graph.outputs
        if unit is None or not unit.integer or not alone or len(unit.nodes[-1].outputs) > 1:
            return False
        if node.op == "clip":
            return not _keeps_scale(unit.nodes[0])
        return is_wide(graph, data) and is_op(node, BiasAdd, QnnRequantize)

    def _quantize(self, node: Node) -> None:
        data, value = node.inputs[0], node.output
        maker = self.graph.producers.get(data)
        dequantized = is_op(maker, Dequantize)
        known = maker.inputs[0] if maker is not None and dequantized else self._rounded.setdefault(data, value)
        if self.graph.qparams[known] != self.graph.qparams[value]:  # a second rounding of the same numbers
            self._begin(node, (self._identity(node),), integer=True)
            return
        clamp = implied_clamp(self.graph.qparams[value])
        if known == value and clamp is not None and maker is not None and bind(maker).within[0] < 0:
            relu = dataclasses.replace(node, op=clamp.op, attrs=clamp.attrs)
            self._begin(node, (relu,), integer=True, implied=True)
            return
        self._begin(node, ())
        self._same[value] = data
        if known != value:
            self.ties.join((known, value))

    def _float(self, node: Node) -> None:
        types = self.graph.types
        made = [types[value].dtype for value in node.outputs]
        real = any(is_float(types[value].dtype) for value in node.inputs)
        unscaled = OPS[node.op].rule == QuantRule.INTERNAL or (real and any(dtype in _NARROW for dtype in made))
        if unscaled and not _by_range(self.graph, node):
            self.complaints.append(f"node {shown(node.name)} ({node.op}), whose integers have no scale")
        self._begin(node, (node,))

    def _begin(self, node: Node, twins: tuple[Node, ...], integer: bool = False, implied: bool = False) -> None:
        unit = _Open([node], list(twins), integer, implied)
        self._units.append(unit)
        self._makers.update(dict.fromkeys(node.outputs, unit))

    def _grow(self, data: str, node: Node) -> None:
        unit = self._makers[data]
        unit.nodes.append(node)
        self._makers[node.output] = unit
        if is_op(node, QnnRequantize):
            self._same[node.output] = data
            return
        unit.twins.append(self._twin(node))
        if node.op == "clip":
            self.ties.join((data, node.output))

    def _twin(self, node: Node) -> Node:
        form = float_form(self.graph, node)
        if form is None:
            self.complaints.append(f"node {shown(node.name)} ({node.op})")
            return node
        extra: list[str] = []
        for array in form.extra:
            extra.append(self._fresh(f"{node.name}.slopes"))
            self.constants[extra[-1]] = Constant(array)
        inputs = tuple(self._before_widening(value) for value in node.inputs)
        inputs = (*extra, *inputs) if form.extra_first else (*inputs, *extra)
        return dataclasses.replace(node, op=form.op, attrs=form.attrs, inputs=inputs)

    def _before_widening(self, value: str) -> str:
        maker = self.graph.producers.get(value)
        wide = is_op(maker, QnnRequantize) and is_wide(self.graph, value)
        return maker.inputs[0] if maker is not None and wide else value

    def _identity(self, node: Node) -> Node:
        op, attrs = IDENTITY
        return dataclasses.replace(node, op=op, attrs=attrs)

    def _settle(self, unit: _Open) -> None:
        """Name what leaves an integer unit like the integers; say by a relu what saturation does in the import."""
        last = unit.nodes[-1]
        if not unit.integer or len(last.outputs) > 1 or not is_narrow(self.graph, last.output):
            return
        value, made = last.output, self._root(last.output)
        clamp = implied_clamp(self.graph.qparams[value])
        if [node.op for node in unit.nodes] == [QnnRequantize.name, Clip.name]:
            first, second = unit.twins  # rescaled and clipped: the clip says it all
            unit.twins[:] = [dataclasses.replace(second, inputs=first.inputs)]
        if not unit.twins:  # widened, and narrowed again
            self._same.pop(value, None)
            unit.twins.append(dataclasses.replace(self._identity(last), inputs=unit.nodes[0].inputs[:1]))
        elif clamp is not None and OPS[unit.twins[0].op].rule in _SATURATING and last.op != "clip":
            if made == value:
                made = self._fresh(f"{value}.linear")
                unit.twins[-1] = dataclasses.replace(unit.twins[-1], outputs=(made,))
            self._same.pop(value, None)
            name = self._fresh(f"{value}.relu")
            unit.twins.append(Node(name, clamp.op, (made,), (value,), clamp.attrs, last.sources))
            unit.implied = True
        elif made != value:
            self._names[made] = value
        elif last.op == "clip" and is_narrow(self.graph, before := self._root(last.inputs[0])):
            self._names[before] = self._fresh(f"{value}.linear")  # the reals go on where its integers saturate

    def _name_output(self, value: str) -> None:
        """Make a dequantized output a value of the twin with the output's name."""
        root = self._root(value)
        unit = self._makers.get(root)
        if root == value:
            return
        if unit is not None and unit.integer and self._names.get(root) not in self.graph.outputs:
            self._names[root] = value
            return
        last = self._makers[value]
        del self._same[value]
        last.twins.append(self._identity(last.nodes[-1]))
