"""LiteRT (TensorFlow Lite), with every tensor that it computes on the way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from qbench.errors import DataError, ModelError
from qbench.frontends.tflite.reading import read_model
from qbench.frontends.tflite.source import SourceModel, SourceTensor
from qbench.ir.dtypes import is_dtype
from qbench.ir.graph import Node
from qbench.ir.op import Array
from qbench.ir.types import Dim, TensorType
from qbench.parity.peers import chosen, file_bytes, peer
from qbench.parity.runner import Made, Portion, Runner
from qbench.parity.theory import Mode
from qbench.quant.semantics import rounding_of

Kernels = Literal["reference", "builtin", "xnnpack"]
"""Three sets of kernels that disagree: reference C++, optimized C++, and XNNPACK, which is LiteRT's default."""

KERNELS: tuple[Kernels, ...] = ("reference", "builtin", "xnnpack")

_RESOLVERS = {"reference": "BUILTIN_REF", "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnnpack": "BUILTIN"}
_INPUTS_SLOT, _OUTPUTS_SLOT, _OPERATORS_SLOT = 6, 8, 10  # of a subgraph's fields in its table, by the format's schema
_TO_CHANNELS_FIRST = (0, 3, 1, 2)


@dataclass(frozen=True)
class LiteRT(Runner):
    """A TFLite file, run by LiteRT; what its variables hold comes in and goes out, as in qbench's graph of it.

    Parameters
    ----------
    path
        The file.
    kernels
        Which of its kernels. ``reference`` is what "bit exact" means.
    layout
        As for :func:`qbench.load`: ``"NCHW"`` where the graph's inputs and outputs are so. All between is, always.
    """

    path: str | PathLike[str]
    kernels: Kernels = "reference"
    layout: Literal["NCHW"] | None = None

    def __post_init__(self) -> None:
        chosen("kernels", self.kernels, KERNELS)

    @property
    def label(self) -> str:
        """What tables call it."""
        return f"LiteRT {self.kernels}"

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """What the file says of its inputs; open sizes are symbols."""
        return {tensor.name: self._type_of(tensor) for tensor in self._border(self._source.inputs)}

    @property
    def made(self) -> Mapping[str, Made]:
        """Every tensor that an operator makes and something reads: LiteRT holds no others of a loop."""
        source = self._source
        read = {*source.outputs, *(number for op in source.operators for number in op.inputs)}
        return {
            source.tensors[number].name: Made(op.op, source.tensors[number].dtype)
            for op in source.operators
            for number in op.output_numbers
            if number in read
        }

    def run(self, portion: Portion, names: Iterable[str]) -> Mapping[str, Array]:
        """Those tensors, from one run."""
        interpreter, numbers = self._interpreter, self._numbers
        try:
            for name, array in portion.feeds.items():
                given = array.transpose(0, 2, 3, 1) if self._is_moved(name) else array
                number = numbers[name]
                if tuple(interpreter.get_input_details()[self._source.inputs.index(number)]["shape"]) != given.shape:
                    interpreter.resize_tensor_input(number, given.shape, strict=False)
                    interpreter.allocate_tensors()
                interpreter.set_tensor(number, np.ascontiguousarray(given))
            interpreter.invoke()
            found = {name: interpreter.get_tensor(numbers[name]) for name in names}
        except (ValueError, RuntimeError) as error:
            raise DataError(f"LiteRT cannot run {self.path} on these data: {_one_line(error)}") from error
        return {
            name: np.ascontiguousarray(array.transpose(_TO_CHANNELS_FIRST)) if self._is_moved(name) else array
            for name, array in found.items()
        }

    def rounding(self, head: Node, requantize: Node) -> Mode | None:
        """As its kernels do; see :mod:`qbench.quant.semantics`."""
        if self.kernels == "reference":
            return rounding_of("tflite", f"qnn.{head.op.partition('.')[2]}")
        return "litert_builtin" if self.kernels == "builtin" else "fp32_rne"

    def _border(self, numbers: Iterable[int]) -> list[SourceTensor]:
        return [self._source.tensors[number] for number in numbers]

    def _is_moved(self, name: str) -> bool:
        """Whether qbench has this tensor with its channels first."""
        tensor = self._source.tensors[self._numbers[name]]
        at_border = self._numbers[name] in (*self._source.inputs, *self._source.outputs)
        return len(tensor.shape) == 4 and (self.layout == "NCHW" or not at_border)

    def _type_of(self, tensor: SourceTensor) -> TensorType:
        if not is_dtype(tensor.dtype):
            raise ModelError(f"input {tensor} is {tensor.dtype}, which cannot be fed")
        dims: list[Dim] = [f"D{axis}" if size is None else size for axis, size in enumerate(tensor.shape)]
        if dims and dims[0] == "D0":
            dims[0] = "N"
        if self._is_moved(tensor.name):
            dims = [dims[axis] for axis in _TO_CHANNELS_FIRST]
        return TensorType(tuple(dims), tensor.dtype)

    @cached_property
    def _data(self) -> bytes:
        return file_bytes(Path(self.path))

    @cached_property
    def _source(self) -> SourceModel:
        return read_model(self._data, Path(self.path).stem)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {tensor.name: number for number, tensor in enumerate(self._source.tensors)}

    @cached_property
    def _interpreter(self) -> Any:
        lite = peer("ai_edge_litert.interpreter", "ai-edge-litert")
        seen = self.kernels == "xnnpack"  # a delegate keeps to itself what is no output of the model
        try:
            interpreter = lite.Interpreter(
                model_content=_opened(self._data, self._source, seen),
                experimental_op_resolver_type=lite.OpResolverType[_RESOLVERS[self.kernels]],
                experimental_preserve_all_tensors=not seen,
                num_threads=1,
            )
            interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"LiteRT cannot load {self.path}: {_one_line(error)}") from error
        return interpreter


def _opened(data: bytes, source: SourceModel, seen: bool) -> bytes:
    """The file without variables, and where it must be seen with every computed tensor among its outputs.

    Vectors at the end of the file take the place of the subgraph's own: vectors are referred to by how far behind the
    reference they lie. Operators that are left out leave theirs shorter.
    """
    tflite = peer("tflite", "tflite")
    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    changed, outputs = bytearray(data), dict.fromkeys(source.outputs)
    made = dict.fromkeys(number for op in source.operators for number in op.output_numbers)
    operators = [subgraph.Operators(number) for number in range(subgraph.OperatorsLength())]
    kept = [op for op in operators if not made.keys().isdisjoint(_numbers(op.OutputsAsNumpy()))]
    if len(kept) < len(operators):
        left_out = {number for op in operators if op not in kept for number in _numbers(op.OutputsAsNumpy())}
        if not left_out.isdisjoint(
            {number for op in kept for number in _numbers(op.InputsAsNumpy())} - {*source.inputs}
        ):
            raise ModelError(
                f"{source.name} reads a variable twice, or one that nothing assigns: LiteRT keeps those to itself"
            )
        vector = subgraph._tab.Vector(subgraph._tab.Offset(_OPERATORS_SLOT))  # its first element
        changed[vector - 4 : vector] = len(kept).to_bytes(4, "little")
        for place, op in enumerate(kept):
            at = vector + 4 * place
            changed[at : at + 4] = (op._tab.Pos - at).to_bytes(4, "little")
        _refer(changed, subgraph._tab, _INPUTS_SLOT, source.inputs)
    if seen or len(kept) < len(operators):
        _refer(changed, subgraph._tab, _OUTPUTS_SLOT, [*(outputs | made if seen else outputs)])
    return bytes(changed)


def _refer(data: bytearray, table: Any, slot: int, numbers: Sequence[int]) -> None:
    """Let a field of a table refer to a new vector, at the end."""
    place = table.Pos + table.Offset(slot)
    data += bytes(-len(data) % 4)
    data[place : place + 4] = (len(data) - place).to_bytes(4, "little")
    data += np.array([len(numbers), *numbers], "<i4").tobytes()


def _numbers(found: Any) -> list[int]:
    """Of a vector of tensors, which is 0 where there is none."""
    return [] if isinstance(found, int) else found.tolist()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
