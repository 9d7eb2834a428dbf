"""What of a file lies behind an op whose sizes only the run knows: a detector's choice among its boxes, and the like.

The graph ends before it; its nodes are kept as they are, with what they need of the file's constants, and the export
puts them back.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

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
        stored = [numpy_helper.from_array(np.ascontiguousarray(a), name) for name, a in self.arrays.items()]
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
    nodes = _leading_to(source, _from(source.nodes, starts))
    made = {output for node in nodes for output in node.outputs}
    makers = {output: node for node in source.nodes for output in node.outputs}
    inputs = {i.name for i in source.inputs}

    @cache
    def free(name: str) -> bool:
        """Whether it follows from constants and the inputs' sizes alone."""
        if name in inputs or name in source.initializers or not name:
            return True
        return name in values and values[name].array is not None and all(map(free, _reads(makers[name])))

    reads: dict[str, None] = {}
    arrays: dict[str, Array] = {}
    kept = {node.name for node in nodes}
    waiting = [value for node in nodes for value in _reads(node)]
    while waiting:
        name = waiting.pop(0)
        value = values.get(name)
        if name in made or name in arrays or name in reads:
            continue
        if value is not None and value.constant is not None:
            arrays[name] = value.constant
        elif name in makers and (
            value is None or value.items or value.stored or (value.array is not None and free(name))
        ):
            kept.add(makers[name].name)
            made.update(makers[name].outputs)
            waiting += _reads(makers[name])
        elif value is not None:
            reads[name] = None
    for name in tuple(reads):  # the same elements twice would be two outputs to look at
        data, *rest = makers[name].inputs if name in makers and makers[name].op in MOVES else ("",)
        known = {value: values[value].constant for value in rest if value}
        if data in reads and all(array is not None for array in known.values()):
            del reads[name]
            kept.add(makers[name].name)
            arrays |= {value: array for value, array in known.items() if array is not None}
    nodes = tuple(node for node in source.nodes if node.name in kept)
    return Tail(source, nodes, tuple(reads), arrays, tuple(starts.values()))


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
