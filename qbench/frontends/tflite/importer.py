"""The import itself: operators in order, each folded, converted or put on the list of what is not supported."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from qbench.errors import GraphError, ModelError, QBenchError, UnsupportedOpsError, nearest, shown
from qbench.formats.tflite import TO_NCHW
from qbench.frontends.equations import imported
from qbench.frontends.sizes import Unresolved, check_shape
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.cells import Cell, cell_of
from qbench.frontends.tflite.folding import fold_sizes
from qbench.frontends.tflite.functions import FUNCTION_OPTIONS
from qbench.frontends.tflite.kinds import hybrid_weights
from qbench.frontends.tflite.source import ABSENT, Array, SourceModel, SourceOperator, SourceTensor
from qbench.frontends.tflite.table import CONVERTERS
from qbench.ir.build import build
from qbench.ir.dtypes import DTYPES, is_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import Dim, TensorType, dims_replaced
from qbench.quant.arithmetic import dequantize
from qbench.quant.semantics import Semantics

MOST_TURNS, MOST_OPERATORS = 1000, 50_000
"""No loop is written out that turns more often, or has more operators then."""


def import_model(
    source: SourceModel, shapes: Mapping[str, Sequence[Dim]], semantics: Semantics, *, to_nchw: bool = False
) -> Graph:
    """Turn what a TFLite file says into a graph.

    Parameters
    ----------
    source
        The model, as :func:`~qbench.frontends.tflite.reading.read_model` gives it.
    shapes
        Input shapes, in the file's layout, that replace those of the file.
    semantics
        Whose arithmetic quantized operators get.
    to_nchw
        Whether images that go in and come out have their channels first, not as the file has them.
    """
    known = [source.tensors[number].name for number in source.inputs]
    for name in shapes:
        if name not in known:
            raise ModelError(f"shapes: the model has no input {shown(name)}{nearest(name, known)}")
    try:
        return imported(lambda known: _Importer(source, shapes, semantics, to_nchw, known))
    except GraphError as error:
        raise ModelError(f"{shown(source.name)}: {error}") from error


class _Importer:
    def __init__(
        self,
        source: SourceModel,
        shapes: Mapping[str, Sequence[Dim]],
        semantics: Semantics,
        to_nchw: bool,
        known: Mapping[str, Dim],
    ) -> None:
        self.source = source
        self.values: dict[int, Value] = {}
        self.unsupported: list[str] = []
        for number in source.inputs:
            tensor = source.tensors[number]
            kind = _input_type(tensor, shapes.get(tensor.name), known)
            value = Value(tensor.name, kind.shape, kind.dtype, q=tensor.qparams)
            if to_nchw and kind.rank == 4:
                value = replace(value, shape=tuple(kind.shape[i] for i in TO_NCHW), nchw=True)
            self.values[number] = value
        inputs = {
            self.values[n].name: TensorType(self.values[n].shape, _input_type(source.tensors[n], None, known).dtype)
            for n in source.inputs
        }
        ends = () if to_nchw else (source.tensors[number].name for number in source.outputs)
        self.builder = Builder(inputs, (tensor.name for tensor in source.tensors), semantics, ends)
        for value in self.values.values():
            if value.q is not None:
                self.builder.qparams[value.name] = value.q
        for number, tensor in enumerate(source.tensors):
            if tensor.array is not None:
                self.values[number] = self.builder.known(tensor.array, tensor.name, tensor.qparams)

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        return self.builder.inputs

    def run(self) -> Graph:
        for op in self.source.operators:
            self._attempt(op)
        if self.unsupported:
            lines = "".join(f"\n  {line}" for line in self.unsupported)
            raise UnsupportedOpsError(f"{shown(self.source.name)} uses what qbench does not support:{lines}")
        builder = self.builder
        outputs = [builder.materialize(self.values[number]).name for number in self.source.outputs]
        return build(self.source.name, builder.inputs, outputs, builder.nodes, builder.constants, builder.qparams)

    def _attempt(self, op: SourceOperator) -> None:
        try:
            if op.op == "WHILE":
                self._turn(op)
            else:
                self._take(op)
        except Unsupported as error:
            self.unsupported.append(f"{op}: {error}" if str(error) else str(op))
        except QBenchError as error:
            raise ModelError(str(error) if str(op) in str(error) else f"operator {op}: {error}") from error
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            # A malformed operator: lists of the wrong length, numbers out of range. Its converter checks not each.
            raise ModelError(f"operator {op} makes no sense: {error}") from error

    def _take(self, op: SourceOperator) -> None:
        convert = CONVERTERS.get(op.op)
        if convert is None:
            raise Unsupported("")
        tensors = self.source.tensors
        if any(number not in self.values for number in op.inputs if number != ABSENT):
            return  # made by an operator that is on the list already
        stored = hybrid_weights([tensors[n] for n in op.inputs if n != ABSENT], tensors[op.output_numbers[0]])
        self.values |= {n: self._real(n) for n in op.inputs if n != ABSENT and tensors[n] in stored}
        values = [None if number == ABSENT else self.values[number] for number in op.inputs]
        results = [tensors[number] for number in op.output_numbers]
        builder = self.builder
        builder.start(op, results)
        given = [value for value in values if value is not None]
        if any(value.array is not None and value.array.dtype == object for value in given) and all(
            value.array is not None for value in given
        ):
            try:
                made = fold_sizes(builder, op, convert, values)
            except Unresolved:
                raise Unsupported("its result depends on sizes known only at run time: fix them with shapes=") from None
        elif all(value.array is not None for value in given):
            made = builder.fold(convert(builder, op, values))
        else:
            made = convert(builder, op, values)
            made = made if all(value.array is not None for value in made) else builder.finish(made)
        self.values.update(zip(op.output_numbers, made, strict=True))

    def _turn(self, op: SourceOperator) -> None:
        """A loop: a recurrent layer where it is one, else a copy of its body for each turn."""
        if ABSENT in op.inputs:
            raise ModelError(f"operator {op} lacks a tensor")
        if any(number not in self.values for number in op.inputs):
            return  # made by an operator that is on the list already
        condition, body = (self.source.functions[op.integer(name)] for name in FUNCTION_OPTIONS["WHILE"])
        state = [self.values[number] for number in op.inputs]
        layer = self._layer(op, condition, body)
        if layer is None:
            state = self._turns(op, condition, body)
            known = [place for place, value in enumerate(state) if value.array is not None]
        else:
            known = layer[0].counters
        numbers = [number for place, number in enumerate(op.output_numbers) if place not in known]
        self.builder.start(op, [self.source.tensors[number] for number in numbers])
        state = state if layer is None else layer[0].emitted(self.builder, state, layer[1])
        self.values.update(zip(op.output_numbers, state, strict=True))
        if numbers:
            computed = self.builder.finish([self.values[number] for number in numbers])
            self.values.update(zip(numbers, computed, strict=True))

    def _turns(self, op: SourceOperator, condition: SourceModel, body: SourceModel) -> list[Value]:
        """What is left after the last turn, as long as the condition is a known truth value."""
        state = [self.values[number] for number in op.inputs]
        most = min(MOST_TURNS, MOST_OPERATORS // max(len(body.operators), 1))
        for turn in range(most + 1):
            (goes_on,) = self._called(op, condition, state, turn)
            if goes_on.constant is None:
                raise Unsupported("it ends when its data say so; only loops whose turns can be counted are written out")
            if not goes_on.constant.all():
                return state
            state = self._called(op, body, state, turn)
        raise Unsupported(f"it turns more than {most} times")

    def _layer(self, op: SourceOperator, condition: SourceModel, body: SourceModel) -> tuple[Cell, int] | None:
        """The recurrent layer that a loop is, and how many steps it takes: all of its data."""
        given = [self.values[number] for number in op.inputs]
        self.builder.start(op, [self.source.tensors[number] for number in op.output_numbers])

        def computed(function: SourceModel, arrays: Sequence[Array]) -> list[Array | None]:
            return [value.constant for value in self._called(op, function, list(map(self.builder.known, arrays)), 0)]

        cell = cell_of(body, computed)
        if cell is None:
            return None
        steps = given[cell.data].shape[0]
        firsts = [given[place].constant for place in cell.counters]
        if not isinstance(steps, int) or given[cell.data].array is not None:
            return None
        if not all(first is not None and first == 0 for first in firsts):
            return None
        for turn, goes_on in ((0, True), (steps - 1, True), (steps, False)):
            count = self.builder.known(np.asarray(turn, np.int32))
            at = [count if place in cell.counters else value for place, value in enumerate(given)]
            (found,) = self._called(op, condition, at, turn)
            if found.constant is None or bool(found.constant.all()) != goes_on:
                return None
        return cell, steps

    def _called(self, op: SourceOperator, function: SourceModel, given: Sequence[Value], turn: int) -> list[Value]:
        """What a function makes of some values; its tensors get names of their own in each turn."""
        if len(function.inputs) != len(given):
            raise ModelError(f"operator {op}: a function of it takes {len(function.inputs)} tensors, not {len(given)}")
        tensors = tuple(
            tensor if tensor.array is not None else replace(tensor, name=self.builder.fresh(f"{tensor.name}.{turn}"))
            for tensor in function.tensors
        )
        outside, found = (self.source, self.values), len(self.unsupported)
        self.source = replace(function, tensors=tensors, functions=self.source.functions)
        self.values = {
            number: self.builder.known(tensor.array, tensor.name, tensor.qparams)
            for number, tensor in enumerate(tensors)
            if tensor.array is not None
        } | dict(zip(function.inputs, given, strict=True))
        try:
            for inner in function.operators:
                name, outputs = f"{inner.name}.{turn}", tuple(tensors[number].name for number in inner.output_numbers)
                self._attempt(replace(inner, name=name, outputs=outputs))
            made = [self.values.get(number) for number in function.outputs]
        finally:
            self.source, self.values = outside
        if len(self.unsupported) > found:
            raise Unsupported("what its body uses")
        if None in made:
            raise ModelError(f"operator {op}: a function of it makes fewer tensors than it says")
        return [value for value in made if value is not None]

    def _real(self, number: int) -> Value:
        """A constant that is stored as integers, as the real numbers that they stand for."""
        value = self.values[number]
        if value.array is None or value.q is None:
            return value
        return self.builder.known(dequantize(value.array, value.q), value.name)


def _input_type(tensor: SourceTensor, override: Sequence[Dim] | None, known: Mapping[str, Dim]) -> TensorType:
    if not is_dtype(tensor.dtype):
        raise ModelError(f"input {tensor} is {tensor.dtype}, which is not one of {', '.join(DTYPES)}")
    if override is not None:
        check_shape(tensor.name, override, len(tensor.shape) or None)
        return TensorType(dims_replaced(override, known), tensor.dtype)
    rank = len(tensor.shape)
    axes = {0: "N", 1: "H", 2: "W"} if rank == 4 else {0: "N"}
    sizes = (axes.get(axis, f"D{axis}") if size is None else size for axis, size in enumerate(tensor.shape))
    return TensorType(dims_replaced(sizes, known), tensor.dtype)
