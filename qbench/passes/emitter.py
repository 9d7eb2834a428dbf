"""The realized graph as it grows: what each value's integers are called, and when reals are needed again."""

from __future__ import annotations

import copy
import dataclasses
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field

from qbench.errors import GraphError, shown
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.names import fresh
from qbench.ir.qparams import QParams
from qbench.passes.annotate import FAKE
from qbench.quant.arithmetic import Ties, quantize

__all__ = ["Emission", "Emitter"]


@dataclass(frozen=True, eq=False)
class Emission:
    """What some work adds to a realized graph; see `Emitter`. Never changed once the work is done."""

    names: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Each fresh name that was asked for, and the one that was given."""
    nodes: list[Node] = field(default_factory=list[Node])
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    qparams: dict[str, QParams] = field(default_factory=dict[str, QParams])
    integers: dict[str, str] = field(default_factory=dict[str, str])
    reals: dict[str, str] = field(default_factory=dict[str, str])


class Emitter:
    """The realized graph as it grows.

    Parameters
    ----------
    graph
        The annotated graph, with qparams at its points.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.integers: MutableMapping[str, str] = {}
        """The value with the integers of each annotated value that has them."""
        self.constants: MutableMapping[str, Constant] = {}
        """Those in integers."""
        self.qparams: MutableMapping[str, QParams] = {}
        self._reals: MutableMapping[str, str] = {}
        self._nodes: list[Node] = []
        self._taken: MutableMapping[str, None] = dict.fromkeys((*graph.types, *graph.by_name))
        self._names: list[tuple[str, str]] = []

    def emitted(self, work: Callable[[Emitter], object]) -> Emission:
        """What work on an emitter would add; this one stays as it is."""
        new, apart = Emission(), copy.copy(self)
        apart._names, apart._nodes, apart._taken = new.names, new.nodes, ChainMap({}, self._taken)
        apart.constants, apart.qparams = ChainMap(new.constants, self.constants), ChainMap(new.qparams, self.qparams)
        apart.integers, apart._reals = ChainMap(new.integers, self.integers), ChainMap(new.reals, self._reals)
        work(apart)
        return new

    def add(self, emission: Emission) -> bool:
        """Add what was emitted, perhaps for another graph; False, and nothing is added, if it had other names here."""
        given: list[str] = []
        for asked, name in emission.names:
            given.append(self.fresh(asked))
            if given[-1] != name:
                for name in given:
                    del self._taken[name]
                return False
        self._nodes.extend(emission.nodes)
        self.constants.update(emission.constants)
        self.qparams.update(emission.qparams)
        self.integers.update(emission.integers)
        self._reals.update(emission.reals)
        return True

    def surroundings(self, nodes: Iterable[Node]) -> tuple[object, ...]:
        """All that work on these nodes of the annotated graph can depend on, but for which names are taken."""
        values = dict.fromkeys([value for node in nodes for value in (*node.inputs, *node.outputs)])
        return tuple([self._surroundings(value) for value in values])

    def _surroundings(self, value: str) -> tuple[object, ...]:
        graph, integers = self.graph, self.integers.get(value, "")
        producer, readers = graph.producers.get(value), graph.consumers[value]
        return (
            graph.types[value],
            graph.constants.get(value),
            graph.qparams.get(value),
            value in graph.outputs,
            producer,
            producer is not None and producer.inputs[0] in graph.constants,
            readers,
            [graph.qparams.get(reader.outputs[0]) for reader in readers if reader.op == FAKE],
            self.qparams.get(value),
            self._reals.get(value),
            integers,
            self.qparams.get(integers),
            self.constants.get(integers),
        )

    def fresh(self, name: str) -> str:
        """A name like this one that nothing has yet."""
        result = fresh(name, self._taken)
        self._taken[result] = None
        self._names.append((name, result))
        return result

    def emit(
        self, node: Node, op: str, inputs: tuple[str, ...], outputs: tuple[str, ...], q: QParams | None, **attrs: Attr
    ) -> None:
        """Add `node` with another op, inputs, outputs and attributes; the outputs get the qparams."""
        self._nodes.append(
            dataclasses.replace(node, op=op, inputs=inputs, outputs=outputs, attrs=FrozenMap[str, Attr](attrs))
        )
        if q is not None:
            self.qparams.update(dict.fromkeys(outputs, q))

    def constant(self, name: str, array: Constant, q: QParams) -> str:
        """Add a constant in integers; it keeps the float one's name where nothing reads that as float."""
        read_as_float = name in self.graph.outputs or any(
            reader.op != FAKE and (reader.reason or name not in reader.inputs[1:])
            for reader in self.graph.consumers.get(name, ())
        )
        if read_as_float or name in self.qparams:
            name = self.fresh(f"{name}.quantized")
        self.constants[name], self.qparams[name] = array, q
        return name

    def q(self, annotated_value: str) -> QParams:
        """The qparams of the integers of an annotated value."""
        return self.qparams[self.integers[annotated_value]]

    def encoding(self, fake: Node) -> QParams:
        """The qparams at a point; GraphError where calibration has not given any."""
        if fake.output not in self.graph.qparams:
            raise GraphError(f"tensor {shown(str(fake.attrs['tensor']))} has no qparams yet: calibrate, then bind them")
        return self.graph.qparams[fake.output]

    def integer_name(self, tensor: str) -> str:
        """What the integers of a float tensor are called: as the tensor, but for graph outputs, which are real."""
        return self.fresh(f"{tensor}.quantized") if tensor in self.graph.outputs else tensor

    def point(self, fake: Node, ties: Ties = "even") -> None:
        """A fake-quantize node: constants are quantized here and now, reals from a float node get a quantize."""
        if fake.output in self.integers:
            return  # the integer group before it has made it
        source, q = fake.inputs[0], self.encoding(fake)
        if source in self.graph.constants:
            narrow = bool(fake.attrs.get("narrow", False))
            integers = Constant(quantize(self.graph.constants[source].array, q, narrow))
            self.integers[fake.output] = self.constant(source, integers, q)
            return
        value = self.fresh(f"{source}.quantized")
        name = self.fresh(f"{source}.quantize")
        attrs: dict[str, Attr] = {} if ties == "even" else {"ties": ties}
        self.emit(dataclasses.replace(fake, name=name), "qnn.quantize", (source,), (value,), q, **attrs)
        self.integers[fake.output] = value

    def real(self, value: str) -> str:
        """The real numbers of an annotated value, dequantized where it has only integers."""
        if value not in self.integers:
            return value
        if value not in self._reals:
            producer = self.graph.producers[value]
            tensor = str(producer.attrs.get("tensor", value))
            real = value if value in self.graph.outputs else self.fresh(f"{tensor}.dequantized")
            node = Node(self.fresh(f"{tensor}.dequantize"), "", (), (), sources=producer.sources)
            self.emit(node, "qnn.dequantize", (self.integers[value],), (real,), None)
            self._reals[value] = real
        return self._reals[value]

    def float_node(self, node: Node) -> None:
        """A node that stays as it is."""
        self._nodes.append(dataclasses.replace(node, inputs=tuple(map(self.real, node.inputs))))

    def finish(self) -> Graph:
        """The graph, its outputs real again."""
        outputs = tuple(map(self.real, self.graph.outputs))
        constants = {**self.graph.constants, **self.constants}
        return build(self.graph.name, self.graph.input_types(), outputs, self._nodes, constants, self.qparams)
