"""What of a file lies behind an op whose sizes only the run knows: a detector's choice among its boxes, and the like.

The graph ends before it; its nodes are kept as they are, with what they need of the file's constants, and the export
puts them back.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from qbench.errors import shown
from qbench.frontends.onnx.builder import Value
from qbench.frontends.onnx.source import Array, SourceModel, SourceNode
from qbench.frontends.onnx.table import MOVES
from qbench.ir.build import TAIL, rebuild
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Tail:
    """The nodes from some on, up to the file's outputs.

    Parameters
    ----------
    source
        The whole file.
    nodes
        In the file's order.
    reads
        Values that they take from the graph before them, and inputs of the file.
    arrays
        Constants that they read.
    why
        What to say of the nodes that it starts with.
    """

    source: SourceModel
    nodes: tuple[SourceNode, ...]
    reads: tuple[str, ...]
    arrays: Mapping[str, Array]
    why: tuple[str, ...]

    def front(self) -> SourceModel | None:
        """The file up to here; None where no layer is left in that, so that there is nothing to quantize."""
        inputs = {i.name for i in self.source.inputs}
        behind = {output for node in self.nodes for output in node.outputs}
        plain = [name for name in self.source.outputs if name not in behind]
        outputs = dict.fromkeys([*plain, *(name for name in self.reads if name not in inputs)])
        front = self.source.with_outputs(outputs)
        read = {value for node in front.nodes for value in node.inputs}
        layers = any(array.ndim > 1 for name, array in front.initializers.items() if name in read)
        return front if outputs and layers else None

    def behind(self, graph: Graph) -> Graph:
        """The graph of the front, with this as data that go with it."""
        infos = [_info(name, graph) for name in self.reads]
        behind = {output for node in self.nodes for output in node.outputs}
        given = [self.source.infos[name] for name in self.source.outputs if name in behind]
        stored = [numpy_helper.from_array(np.asarray(a, order="C"), name) for name, a in self.arrays.items()]
        made = helper.make_graph([_proto(node) for node in self.nodes], graph.name, infos, given, stored)
        versions = {node.domain: node.opset for node in _all(self.nodes)}
        opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = helper.make_model(made, opset_imports=opsets)
        helper.set_model_props(model, {"outputs": json.dumps(self.source.outputs)})
        _LOG.warning(
            "%s ends at %s: %s. %d nodes from there on stay in float, and come back with export_onnx",
            shown(graph.name),
            ", ".join(map(shown, graph.outputs)),
            "; ".join(self.why),
            len(self.nodes),
        )
        data = Constant(np.frombuffer(model.SerializeToString(), np.uint8))
        return rebuild(graph, constants={**graph.constants, TAIL: data})


def cut_before(source: SourceModel, starts: Mapping[str, str], values: Mapping[str, Value]) -> Tail:
    """What lies behind some nodes.

    Parameters
    ----------
    source
        The whole file.
    starts
        What to say of each node that it starts with, by its name.
    values
        What is known of the values before it.
    """
    cut = _Cut(source, values)
    cut.take(_leading_to(source, _from(source.nodes, starts)))
    cut.move()
    nodes = tuple(node for node in source.nodes if node.name in cut.kept)
    return Tail(source, nodes, tuple(cut.reads), cut.arrays, tuple(starts.values()))


class _Cut:
    """Where a file is cut in two: the nodes behind it, the values that these read, and constants among them."""

    def __init__(self, source: SourceModel, values: Mapping[str, Value]) -> None:
        self._values = values
        self._given = {"", *source.initializers, *(i.name for i in source.inputs)}
        self._makers = {output: node for node in source.nodes for output in node.outputs}
        self._free: dict[str, bool] = {}
        self.kept: set[str] = set()
        self.reads: dict[str, None] = {}
        self.arrays: dict[str, Array] = {}

    def take(self, nodes: Iterable[SourceNode]) -> None:
        """Put nodes behind the cut, and those before them whose results cannot pass it."""
        nodes = [*nodes]
        made = {output for node in nodes for output in node.outputs}
        waiting = [value for node in nodes for value in _reads(node)]
        self.kept |= {node.name for node in nodes}
        while waiting:
            name = waiting.pop(0)
            value = self._values.get(name)
            if name in made or name in self.arrays or name in self.reads:
                continue
            if value is not None and value.constant is not None:
                self.arrays[name] = value.constant
            elif name in self._makers and (value is None or self._stays(name, value)):
                maker = self._makers[name]
                self.kept.add(maker.name)
                made.update(maker.outputs)
                waiting += _reads(maker)
            elif value is not None:
                self.reads[name] = None

    def move(self) -> None:
        """Put what only moves elements of another value behind the cut: the same twice would be two outputs to see."""
        for name in tuple(self.reads):
            maker = self._makers.get(name)
            data, *rest = maker.inputs if maker is not None and maker.op in MOVES else ("",)
            known = {value: self._values[value].constant for value in rest if value}
            if maker is not None and data in self.reads and all(array is not None for array in known.values()):
                del self.reads[name]
                self.kept.add(maker.name)
                self.arrays |= {value: array for value, array in known.items() if array is not None}

    def _stays(self, name: str, value: Value) -> bool:
        """Whether a value is none that a graph can give: a sequence, stored integers, or numbers made of sizes."""
        return bool(value.items or value.stored) or (value.array is not None and self._is_free(name))

    def _is_free(self, name: str) -> bool:
        """Whether it follows from constants and the inputs' sizes alone."""
        if name in self._given:
            return True
        if name not in self._free:
            value = self._values.get(name)
            computed = value is not None and value.array is not None
            self._free[name] = computed and all(map(self._is_free, _reads(self._makers[name])))
        return self._free[name]


def _from(nodes: Iterable[SourceNode], starts: Mapping[str, str]) -> list[SourceNode]:
    """The nodes that read what these make, and these themselves."""
    found, made = list[SourceNode](), set[str]()
    for node in nodes:
        if node.name in starts or made.intersection(_reads(node)):
            found.append(node)
            made.update(filter(None, node.outputs))
    return found


def _leading_to(source: SourceModel, nodes: Iterable[SourceNode]) -> tuple[SourceNode, ...]:
    """Those of the nodes that the file's outputs need."""
    wanted = {node.name for node in source.with_outputs(source.outputs).nodes}
    return tuple(node for node in nodes if node.name in wanted)


def _reads(node: SourceNode) -> list[str]:
    """What a node reads, its bodies too; what these make themselves is left out."""
    found = [name for name in node.inputs if name]
    for body in node.attrs.values():
        if isinstance(body, SourceModel):
            own = {*body.initializers, *(i.name for i in body.inputs), *(o for n in body.nodes for o in n.outputs)}
            inner = [*body.outputs, *(name for n in body.nodes for name in _reads(n))]
            found += [name for name in inner if name not in own]
    return found


def _all(nodes: Iterable[SourceNode]) -> Iterable[SourceNode]:
    for node in nodes:
        yield node
        for body in node.attrs.values():
            if isinstance(body, SourceModel):
                yield from _all(body.nodes)


def _proto(node: SourceNode) -> NodeProto:
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    proto.name = node.name
    return proto


def _info(name: str, graph: Graph) -> ValueInfoProto:
    kind = graph.types[name]
    dtype = helper.np_dtype_to_tensor_dtype(numpy_dtype(kind.dtype))
    return helper.make_tensor_value_info(name, dtype, list(kind.shape))
