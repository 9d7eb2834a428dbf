"""Small TFLite files made in memory, and what LiteRT computes from them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import flatbuffers
import numpy as np
import pytest
import tflite
from flatbuffers import flexbuffers

from qbench.frontends.tflite.sparse import Level, Sparsity

Resolver = Literal["BUILTIN_REF", "BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"]

TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "float16": tflite.TensorType.FLOAT16,
    "bool": tflite.TensorType.BOOL,
    "int4": tflite.TensorType.INT4,
    "int8": tflite.TensorType.INT8,
    "uint8": tflite.TensorType.UINT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "resource": tflite.TensorType.RESOURCE,
}
"""The file's number of each element type."""

OPTIONS = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "PADV2": "PadV2Options",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "BATCH_TO_SPACE_ND": "BatchToSpaceNDOptions",
    "SPACE_TO_BATCH_ND": "SpaceToBatchNDOptions",
}
"""Options tables whose names do not follow from the op's; ops without a table (LOGISTIC, PRELU) have none."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor: constant where it has `data`, quantized where it has a scale, per axis where that is a sequence."""

    name: str
    shape: Sequence[int] = ()
    dtype: str | int = "float32"
    """A number stands for a type that qbench may not know."""
    data: Any = None
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    signature: Sequence[int] | None = None
    """The shape with -1 for open sizes."""
    variable: bool = False
    sparse: Sparsity | None = None
    """Where the elements of `raw` stand."""
    buffer: int | None = None
    """The number of a buffer, in place of one of its own."""
    raw: bytes | None = None
    """A buffer's content in place of `data`."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An op; its inputs are names of tensors, "" for an absent one, or numbers."""

    op: str
    inputs: Sequence[str | int]
    outputs: Sequence[str | int]
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: str = ""
    """The code of a custom op."""


@dataclass(frozen=True, eq=False)
class Function:
    """A subgraph behind the first one."""

    tensors: Sequence[Tensor]
    operators: Sequence[Operator]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()


def constant(name: str, data: Any, **more: Any) -> Tensor:
    """A tensor with data."""
    array = np.asarray(data)
    return Tensor(name, array.shape, array.dtype.name, array, **more)


def operator(op: str, inputs: Sequence[str | int], outputs: Sequence[str | int] = ("y",), **options: Any) -> Operator:
    """An op with the fields of its options table, such as ``padding="SAME", stride_w=1``."""
    return Operator(op, inputs, outputs, options)


def model(
    tensors: Sequence[Tensor],
    operators: Sequence[Operator],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    *,
    version: int = 3,
    subgraphs: int = 1,
    functions: Sequence[Function] = (),
    older_codes: bool = True,
) -> bytes:
    """The bytes of a file with one subgraph (or several equal ones), operators by their older codes too or not."""
    b = flatbuffers.Builder(1024)
    contents, codes = [b""], list[Operator]()
    made = [_function(b, one, contents, codes) for one in (Function(tensors, operators, inputs, outputs), *functions)]
    subgraph_vector = _offsets(b, tflite.ModelStartSubgraphsVector, made if functions else made * subgraphs)
    code_vector = _offsets(b, tflite.ModelStartOperatorCodesVector, [_code(b, op, older_codes) for op in codes])
    buffer_vector = _offsets(b, tflite.ModelStartBuffersVector, [_bytes(b, content) for content in contents])
    description = b.CreateString("made by a test")
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, version)
    tflite.ModelAddOperatorCodes(b, code_vector)
    tflite.ModelAddSubgraphs(b, subgraph_vector)
    tflite.ModelAddBuffers(b, buffer_vector)
    tflite.ModelAddDescription(b, description)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def _function(b: flatbuffers.Builder, function: Function, contents: list[bytes], codes: list[Operator]) -> int:
    index = {tensor.name: number for number, tensor in enumerate(function.tensors)}
    numbers = [_buffer(tensor, contents) for tensor in function.tensors]
    made = [_tensor(b, tensor, number) for tensor, number in zip(function.tensors, numbers, strict=True)]
    tensor_vector = _offsets(b, tflite.SubGraphStartTensorsVector, made)

    def refer(names: Sequence[str | int]) -> list[int]:
        return [name if isinstance(name, int) else index[name] if name else -1 for name in names]

    first, operators = len(codes), function.operators
    ops = [_operator(b, first + n, op, refer(op.inputs), refer(op.outputs)) for n, op in enumerate(operators)]
    codes += operators
    op_vector = _offsets(b, tflite.SubGraphStartOperatorsVector, ops)
    inputs, outputs = (b.CreateNumpyVector(_ints(refer(names))) for names in (function.inputs, function.outputs))
    name = b.CreateString("main")
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensor_vector)
    tflite.SubGraphAddInputs(b, inputs)
    tflite.SubGraphAddOutputs(b, outputs)
    tflite.SubGraphAddOperators(b, op_vector)
    tflite.SubGraphAddName(b, name)
    return int(tflite.SubGraphEnd(b))


def litert(
    data: bytes, feeds: Mapping[str, np.ndarray], resolver: Resolver = "BUILTIN_REF"
) -> dict[str, np.ndarray[Any, Any]]:
    """Every tensor that LiteRT makes on the way, by name; inputs are resized to the arrays given."""
    lite = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert has no wheel here")
    interpreter = lite.Interpreter(
        model_content=data,
        experimental_op_resolver_type=lite.OpResolverType[resolver],
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    for detail in interpreter.get_input_details():
        if tuple(detail["shape"]) != feeds[detail["name"]].shape:
            interpreter.resize_tensor_input(detail["index"], feeds[detail["name"]].shape)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], feeds[detail["name"]])
    interpreter.invoke()
    found: dict[str, np.ndarray[Any, Any]] = {}
    for detail in interpreter.get_tensor_details():
        try:
            found[detail["name"]] = interpreter.get_tensor(detail["index"])
        except ValueError:  # scratch space of a kernel, or a tensor that nothing makes
            continue
    return found


def _buffer(tensor: Tensor, contents: list[bytes]) -> int:
    content = tensor.raw
    if content is None and tensor.data is not None:
        content = _packed(tensor)
    if tensor.buffer is not None or content is None:
        return tensor.buffer or 0
    contents.append(content)
    return len(contents) - 1


def _packed(tensor: Tensor) -> bytes:
    array = np.asarray(tensor.data)
    if tensor.dtype != "int4":
        return array.astype(str(tensor.dtype)).tobytes()
    nibbles = np.append(array.astype(np.int8).ravel(), np.int8(0))[: array.size + array.size % 2].astype(np.uint8) & 15
    return (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()  # two to a byte, the first one low


def _tensor(b: flatbuffers.Builder, tensor: Tensor, buffer: int) -> int:
    name, shape = b.CreateString(tensor.name), b.CreateNumpyVector(_ints(tensor.shape))
    signature = None if tensor.signature is None else b.CreateNumpyVector(_ints(tensor.signature))
    quantization = None if tensor.scale is None else _quantization(b, tensor)
    sparsity = None
    if tensor.sparse is not None:
        sparsity = _sparsity(b, tensor.sparse)
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, TYPES[tensor.dtype] if isinstance(tensor.dtype, str) else tensor.dtype)
    tflite.TensorAddBuffer(b, buffer)
    tflite.TensorAddName(b, name)
    tflite.TensorAddIsVariable(b, tensor.variable)
    for add, offset in (
        (tflite.TensorAddQuantization, quantization),
        (tflite.TensorAddShapeSignature, signature),
        (tflite.TensorAddSparsity, sparsity),
    ):
        if offset is not None:
            add(b, offset)
    return int(tflite.TensorEnd(b))


def _sparsity(b: flatbuffers.Builder, given: Sparsity) -> int:
    order, blocks = (b.CreateNumpyVector(_ints(numbers)) for numbers in (given.order, given.blocks))
    made = [_level(b, level) for level in given.levels]
    levels = _offsets(b, tflite.SparsityParametersStartDimMetadataVector, made)
    tflite.SparsityParametersStart(b)
    tflite.SparsityParametersAddTraversalOrder(b, order)
    tflite.SparsityParametersAddBlockMap(b, blocks)
    tflite.SparsityParametersAddDimMetadata(b, levels)
    return int(tflite.SparsityParametersEnd(b))


def _level(b: flatbuffers.Builder, level: Level) -> int:
    lists = []
    for array in (level.segments, level.indices):
        if array is not None:
            vector = b.CreateNumpyVector(array.astype(np.uint8))
            tflite.Uint8VectorStart(b)
            tflite.Uint8VectorAddValues(b, vector)
            lists.append(tflite.Uint8VectorEnd(b))
    tflite.DimensionMetadataStart(b)
    tflite.DimensionMetadataAddFormat(b, tflite.DimensionType.SPARSE_CSR if lists else tflite.DimensionType.DENSE)
    tflite.DimensionMetadataAddDenseSize(b, level.size)
    if lists:
        tflite.DimensionMetadataAddArraySegmentsType(b, tflite.SparseIndexVector.Uint8Vector)
        tflite.DimensionMetadataAddArraySegments(b, lists[0])
        tflite.DimensionMetadataAddArrayIndicesType(b, tflite.SparseIndexVector.Uint8Vector)
        tflite.DimensionMetadataAddArrayIndices(b, lists[1])
    return int(tflite.DimensionMetadataEnd(b))


def _quantization(b: flatbuffers.Builder, tensor: Tensor) -> int:
    scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
    zero_points = np.atleast_1d(np.asarray(tensor.zero_point, np.int64))
    if scales.size > 1 and zero_points.size == 1:
        zero_points = np.repeat(zero_points, scales.size)
    scale_vector, zero_vector = b.CreateNumpyVector(scales), b.CreateNumpyVector(zero_points)
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddScale(b, scale_vector)
    tflite.QuantizationParametersAddZeroPoint(b, zero_vector)
    tflite.QuantizationParametersAddQuantizedDimension(b, tensor.axis)
    return int(tflite.QuantizationParametersEnd(b))


def _operator(b: flatbuffers.Builder, code: int, op: Operator, inputs: list[int], outputs: list[int]) -> int:
    input_vector, output_vector = b.CreateNumpyVector(_ints(inputs)), b.CreateNumpyVector(_ints(outputs))
    table = OPTIONS.get(op.op, "".join(map(str.capitalize, op.op.replace("2D", "2d").split("_"))) + "Options")
    table = table.replace("2dOptions", "2DOptions")
    later = hasattr(tflite.BuiltinOptions2, table)
    kind = 0 if op.custom else getattr(tflite.BuiltinOptions2 if later else tflite.BuiltinOptions, table, 0)
    if op.options and not (kind or op.custom):
        raise ValueError(f"{op.op} has no options table")
    custom = b.CreateByteVector(flexbuffers.Dumps(op.options)) if op.custom and op.options else None
    options = _options(b, table, op.options) if kind else None
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, input_vector)
    tflite.OperatorAddOutputs(b, output_vector)
    if custom is not None:
        tflite.OperatorAddCustomOptions(b, custom)
    if options is not None:
        (tflite.OperatorAddBuiltinOptions2Type if later else tflite.OperatorAddBuiltinOptionsType)(b, kind)
        (tflite.OperatorAddBuiltinOptions2 if later else tflite.OperatorAddBuiltinOptions)(b, options)
    return int(tflite.OperatorEnd(b))


def _options(b: flatbuffers.Builder, table: str, fields: Mapping[str, Any]) -> int:
    module = importlib.import_module(f"tflite.{table}")
    values = {
        "".join(map(str.capitalize, name.split("_"))): b.CreateString(value)
        if name in ("shared_name", "name")
        else _enumerated(value)
        for name, value in fields.items()
    }
    vectors = {
        name: b.CreateByteVector(value) if isinstance(value, bytes) else b.CreateNumpyVector(_ints(value))
        for name, value in values.items()
        if isinstance(value, (bytes, tuple, list))
    }
    getattr(module, f"{table}Start")(b)
    for name, value in {**values, **vectors}.items():
        getattr(module, f"{table}Add{name}")(b, value)
    return int(getattr(module, f"{table}End")(b))


def _enumerated(value: Any) -> Any:
    """The number of a name such as SAME, RELU6, REFLECT or int32; anything else as it is."""
    if not isinstance(value, str):
        return value
    for names in (tflite.Padding, tflite.ActivationFunctionType, tflite.MirrorPadMode):
        if hasattr(names, value):
            return getattr(names, value)
    return TYPES[value]


def _code(b: flatbuffers.Builder, op: Operator, older: bool) -> int:
    custom = b.CreateString(op.custom) if op.custom else None
    number = tflite.BuiltinOperator.CUSTOM if op.custom else _number(op.op)
    tflite.OperatorCodeStart(b)
    if older:
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
    tflite.OperatorCodeAddBuiltinCode(b, number)
    tflite.OperatorCodeAddVersion(b, 1)
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    return int(tflite.OperatorCodeEnd(b))


def _number(op: str) -> int:
    return int(op) if re.fullmatch("[0-9]+", op) else int(getattr(tflite.BuiltinOperator, op))


def _bytes(b: flatbuffers.Builder, content: bytes) -> int:
    data = None
    if content:
        b.StartVector(1, len(content), 16)  # LiteRT's kernels expect arrays to be aligned
        b.head -= len(content)
        b.Bytes[b.head : b.head + len(content)] = content
        data = b.EndVector()
    tflite.BufferStart(b)
    if data is not None:
        tflite.BufferAddData(b, data)
    return int(tflite.BufferEnd(b))


def _offsets(b: flatbuffers.Builder, start: Any, offsets: Sequence[int]) -> int:
    start(b, len(offsets))
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _ints(values: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.asarray(list(values), np.int32)
