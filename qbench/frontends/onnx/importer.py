"""The import itself: nodes in order, each folded, converted or put on the list of what is not supported."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from qbench.errors import GraphError, ModelError, UnsupportedOpsError, listed, nearest, shown
from qbench.frontends.equations import imported
from qbench.frontends.onnx.builder import Builder, Open, Unsupported, Value
from qbench.frontends.onnx.folding import can_fold, fold_constants, fold_sizes
from qbench.frontends.onnx.inputs import input_types
from qbench.frontends.onnx.loops import WAYS, Turns, count_turns, holds
from qbench.frontends.onnx.source import SourceModel, SourceNode, in_order
from qbench.frontends.onnx.table import CONVERTERS, MOVES
from qbench.frontends.onnx.tails import cut_before
from qbench.frontends.sizes import Unresolved
from qbench.ir.build import build
from qbench.ir.graph import Graph, Node
from qbench.ir.types import Dim, TensorType

_LOG = logging.getLogger(__name__)


def import_model(
    source: SourceModel, shapes: Mapping[str, Sequence[Dim]], values: Mapping[str, ArrayLike] | None = None
) -> Graph:
    """Turn what an ONNX file says into a graph.

    Parameters
    ----------
    source
        The model, as :func:`~qbench.frontends.onnx.reading.read_model` gives it.
    shapes
        Input shapes that replace those of the file.
    values
        Inputs that become constants.
    """
    known = [i.name for i in source.inputs]
    for what, names in (("shapes", shapes), ("values", values or {})):
        for name in names:
            if name not in known:
                raise ModelError(f"{what}: the model has no input {shown(name)}{nearest(name, known)}")
    source = source.with_values({name: np.asarray(value) for name, value in (values or {}).items()})
    try:
        return _imported(source, shapes)
    except GraphError as error:
        raise ModelError(f"{shown(source.name)}: {error}") from error


def _imported(source: SourceModel, shapes: Mapping[str, Sequence[Dim]]) -> Graph:
    """The graph, or what of it comes before sizes that only the run knows."""
    found = imported(lambda known: _Importer(source, shapes, known))
    return found if isinstance(found, Graph) else _cut(found, shapes)


def _cut(importer: _Importer, shapes: Mapping[str, Sequence[Dim]]) -> Graph:
    """The graph before what only the run knows the sizes of, with the rest as data."""
    source, starts = importer.source, importer.starts
    source = dataclasses.replace(source, nodes=tuple(in_order(source.nodes)))
    tail = cut_before(source, starts, importer.values)
    front = tail.front()
    if front is None:
        raise importer.refused(starts.values())
    return tail.behind(_imported(front, shapes))


NUMBERS = frozenset({"Clip", "PRelu"})
"""Ops that take constants as real numbers, however they are stored."""

KEPT = frozenset({"DequantizeLinear", "QuantizeLinear"})
"""Ops that are converted also where all their inputs are constants."""


COUNTS = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"})
COUNTED = "how many it finds only the run knows; load(outputs=(...)) ends the graph elsewhere"


class _Importer:
    def __init__(self, source: SourceModel, shapes: Mapping[str, Sequence[Dim]], known: Mapping[str, Dim]) -> None:
        inputs = input_types(source.inputs, shapes, known)
        taken = source.value_names() | {node.name for node in source.nodes}
        self.source = source
        self.builder = Builder(inputs, taken)
        self.values: dict[str, Value] = {name: Value(name, t.shape, t.dtype) for name, t in inputs.items()}
        self.values |= {name: Value.known(name, array) for name, array in source.initializers.items()}
        self.unsupported: dict[str, str] = {}
        self.starts: dict[str, str] = {}  # nodes before which the graph has to end, and why
        self.behind: set[str] = set()  # what they make, and what is made of that
        self.undecided = 0  # branches around the node that is taken, of which the run takes one of two
        self.missing: dict[str, SourceNode] = {}  # outputs that a converter does not make (an index, a mask)

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        return self.builder.inputs

    def run(self) -> Graph | _Importer:
        """The graph; the importer itself where it has to end before some nodes."""
        for name in self.source.outputs:
            if name in self.source.initializers:  # first, so that no other layout of it takes its name
                self.builder.materialize(self.values[name])
        self._take_all(self.source.nodes)
        for name in self.source.outputs:
            self._blame(name)
        if self.unsupported:
            raise self.refused(self.unsupported.values())
        if self.behind.intersection(self.source.outputs):
            return self
        outputs, builder = self._outputs(), self.builder
        if builder.doubles:
            _LOG.warning("real numbers of 64 bits have 32 here: %s", listed(builder.doubles))
        return build(self.source.name, builder.inputs, outputs, builder.nodes, builder.constants, builder.qparams)

    def refused(self, lines: Iterable[str]) -> UnsupportedOpsError:
        """The error that says what is not supported."""
        listed = "".join(f"\n  {line}" for line in lines)
        return UnsupportedOpsError(f"{shown(self.source.name)} uses what qbench does not support:{listed}")

    def _take_all(self, nodes: Sequence[SourceNode]) -> None:
        for node in in_order(nodes):
            try:
                self._take(node)
            except Open as error:
                if nodes is not self.source.nodes:
                    raise  # a body goes with its node
                self.undecided = 0
                self.behind.update(filter(None, node.outputs))
                if str(error):
                    self.starts[node.name] = f"{node}: {error}"
            except Unsupported as error:
                self._give_up(node, str(error))
            except (ArithmeticError, IndexError, TypeError, ValueError) as error:
                # A malformed node: lists of the wrong length, numbers out of range. Its converter does not check each.
                raise ModelError(f"node {node} makes no sense: {error}") from error

    def _take(self, node: SourceNode) -> None:
        lost = [name for name in node.inputs if name and name not in self.values]
        if self.behind.intersection(lost):
            raise Open
        if lost:
            for name in lost:
                self._blame(name)
            if (node.domain, node.op) not in CONVERTERS:
                self._give_up(node, "")
            return
        values = [self.values[name] if name else None for name in node.inputs]
        made = self._moved(node, values) or self._folded(node, values) or self._branched(node, values)
        made = self._turned(node, values) if made is None else made
        if made is None:
            if (node.domain, node.op) not in CONVERTERS:
                raise Open(COUNTED) if node.op in COUNTS else Unsupported("")
            made = self._converted(node, values)
        self.values |= made
        self.missing |= {name: node for name in node.outputs if name and name not in made}

    def _converted(self, node: SourceNode, values: list[Value | None]) -> dict[str, Value]:
        """The node's outputs, by its converter: on constants stored as integers, or else on their real numbers."""
        convert = CONVERTERS[node.domain, node.op]
        if node.op in NUMBERS:
            values = [_real(value) for value in values]
        try:
            self.builder.begin(node)
            return self.builder.finish(convert(self.builder, node, values))
        except Unsupported:
            if all(value is None or value.stored is None for value in values):
                raise
            self.builder.begin(node)
            return self.builder.finish(convert(self.builder, node, [_real(value) for value in values]))

    def _moved(self, node: SourceNode, values: list[Value | None]) -> dict[str, Value] | None:
        """The output of a node that moves the elements of a constant stored as integers; None for any other."""
        data, *rest = values or [None]
        arrays = [value and value.constant for value in rest]
        if data is None or data.stored is None or any(v is not None and v.constant is None for v in rest):
            return None
        if node.domain or node.op not in MOVES:
            return None
        made = self.builder.moved(data, lambda array: fold_constants(node, [array, *arrays])[0])
        return {node.outputs[0]: dataclasses.replace(made, name=node.outputs[0])}

    def _folded(self, node: SourceNode, values: list[Value | None]) -> dict[str, Value] | None:
        """The node's outputs, if they follow from constants or from sizes; None if it has to run."""
        if node.op in KEPT:
            return None
        if can_fold(node) and any(value is not None and value.stored is not None for value in values):
            values = [_real(value) for value in values]
        arrays = [value and value.array for value in values]
        if any(value is not None and value.array is None for value in values) or not can_fold(node):
            return None
        if any(array is not None and array.dtype == object for array in arrays):
            try:
                results = fold_sizes(node, arrays, [value.dtype if value else "" for value in values])
            except Unresolved:
                return None
        else:
            results = [(array, array.dtype.name) for array in fold_constants(node, arrays)]
        made = zip(node.outputs, results, strict=False)
        return {name: Value.known(name, *result) for name, result in made if name}

    def _branched(self, node: SourceNode, values: list[Value | None]) -> dict[str, Value] | None:
        """The outputs of an If: those of the branch that is taken, or of both and a choice at run time."""
        if (node.domain, node.op) != ("", "If"):
            return None
        condition = values[0]
        if condition is None:
            raise ModelError(f"node {node} has no condition")
        if condition.constant is not None:
            return self._inside(node, "then_branch" if condition.constant.all() else "else_branch")
        if [inner.op for inner in node.body("then_branch").nodes if inner.op != "Constant"] == ["Squeeze"]:
            if self.undecided:
                raise Unsupported(f"its condition follows from open sizes, inside a branch that may not run; {WAYS}")
            return self._inside(node, "then_branch")  # where the axis is longer than 1, Squeeze itself will say so
        self.undecided += 1
        before = dict(self.unsupported)
        yes, no = (self._inside(node, branch) for branch in ("then_branch", "else_branch"))
        self.undecided -= 1
        told = self._told_by_inputs(node.inputs[0])
        ways = f"load(values={{{told}}}) decides it" if told else WAYS
        if self.unsupported != before and told:
            self.unsupported = before
            raise Unsupported(f"its branches cannot both be computed; {ways}")
        self.builder.begin(node)
        one = self.builder.emit("reshape", condition, newshape=()) if condition.rank else condition
        return self.builder.finish(
            [self._either(one, yes[name], no[name], ways) for name in node.outputs if name in yes]
        )

    def _told_by_inputs(self, condition: str) -> str:
        """The inputs that decide a condition, with a number that each is compared with; empty if more than they do."""
        makers = {output: node for node in self.source.nodes for output in node.outputs}
        told: dict[str, str] = {}
        waiting = [(condition, "...")]
        while waiting:
            name, number = waiting.pop()
            if name in self.builder.inputs and self.builder.inputs[name].dtype in ("bool", "int32", "int64"):
                told[name] = number
            elif name in makers:
                arrays = {value: self.values[value].constant for value in makers[name].inputs if value in self.values}
                sizes = [array.item() for array in arrays.values() if array is not None and array.size == 1]
                waiting += [(value, f"{(sizes or [number])[0]}") for value, array in arrays.items() if array is None]
            else:
                return ""
        return ", ".join(f'"{name}": {number}' for name, number in told.items())

    def _turned(self, node: SourceNode, values: list[Value | None]) -> dict[str, Value] | None:
        """The outputs of a Loop or Scan: its turns are taken one after the other."""
        if (node.domain, node.op) not in (("", "Loop"), ("", "Scan")):
            return None
        count = count_turns(node, values)
        turns = Turns(node, count, self.builder.fresh)
        for turn in range(count):
            conditions = self._outputs_of(turns.take(turn))
            if turn + 1 < count and not all(map(holds, conditions)):
                break
        made = zip(node.outputs, self._outputs_of(turns.end()), strict=True)
        return {output: value for output, value in made if output and value is not None}

    def _inside(self, node: SourceNode, name: str) -> dict[str, Value]:
        """A branch's outputs; its nodes are taken here. It is a scope of its own: the other may have its names too."""
        branch = node.body(name)
        made = {*branch.initializers, *(output for inner in branch.nodes for output in inner.outputs)}
        taken = sorted(made & self.values.keys())
        branch = branch.with_names({known: self.builder.fresh(f"{known}.{name.split('_')[0]}") for known in taken})
        made = zip(node.outputs, self._outputs_of(branch), strict=True)
        return {output: value for output, value in made if output and value is not None}

    def _outputs_of(self, part: SourceModel) -> list[Value | None]:
        """What a part of a body makes, whose nodes are taken here; None for what is not supported."""
        self.values |= {name: Value.known(name, array) for name, array in part.initializers.items()}
        self._take_all(part.nodes)
        for name in part.outputs:
            self._blame(name)
        return [self.values.get(name) for name in part.outputs]

    def _either(self, condition: Value, yes: Value, no: Value, ways: str) -> Value:
        """One of two values, both of which are computed."""
        if (yes.shape, yes.dtype) != (no.shape, no.dtype):
            raise Unsupported(f"its branches give {_told(yes)} or {_told(no)}, as the run decides; {ways}")
        return self.builder.emit("where", condition, yes, no)

    def _blame(self, name: str) -> None:
        """Put the node that does not make a wanted output on the list."""
        if name in self.missing:
            self._give_up(self.missing[name], f"its output {shown(name)} is not supported")

    def _give_up(self, node: SourceNode, why: str) -> None:
        self.unsupported[node.name] = f"{node}: {why}" if why else str(node)

    def _in_graph(self, name: str) -> Value:
        """A value of the file in the graph; sizes that only the run knows as a node of their own."""
        value, builder = _real(self.values[name]), self.builder
        if value.array is None or value.constant is not None:
            return builder.materialize(value)
        if any(name in node.outputs for node in builder.nodes):  # some node reads them as well
            return dataclasses.replace(value, array=None)
        builder.begin(next(node for node in self.source.nodes if name in node.outputs))
        made = builder.materialize(value)
        builder.settle({})
        return made

    def _outputs(self) -> list[str]:
        """Graph outputs keep their names, also where Identity or a constant stands behind them."""
        nodes, qparams = self.builder.nodes, self.builder.qparams
        names: list[str] = []
        for name in self.source.outputs:
            value = self._in_graph(name)
            if value.name == name:
                names.append(name)
                continue
            if value.name in qparams:
                qparams[name] = qparams[value.name]
            renamable = value.name not in (*self.source.outputs, *self.builder.inputs, *self.builder.constants)
            if renamable and value.name not in names:
                nodes[:] = [node.renamed({value.name: name}) for node in nodes]
                self.values = {
                    key: dataclasses.replace(v, name=name) if v.name == value.name else v
                    for key, v in self.values.items()
                }
            else:
                copy = Node(self.builder.fresh(f"{name}.copy"), "reshape", (value.name,), (name,))
                nodes.append(dataclasses.replace(copy, attrs=type(copy.attrs)({"newshape": value.shape})))
            names.append(name)
        return names


@overload
def _real(value: Value) -> Value: ...
@overload
def _real(value: Value | None) -> Value | None: ...
def _real(value: Value | None) -> Value | None:
    """A constant that is stored as integers, as the real numbers that they stand for."""
    return value if value is None or value.stored is None else Value.known(value.name, value.stored.reals)


def _told(value: Value) -> str:
    return f"{value.dtype} of shape ({', '.join(map(str, value.shape))})"
