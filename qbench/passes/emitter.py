"""The realized graph as it grows: what each value's integers are called, and when reals are needed again."""

from __future__ import annotations

import copy
import dataclasses
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TypeVar, cast
from weakref import WeakValueDictionary

import numpy as np

from qbench.errors import GraphError, shown
from qbench.forms import Operand
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.mapped import release
from qbench.ir.names import fresh
from qbench.ir.op import is_op
from qbench.ir.qparams import QParams
from qbench.ir.reads import Reads
from qbench.ir.types import TensorType
from qbench.ops.qnn.border import FakeQuantize
from qbench.ops.qnn.dynamic import DynamicDense
from qbench.quant.arithmetic import Ties, quantize


@dataclass(frozen=True, eq=False)
class Known:
    """What work may ask about the annotated graph, value by value."""

    types: Mapping[str, TensorType]
    floats: Mapping[str, Constant]
    encodings: Mapping[str, QParams]
    outputs: Mapping[str, None]
    producers: Mapping[str, Node]
    consumers: Mapping[str, tuple[Node, ...]]

    @classmethod
    def of(cls, graph: Graph) -> Known:
        """All that there is."""
        outputs = dict.fromkeys(graph.outputs)
        return cls(graph.types, graph.constants, graph.qparams, outputs, graph.producers, graph.consumers)


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
    reads: Reads = field(default_factory=Reads)
    """All that the work has looked up."""


class Emitter:
    """The realized graph as it grows.

    Parameters
    ----------
    graph
        The annotated graph, with qparams at its points.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.known = graph, Known.of(graph)
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
        apart.known = Known(**{name: new.reads.view(name, known) for name, known in vars(self.known).items()})
        apart.integers = _grown(new.integers, new.reads.view("emitted integers", self.integers))
        apart.constants = _grown(new.constants, new.reads.view("emitted constants", self.constants))
        apart.qparams = _grown(new.qparams, new.reads.view("emitted qparams", self.qparams))
        apart._reals = _grown(new.reals, new.reads.view("reals", self._reals))
        work(apart)
        return new

    def holds(self, emission: Emission) -> bool:
        """Whether all that the work looked up is here what it was there."""
        return emission.reads.hold(self._all)

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

    @property
    def _all(self) -> dict[str, Mapping[str, object]]:
        """Everything that work can depend on, but for which names are taken."""
        emitted = {"integers": self.integers, "constants": self.constants, "qparams": self.qparams}
        return {**vars(self.known), **{f"emitted {name}": made for name, made in emitted.items()}, "reals": self._reals}

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
        given = FrozenMap[str, Attr](attrs)
        self._nodes.append(dataclasses.replace(node, op=op, inputs=inputs, outputs=outputs, attrs=given, reason=""))
        if q is not None:
            self.qparams.update(dict.fromkeys(outputs, q))

    def constant(self, name: str, array: Constant, q: QParams) -> str:
        """Add a constant in integers; it keeps the float one's name where nothing reads that as float."""
        read_as_float = name in self.known.outputs or any(
            not is_op(reader, FakeQuantize) and (reader.reason or name not in reader.inputs[1:])
            for reader in self.known.consumers.get(name, ())
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
        if fake.output not in self.known.encodings:
            raise GraphError(f"tensor {shown(str(fake.attrs['tensor']))} has no qparams yet: calibrate, then bind them")
        return self.known.encodings[fake.output]

    def integer_name(self, tensor: str) -> str:
        """What the integers of a float tensor are called: as the tensor, but for graph outputs, which are real."""
        return self.fresh(f"{tensor}.quantized") if tensor in self.known.outputs else tensor

    def point(self, fake: Node, ties: Ties = "even") -> None:
        """A fake-quantize node: constants are quantized here and now, reals from a float node get a quantize."""
        if fake.output in self.integers:
            return  # the integer group before it has made it
        source, q = fake.inputs[0], self.encoding(fake)
        if source in self.known.floats:
            integers = _integers(self.known.floats[source], q, bool(fake.attrs.get("narrow", False)))
            self.integers[fake.output] = self.constant(source, integers, q)
            return
        self.integers[fake.output] = self.quantized(source, fake, q, ties)

    def quantized(self, source: str, node: Node, q: QParams, ties: Ties) -> str:
        """The integers of what is real, made by a quantize with the sources of a node."""
        value = self.fresh(f"{source}.quantized")
        name = self.fresh(f"{source}.quantize")
        attrs: dict[str, Attr] = {} if ties == "even" else {"ties": ties}
        self.emit(dataclasses.replace(node, name=name), "qnn.quantize", (source,), (value,), q, **attrs)
        return value

    def real(self, value: str) -> str:
        """The real numbers of an annotated value, dequantized where it has only integers."""
        if value not in self.integers:
            return value
        if value not in self._reals:
            producer = self.known.producers[value]
            tensor = str(producer.attrs.get("tensor", value))
            real = value if value in self.known.outputs else self.fresh(f"{tensor}.dequantized")
            node = Node(self.fresh(f"{tensor}.dequantize"), "", (), (), sources=producer.sources)
            self.emit(node, "qnn.dequantize", (self.integers[value],), (real,), None)
            self._reals[value] = real
        return self._reals[value]

    def operand(self, value: str) -> Operand:
        """What a node reads, as far as it is known here: integers, or a real value or constant."""
        kind = self.known.types[value]
        if value not in self.integers:
            constant = self.known.floats.get(value)
            return Operand(value, kind, None, None if constant is None else constant.array)
        q, constant = self.q(value), self.constants.get(self.integers[value])
        return Operand(value, kind.with_dtype(q.dtype), q, None if constant is None else constant.array)

    def dynamic(self, node: Node, ranged: Node) -> None:
        """A dense layer of stored weights, on data that are quantized by the range of each run."""
        weight = self.integers[node.inputs[1]]
        q, scale = self.qparams[weight], self.fresh(f"{weight}.scale")
        integers = self.constants[weight].array
        self.constants[scale] = Constant(np.resize(np.asarray(q.scales, np.float32), len(integers)))
        if q.dtype != "int8" or any(q.zero_points):
            centred = integers.astype(np.int64) - q.zero_point_array(integers.shape)
            if not -128 <= centred.min(initial=0) <= centred.max(initial=0) <= 127:
                what = f"the weight of {shown(node.name)} is {q.dtype} with a zero point, which takes more than 8 bits"
                raise GraphError(f"{what}: mode dynamic needs int8 or 4 bits")
            weight = self.fresh(f"{weight}.centred")
            self.constants[weight] = Constant(centred.astype(np.int8))
        inputs = self.real(ranged.inputs[0]), weight, scale
        self._nodes.append(dataclasses.replace(node, op=DynamicDense.name, inputs=inputs, attrs=ranged.attrs))

    def float_node(self, node: Node, reason: str = "") -> None:
        """A node that stays as it is, or because of what is found out only now."""
        inputs = tuple(map(self.real, node.inputs))
        self._nodes.append(dataclasses.replace(node, inputs=inputs, reason=reason or node.reason))

    def finish(self) -> Graph:
        """The graph, its outputs real again."""
        outputs = tuple(map(self.real, self.graph.outputs))
        constants = {**self.graph.constants, **self.constants}
        return build(self.graph.name, self.graph.input_types(), outputs, self._nodes, constants, self.qparams)


_known = WeakValueDictionary[tuple[Constant, QParams, bool], Constant]()


def _integers(constant: Constant, q: QParams, narrow: bool) -> Constant:
    """The integers of a constant: the same ones for all that hold it, under whatever names, as long as some graph has
    them."""
    found = _known.get((constant, q, narrow))
    if found is None:
        found = _known[constant, q, narrow] = Constant(quantize(constant.array, q, narrow))
        release(constant.array)
    return found


V = TypeVar("V")


def _grown(new: dict[str, V], old: Mapping[str, V]) -> MutableMapping[str, V]:
    """One mapping behind the other; only the first one is written to."""
    return ChainMap(new, cast(MutableMapping[str, V], old))
