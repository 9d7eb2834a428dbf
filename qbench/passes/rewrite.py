"""Edits of a graph, made one after the other on live indexes and turned into a new graph at the end.

A pass walks over the nodes, asks who makes and who reads a value, and replaces nodes. Rebuilding the graph after each
edit would cost a full type inference every time; a `Rewriter` infers the types of new nodes only.
"""

import dataclasses
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qbench.errors import GraphError, shown
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.names import fresh
from qbench.ir.op import Array, Op, bind
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType


def attrs(values: Mapping[str, Attr] | None = None, **more: Attr) -> FrozenMap[str, Attr]:
    """Attributes of a node, from a mapping and from keywords."""
    return FrozenMap({**(values or {}), **more})


def joined_sources(*nodes: Node) -> tuple[str, ...]:
    """The source nodes of several nodes, in order, each once."""
    return tuple(dict.fromkeys(source for node in nodes for source in node.sources))


class Rewriter:
    """A graph being edited.

    Parameters
    ----------
    graph
        Where the edits start; it stays as it is.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: dict[str, Node] = {}
        self._places: dict[str, tuple[int, ...]] = {}
        self._makers: dict[str, str] = {}
        self._readers: dict[str, dict[str, None]] = {}
        self._changed = False
        self.types: dict[str, TensorType] = dict(graph.types)
        self.constants: dict[str, Constant] = dict(graph.constants)
        self.qparams: dict[str, QParams] = dict(graph.qparams)
        self.outputs = graph.outputs
        for place, node in enumerate(graph.nodes):
            self._index(node, (place,))

    def __iter__(self) -> Iterator[Node]:
        """The nodes as they are now, in order; nodes removed while iterating are skipped, new ones not visited."""
        for name in sorted(self._nodes, key=self._places.__getitem__):
            if name in self._nodes:
                yield self._nodes[name]

    def node(self, name: str) -> Node:
        """The node of that name as it is now."""
        return self._nodes[name]

    def find(self, name: str) -> Node | None:
        """The node of that name as it is now, or None if it is gone."""
        return self._nodes.get(name)

    def attr(self, node: Node, key: str) -> Any:
        """An attribute of a node, the op's default where the node does not give it."""
        return getattr(self.op(node), key)

    def producer(self, value: str) -> Node | None:
        """The node that makes a value; None for inputs and constants."""
        return self._nodes[self._makers[value]] if value in self._makers else None

    def consumers(self, value: str) -> tuple[Node, ...]:
        """The nodes that read a value, in order."""
        names = sorted(self._readers.get(value, ()), key=self._places.__getitem__)
        return tuple(self._nodes[name] for name in names)

    def sole_consumer(self, value: str) -> Node | None:
        """The node that alone reads a value that is no graph output; else None."""
        readers = self._readers.get(value, {})
        return self._nodes[next(iter(readers))] if len(readers) == 1 and value not in self.outputs else None

    def array(self, value: str) -> Array | None:
        """The array of a constant; None for any other value."""
        constant = self.constants.get(value)
        return None if constant is None else constant.array

    def op(self, node: Node) -> Op:
        """The op declaration of a node, with its attributes and qparams."""
        return bind(node, self.qparams)

    def fresh(self, name: str) -> str:
        """`name`, or `name` with a number where a value or a node is called that already."""
        return fresh(name, ChainMap[str, Any](self.types, self._nodes))

    def constant(self, name: str, array: Array) -> str:
        """Add a constant under a name like `name`; returns the name it has."""
        name = self.fresh(name)
        self.set_constant(name, array)
        return name

    def set_constant(self, value: str, array: Array) -> None:
        """Make `value` a constant of exactly that name, or give the constant other contents."""
        self._changed = True
        constant = Constant(array)
        self.constants[value], self.types[value] = constant, constant.type

    def changed_constant(self, value: str, user: Node, array: Array) -> str:
        """Other contents for a constant as `user` reads it: the name stays unless others read it too."""
        if self.sole_consumer(value) != user or user.inputs.count(value) > 1:
            return self.constant(f"{value}.{user.name}", array)
        self.set_constant(value, array)
        return value

    def replace(self, old: Node | Iterable[Node], new: Iterable[Node]) -> None:
        """Put nodes in the place of others (of the last of them); types of the new ones' outputs are inferred.

        Every value that others read must be made again; each new node reads only what stands before the last old one.
        """
        old = (old,) if isinstance(old, Node) else tuple(old)
        new = tuple(new)
        place = max(self._places[node.name] for node in old)
        for node in old:
            self.remove(node)
        for index, node in enumerate(new):
            self._insert(node, (*place, index) if len(new) > 1 else place)

    def remove(self, node: Node) -> None:
        """Take a node out; whoever reads its outputs must be changed too."""
        self._changed = True
        del self._nodes[node.name], self._places[node.name]
        for value in dict.fromkeys(node.inputs):
            del self._readers[value][node.name]
        for value in node.outputs:
            del self._makers[value]

    def update(self, node: Node, **changes: Any) -> Node:
        """Replace a node by one with other fields (``dataclasses.replace``); returns it."""
        result = dataclasses.replace(node, **changes)
        self.replace(node, (result,))
        return result

    def redirect(self, value: str, to: str) -> None:
        """Let the readers of a value read another one; graph outputs stay."""
        for node in self.consumers(value):
            self.update(node, inputs=tuple(to if name == value else name for name in node.inputs))

    def bypass(self, node: Node, value: str) -> bool:
        """Remove a node whose one output equals `value`, which stands before it.

        Readers of the output read `value` instead. Where the output is a graph output, its name must survive: then
        the producer of `value` makes it under that name. Returns False, and changes nothing, where that cannot be:
        `value` is an input, a constant or a graph output itself.
        """
        output, producer = node.output, self.producer(value)
        if output not in self.outputs:
            self.remove(node)
            if producer is not None:
                self.update(producer, sources=joined_sources(producer, node))
            for reader in self.consumers(output):
                sources = reader.sources if producer is not None else joined_sources(node, reader)
                inputs = tuple(value if name == output else name for name in reader.inputs)
                self.update(reader, inputs=inputs, sources=sources)
            return True
        if producer is None or value in self.outputs:
            return False
        self.remove(node)
        if value in self.qparams:
            self.qparams[output] = self.qparams[value]
        outputs = tuple(output if name == value else name for name in producer.outputs)
        self.update(producer, outputs=outputs, sources=joined_sources(producer, node))
        self.redirect(value, output)
        return True

    def finish(self) -> Graph:
        """The edited graph; the very graph that came in where nothing was edited. Nodes that nothing reads stay."""
        if not self._changed:
            return self._graph
        return build(
            self._graph.name, self._graph.input_types(), self.outputs, tuple(self), self.constants, self.qparams
        )

    def _insert(self, node: Node, place: tuple[int, ...]) -> None:
        if node.name in self._nodes:
            raise GraphError(f"two nodes are called {shown(node.name)}")
        self._changed = True
        inferred = self.op(node).infer_all(tuple(self.types[value] for value in node.inputs))
        self.types.update(zip(node.outputs, inferred, strict=True))
        self._index(node, place)

    def _index(self, node: Node, place: tuple[int, ...]) -> None:
        self._nodes[node.name], self._places[node.name] = node, place
        for value in node.inputs:
            self._readers.setdefault(value, {})[node.name] = None
        self._makers.update(dict.fromkeys(node.outputs, node.name))
