"""Graphs of our own: run from end to end, or each op on integers that somebody else has computed."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

from qbench.ir.build import build
from qbench.ir.graph import Graph, Node
from qbench.ir.names import fresh
from qbench.ir.op import OPS, Array, Epilogue, bind, is_op
from qbench.ir.types import TensorType
from qbench.ops.float.reshape import Transpose
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.parity.runner import Made, Portion, Runner
from qbench.parity.theory import Mode
from qbench.passes.legalize import LegalizePass
from qbench.runtime import interpreter
from qbench.runtime.programs import Programs


def requantizes(node: Node) -> bool:
    """Whether a node brings integers from one scale to another."""
    return OPS[node.op].epilogue is Epilogue.REQUANTIZE


def _is_plumbing(node: Node) -> bool:
    """Whether a node stands around the one that a person knows a layer by."""
    return OPS[node.op].epilogue is not None or is_op(node, Quantize, Dequantize, Transpose)


@dataclass(frozen=True)
class GraphRunner(Runner):
    """A graph, run by one of qbench's two executors.

    Parameters
    ----------
    graph
        Float, quantized or integer.
    executor
        The fast program, or the interpreter, which is the meaning of every op.
    name
        What tables call it.
    """

    graph: Graph
    executor: Literal["program", "interpreter"] = "program"
    name: str = "qbench"

    @property
    def label(self) -> str:
        """Its name."""
        return self.name

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """Types of the graph's inputs."""
        return self.graph.input_types()

    @property
    def made(self) -> Mapping[str, Made]:
        """Every activation."""
        return self._made

    @cached_property
    def _made(self) -> Mapping[str, Made]:
        types = self.graph.types
        return {name: Made(node.op, types[name].dtype) for node in self.graph.nodes for name in node.outputs}

    def run(self, portion: Portion, names: Iterable[str]) -> Mapping[str, Array]:
        """Values of a run from end to end."""
        return self._run(self.graph, portion.feeds, tuple(names), "whole")

    def run_apart(self, portion: Portion, given: Mapping[str, Array]) -> Mapping[str, Array]:
        """What the graph makes of each value given: the same values again, each computed from the others as given."""
        cut, places = self._cut(tuple(given))
        feeds = {**portion.feeds, **{place: given[name] for name, place in places.items()}}
        return self._run(cut, {name: feeds[name] for name in cut.inputs}, tuple(given), "apart")

    def rounding(self, head: Node, requantize: Node) -> Mode | None:
        """What the graph's own requantize of that name says."""
        mine = self.graph.by_name.get(requantize.name)
        return cast("Mode", vars(bind(mine))["rounding"]) if mine is not None and requantizes(mine) else None

    def _run(self, graph: Graph, feeds: Mapping[str, Array], names: tuple[str, ...], which: str) -> Mapping[str, Array]:
        key = which, names
        if key not in self._programs:
            legal = LegalizePass()(graph)
            self._programs[key] = Programs(legal, keep=names) if self.executor == "program" else legal
        made = self._programs[key]
        if isinstance(made, Graph):
            return interpreter.run(made, feeds, keep=names)
        return made.of(feeds).run(feeds, keep=names)

    @cached_property
    def _programs(self) -> dict[tuple[str, tuple[str, ...]], Programs | Graph]:
        return {}

    def _cut(self, names: tuple[str, ...]) -> tuple[Graph, dict[str, str]]:
        """The graph in which whoever reads one of those values reads a new input; what each input is called."""
        if names not in self._cuts:
            graph, places = self.graph, dict[str, str]()
            taken = {*graph.types, *graph.by_name}
            for name in names:
                if graph.consumers[name]:
                    places[name] = fresh(f"{name}.given", taken)
                    taken.add(places[name])
            nodes = [
                dataclasses.replace(node, inputs=tuple([places.get(value, value) for value in node.inputs]))
                for node in graph.nodes
            ]
            inputs = {**graph.input_types(), **{place: graph.types[name] for name, place in places.items()}}
            meanings = {place: graph.qparams[name] for name, place in places.items() if name in graph.qparams}
            cut = build(graph.name, inputs, names, nodes, graph.constants, {**graph.qparams, **meanings})
            self._cuts[names] = cut, places
        return self._cuts[names]

    @cached_property
    def _cuts(self) -> dict[tuple[str, ...], tuple[Graph, dict[str, str]]]:
        return {}


@dataclass(frozen=True)
class Segment:
    """The nodes between the values that are compared and one that is made of them.

    Parameters
    ----------
    nodes
        In execution order; the last one makes the value.
    head
        The one that does what the model file's op is for.
    name
        What the model file calls that op.
    """

    nodes: tuple[Node, ...]
    head: Node
    name: str


def segments(graph: Graph, names: Iterable[str]) -> dict[str, Segment]:
    """What makes each of these values, by value, in execution order."""
    ends = set(names)
    place = {node.name: index for index, node in enumerate(graph.nodes)}
    found: dict[str, Segment] = {}
    for last in graph.nodes:
        if ends.isdisjoint(last.outputs):
            continue
        nodes, waiting = {last.name: last}, list(last.inputs)
        while waiting:
            value = waiting.pop()
            node = graph.producers.get(value)
            if value not in ends and node is not None and node.name not in nodes:
                nodes[node.name] = node
                waiting += node.inputs
        ordered = tuple(sorted(nodes.values(), key=lambda node: place[node.name]))
        own = [node for node in ordered if not _is_plumbing(node)]
        head = next((node for node in own if node.name in last.sources), own[-1] if own else last)
        known = next((node.name for node in (head, *ordered) if node.name in last.sources), head.name)
        found |= {name: Segment(ordered, head, known) for name in last.outputs if name in ends}
    return found
