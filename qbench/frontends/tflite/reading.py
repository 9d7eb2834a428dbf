"""A TFLite file to plain data. Whatever is wrong with the file becomes a ModelError here."""

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.tflite.elements import TYPES, read_array, read_qparams
from qbench.frontends.tflite.functions import SILENT, flattened
from qbench.frontends.tflite.guard import Budget, damaged, guarded
from qbench.frontends.tflite.options import array_of, custom_options, ints, names_of, read_options
from qbench.frontends.tflite.source import ABSENT, Array, Option, SourceModel, SourceOperator, SourceTensor
from qbench.frontends.tflite.sparse import Level, Sparsity
from qbench.ir.dtypes import is_dtype, numpy_dtype

_VERSION = 3
_BUILTIN_CODE = 10
"""Place of `builtin_code` in the table of an operator's code."""


def read_model(data: bytes, name: str) -> SourceModel:
    """Read and check a TFLite file: names, references, buffers and scales, not yet the operators; all in one function.

    Parameters
    ----------
    data
        The file's content.
    name
        What to call the model.
    """
    return _Reader(data, _parser()).model(name)


@cache
def _parser() -> Any:
    try:
        return importlib.import_module("tflite")
    except ImportError:
        raise ModelError("reading TFLite needs its parser: pip install 'qbench[tflite]'") from None


class _Reader:
    def __init__(self, data: bytes, parser: Any) -> None:
        self.data, self.parser, self.budget = data, parser, Budget(len(data))

    def model(self, name: str) -> SourceModel:
        root = guarded(self.parser.Model(), self.data, int.from_bytes(self.data[:4], "little"), self.budget)
        if root.Version() != _VERSION:
            raise ModelError(f"the file is of TFLite version {root.Version()}; qbench reads version {_VERSION}")
        tables = list(self._tables(root.SubgraphsLength(), root.Subgraphs))
        if not tables:
            raise ModelError("the model has 0 subgraphs: there is nothing to run")
        codes = [self._code(code) for code in self._tables(root.OperatorCodesLength(), root.OperatorCodes)]
        buffers = [self._buffer(buffer) for buffer in self._tables(root.BuffersLength(), root.Buffers)]
        contents = [list(self._tables(table.TensorsLength(), table.Tensors)) for table in tables]
        names = iter(
            _unique([_text(tensor.Name()) or f"tensor_{n}" for own in contents for n, tensor in enumerate(own)])
        )
        parts = [
            self._function(name, table, tensors, [*islice(names, len(tensors))], codes, buffers)
            for table, tensors in zip(tables, contents, strict=True)
        ]
        source = flattened(parts)
        _check_order(source)
        return source

    def _function(
        self,
        name: str,
        table: Any,
        tables: Sequence[Any],
        names: Sequence[str],
        codes: Sequence[str],
        buffers: Sequence[Array | None],
    ) -> SourceModel:
        operators = [self._operator(op, codes, names) for op in self._tables(table.OperatorsLength(), table.Operators)]
        inputs, outputs = ints(table.InputsAsNumpy()), ints(table.OutputsAsNumpy())
        _check_numbers(inputs, names, "the model's inputs")
        _check_numbers(outputs, names, "the model's outputs")
        computed = {*inputs, *(number for op in operators for number in op.output_numbers)}
        tensors = [
            self._tensor(tensor, names[index], buffers, index in computed) for index, tensor in enumerate(tables)
        ]
        return SourceModel(name, tuple(tensors), tuple(operators), inputs, outputs)

    def _guard(self, table: Any) -> Any:
        if table is None:
            raise damaged("a table is missing")
        return guarded(table, self.data, table._tab.Pos, self.budget)

    def _tables(self, count: int, element: Callable[[int], Any]) -> Iterator[Any]:
        self.budget.spend(4 * count)
        return (self._guard(element(index)) for index in range(count))

    def _code(self, code: Any) -> str:
        # as runtimes do: files since 2020 have both, or the newer; BuiltinCode() asks the older where a byte will do
        number = max(code.DeprecatedBuiltinCode(), code._tab.int32(_BUILTIN_CODE))
        if number == self.parser.BuiltinOperator.CUSTOM:
            return f"custom.{shown(_text(code.CustomCode()))[1:-1]}"
        return names_of(self.parser.BuiltinOperator).get(number, f"builtin operator {number}")

    def _buffer(self, buffer: Any) -> Array | None:
        if buffer.Offset() > 1:  # behind the flatbuffer, as in files beyond 2 GiB
            start, size = buffer.Offset(), buffer.Size()
            if start + size > len(self.data):
                raise damaged(f"a buffer of {size} bytes at byte {start} of {len(self.data)}")
            return np.frombuffer(self.data, np.uint8, size, start)
        content = array_of(buffer.DataAsNumpy())
        return content if content is not None and content.size else None

    def _tensor(self, table: Any, name: str, buffers: Sequence[Array | None], computed: bool) -> SourceTensor:
        sizes, signature = ints(table.ShapeAsNumpy()), ints(table.ShapeSignatureAsNumpy())
        if len(signature) != len(sizes):
            signature = sizes
        if min((*sizes, *signature), default=0) < -1:
            raise ModelError(f"tensor {shown(name)} has the shape {sizes}, {signature} in its signature")
        kind: int = table.Type()
        buffer: int = table.Buffer()
        if not 0 <= kind < len(TYPES):
            raise ModelError(f"tensor {shown(name)} has the unknown element type {kind}")
        if not 0 <= buffer < max(len(buffers), 1):
            raise ModelError(f"tensor {shown(name)} refers to buffer {buffer} of {len(buffers)}")
        dtype = TYPES[kind]
        content = buffers[buffer] if buffers else None
        array = None
        if not computed and (content is not None or 0 in sizes):
            content = np.empty(0, np.uint8) if content is None else content
            sparsity = table.Sparsity()
            if sparsity is None:
                array = read_array(content, name, sizes, dtype, self.budget)
            else:
                array = self._dense(self._guard(sparsity), content, name, sizes, dtype)
        if table.IsVariable():  # what an operator keeps from run to run; zeros at first, and here in each run
            closed = [max(size, 1) for size in sizes]
            self.budget.spend(4 * math.prod(closed))
            array = np.zeros(closed, numpy_dtype(dtype) if is_dtype(dtype) else np.float32)
        quantization = table.Quantization()
        qparams = None if quantization is None else read_qparams(self._guard(quantization), name, sizes, dtype)
        shape = tuple(None if -1 in pair else pair[0] for pair in zip(sizes, signature, strict=True))
        return SourceTensor(name, shape, dtype, qparams, array)

    def _dense(self, table: Any, content: Array, name: str, shape: tuple[int, ...], dtype: str) -> Array:
        """The whole of a sparse constant."""
        width = numpy_dtype(dtype).itemsize if is_dtype(dtype) else 1
        levels = [self._level(level) for level in self._tables(table.DimMetadataLength(), table.DimMetadata)]
        sparsity = Sparsity(ints(table.TraversalOrderAsNumpy()), ints(table.BlockMapAsNumpy()), levels)
        stored = read_array(content, name, (content.size // width,), dtype, self.budget)
        try:
            return sparsity.dense(stored, shape)
        except (ModelError, ValueError) as error:
            raise ModelError(f"sparse tensor {shown(name)} makes no sense: {error}") from None

    def _level(self, table: Any) -> Level:
        if table.Format() == self.parser.DimensionType.DENSE:
            return Level(table.DenseSize())
        kinds = names_of(self.parser.SparseIndexVector)
        vectors = list[Array]()
        for number, union in (
            (table.ArraySegmentsType(), table.ArraySegments()),
            (table.ArrayIndicesType(), table.ArrayIndices()),
        ):
            kind = getattr(self.parser, kinds.get(number, ""), None)
            if kind is None or union is None:
                raise damaged("a sparse axis has no list of its places")
            found = array_of(guarded(kind(), self.data, union.Pos, self.budget).ValuesAsNumpy())
            vectors.append(np.zeros(0, np.int64) if found is None else found)
        return Level(0, *vectors)

    def _operator(self, table: Any, codes: Sequence[str], names: Sequence[str]) -> SourceOperator:
        number: int = table.OpcodeIndex()
        if not 0 <= number < len(codes):
            raise ModelError(f"an operator refers to operator code {number} of {len(codes)}")
        op = codes[number]
        inputs, outputs = ints(table.InputsAsNumpy()), ints(table.OutputsAsNumpy())
        _check_numbers([number for number in inputs if number != ABSENT], names, f"an operator ({op})")
        _check_numbers(outputs, names, f"an operator ({op})")
        if not outputs and op not in SILENT:
            raise ModelError(f"an operator ({op}) makes no tensor")
        made = tuple(names[number] for number in outputs)
        kind, options = self._options(table)
        return SourceOperator(made[0] if made else op, op, inputs, outputs, made, kind, options)

    def _options(self, table: Any) -> tuple[str, dict[str, Option]]:
        custom = array_of(table.CustomOptionsAsNumpy())
        if custom is not None and custom.size:
            return "custom", custom_options(custom.tobytes())
        for union in ("BuiltinOptions", "BuiltinOptions2"):
            number, options = getattr(table, f"{union}Type")(), getattr(table, union)()
            if number and options is not None:
                kind = names_of(getattr(self.parser, union)).get(number, f"options {number}")
                fields = getattr(self.parser, kind, None)
                return kind, {} if fields is None else read_options(fields, self.data, options.Pos, self.budget)
        return "", {}


def _check_numbers(numbers: Sequence[int], names: Sequence[str], who: str) -> None:
    for number in numbers:
        if not 0 <= number < len(names):
            raise ModelError(f"{who} refers to tensor {number} of {len(names)}")


def _check_order(source: SourceModel) -> None:
    """Operators run in the file's order, so each tensor must be there before it is read, and be made once."""
    names = [tensor.name for tensor in source.tensors]
    for what, numbers in (("inputs", source.inputs), ("outputs", source.outputs)):
        twice = [shown(names[number]) for number, count in Counter(numbers).items() if count > 1]
        if twice:
            raise ModelError(f"the model names {', '.join(twice)} twice among its {what}")
    if not source.outputs:
        raise ModelError("the model has no outputs")
    known = {*source.inputs, *(number for number, t in enumerate(source.tensors) if t.array is not None)}
    later = {number for op in source.operators for number in op.output_numbers}
    for op in source.operators:
        for number in op.inputs:
            if number not in known and number != ABSENT:
                why = "which is made only after it" if number in later else "which has no data and is made by nothing"
                raise ModelError(f"operator {op} reads {shown(names[number])}, {why}")
        for number in op.output_numbers:
            if number in known:
                raise ModelError(f"operator {op} makes {shown(names[number])}, which is there already")
            known.add(number)
    for number in source.outputs:
        if number not in known:
            raise ModelError(f"the model's output {shown(names[number])} is made by nothing")


def _unique(names: Sequence[str]) -> list[str]:
    """The names, those that came before with a number behind them."""
    counts: Counter[str] = Counter()
    taken = {*names}
    result: list[str] = []
    for name in names:
        counts[name] += 1
        unique = name
        while counts[name] > 1 and unique in taken:
            unique = f"{name}.{counts[name]}"
            counts[name] += unique in taken
        taken.add(unique)
        result.append(unique)
    return result


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "backslashreplace")
