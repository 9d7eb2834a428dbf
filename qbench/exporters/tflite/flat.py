"""The bytes of a TFLite file: tables of tensors and operators, put together by the tflite package's own builder."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.errors import ExportError
from qbench.ir.qparams import QParams

Array = NDArray[Any]

_TYPES = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "int8": "INT8",
    "uint8": "UINT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
}
_LARGEST = 2**31 - 1
_VERSIONS = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), 3),
    "FULLY_CONNECTED": 4,
    "BROADCAST_TO": 3,
    **dict.fromkeys(
        ("ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D", "CONCATENATION", "SOFTMAX", "LOGISTIC", "TANH", "MEAN"),
        2,
    ),
    **dict.fromkeys(("PAD", "PADV2", "DEQUANTIZE", "TRANSPOSE", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "GATHER"), 2),
}
"""Versions since which operators take int8."""
_OLDEST = {"BROADCAST_TO": 2}
"""Versions that LiteRT has first, where it is not 1."""


@dataclass
class Tensor:
    """A tensor of the file.

    Parameters
    ----------
    shape
        -1 where a size is open.
    data
        Elements of a constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    q: QParams | None = None
    data: Array | None = None


@dataclass(frozen=True)
class Operator:
    """An operator of the file: tensors by number, -1 for one that is absent."""

    code: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    table: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def serialized(
    name: str, tensors: Sequence[Tensor], operators: Sequence[Operator], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    """The bytes of a file with one subgraph.

    Raises
    ------
    ExportError
        The extra ``tflite`` is not installed, or the file would be too large for its format.
    """
    size = sum(tensor.data.nbytes for tensor in tensors if tensor.data is not None)
    if size > _LARGEST - (1 << 20):
        raise ExportError(f"the TFLite model has {size} bytes of constants; a file may have {_LARGEST}")
    return _File().bytes(name, tensors, operators, inputs, outputs)


class _File:
    def __init__(self) -> None:
        try:
            self._fb: Any = importlib.import_module("flatbuffers")
            self._tf: Any = importlib.import_module("tflite")
        except ImportError as error:
            raise ExportError(
                f"TFLite files need the extra 'tflite': pip install 'qbench[tflite]' ({error})"
            ) from error
        self._b: Any = self._fb.Builder(1 << 16)

    def bytes(
        self,
        name: str,
        tensors: Sequence[Tensor],
        operators: Sequence[Operator],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> bytes:
        b, tf = self._b, self._tf
        buffers = [self._buffer(None)]
        made: list[int] = []
        for tensor in tensors:
            if tensor.data is not None:
                buffers.append(self._buffer(tensor.data))
            made.append(self._tensor(tensor, len(buffers) - 1 if tensor.data is not None else 0))
        tensor_vector = self._vector(tf.SubGraphStartTensorsVector, made)
        used = {op.code: self._is_int8(tensors, op) for op in operators}
        for op in operators:
            used[op.code] = used[op.code] or self._is_int8(tensors, op)
        codes = list(used)
        ops = [self._operator(codes.index(op.code), op) for op in operators]
        op_vector = self._vector(tf.SubGraphStartOperatorsVector, ops)
        ends = [b.CreateNumpyVector(_int32(numbers)) for numbers in (inputs, outputs)]
        title = b.CreateString(name)
        tf.SubGraphStart(b)
        tf.SubGraphAddTensors(b, tensor_vector)
        tf.SubGraphAddInputs(b, ends[0])
        tf.SubGraphAddOutputs(b, ends[1])
        tf.SubGraphAddOperators(b, op_vector)
        tf.SubGraphAddName(b, title)
        subgraphs = self._vector(tf.ModelStartSubgraphsVector, [tf.SubGraphEnd(b)])
        code_vector = self._vector(tf.ModelStartOperatorCodesVector, [self._code(*item) for item in used.items()])
        buffer_vector = self._vector(tf.ModelStartBuffersVector, buffers)
        maker = b.CreateString("qbench")
        tf.ModelStart(b)
        tf.ModelAddVersion(b, 3)
        tf.ModelAddOperatorCodes(b, code_vector)
        tf.ModelAddSubgraphs(b, subgraphs)
        tf.ModelAddBuffers(b, buffer_vector)
        tf.ModelAddDescription(b, maker)
        b.Finish(tf.ModelEnd(b), b"TFL3")
        return bytes(b.Output())

    @staticmethod
    def _is_int8(tensors: Sequence[Tensor], op: Operator) -> bool:
        return any(tensors[number].dtype == "int8" for number in op.inputs if number >= 0)

    def _tensor(self, tensor: Tensor, buffer: int) -> int:
        b, tf = self._b, self._tf
        name = b.CreateString(tensor.name)
        shape = b.CreateNumpyVector(_int32([max(size, 1) if size < 0 else size for size in tensor.shape]))
        signature = b.CreateNumpyVector(_int32(tensor.shape)) if -1 in tensor.shape else None
        quantization = None if tensor.q is None else self._quantization(tensor.q)
        tf.TensorStart(b)
        tf.TensorAddShape(b, shape)
        tf.TensorAddType(b, getattr(tf.TensorType, _TYPES[tensor.dtype]))
        tf.TensorAddBuffer(b, buffer)
        tf.TensorAddName(b, name)
        if quantization is not None:
            tf.TensorAddQuantization(b, quantization)
        if signature is not None:
            tf.TensorAddShapeSignature(b, signature)
        return int(tf.TensorEnd(b))

    def _quantization(self, q: QParams) -> int:
        b, tf = self._b, self._tf
        scales = b.CreateNumpyVector(np.asarray(q.scales, np.float32))
        zero_points = b.CreateNumpyVector(np.asarray(q.zero_points, np.int64))
        tf.QuantizationParametersStart(b)
        tf.QuantizationParametersAddScale(b, scales)
        tf.QuantizationParametersAddZeroPoint(b, zero_points)
        tf.QuantizationParametersAddQuantizedDimension(b, q.axis or 0)
        return int(tf.QuantizationParametersEnd(b))

    def _operator(self, code: int, op: Operator) -> int:
        b, tf = self._b, self._tf
        ends = [b.CreateNumpyVector(_int32(numbers)) for numbers in (op.inputs, op.outputs)]
        options = self._options(op) if op.table else None
        tf.OperatorStart(b)
        tf.OperatorAddOpcodeIndex(b, code)
        tf.OperatorAddInputs(b, ends[0])
        tf.OperatorAddOutputs(b, ends[1])
        if options is not None:
            tf.OperatorAddBuiltinOptionsType(b, getattr(tf.BuiltinOptions, op.table))
            tf.OperatorAddBuiltinOptions(b, options)
        return int(tf.OperatorEnd(b))

    def _options(self, op: Operator) -> int:
        b, tf = self._b, importlib.import_module(f"tflite.{op.table}")
        values = dict(op.options)
        lists = {key: cast("Sequence[int]", value) for key, value in values.items() if isinstance(value, (tuple, list))}
        vectors = {key: b.CreateNumpyVector(_int32(numbers)) for key, numbers in lists.items()}
        getattr(tf, f"{op.table}Start")(b)
        for key, value in {**values, **vectors}.items():
            camel = "".join(map(str.capitalize, key.split("_")))
            getattr(tf, f"{op.table}Add{camel}")(b, self._enumerated(value))
        return int(getattr(tf, f"{op.table}End")(b))

    def _enumerated(self, value: Any) -> Any:
        """The number of a name such as SAME, RELU6, REFLECT or int32; anything else as it is."""
        if not isinstance(value, str):
            return value
        for names in (self._tf.Padding, self._tf.ActivationFunctionType, self._tf.MirrorPadMode):
            if hasattr(names, value):
                return getattr(names, value)
        return getattr(self._tf.TensorType, _TYPES[value])

    def _code(self, code: str, int8: bool) -> int:
        b, tf = self._b, self._tf
        number = int(getattr(tf.BuiltinOperator, code))
        tf.OperatorCodeStart(b)
        tf.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
        tf.OperatorCodeAddBuiltinCode(b, number)
        tf.OperatorCodeAddVersion(b, (_VERSIONS if int8 else _OLDEST).get(code, 1))
        return int(tf.OperatorCodeEnd(b))

    def _buffer(self, data: Array | None) -> int:
        b, tf = self._b, self._tf
        content = b"" if data is None else np.ascontiguousarray(data).tobytes()
        vector = None
        if content:
            b.StartVector(1, len(content), 16)  # LiteRT's kernels expect arrays to be aligned
            b.head -= len(content)
            b.Bytes[b.head : b.head + len(content)] = content
            vector = b.EndVector()
        tf.BufferStart(b)
        if vector is not None:
            tf.BufferAddData(b, vector)
        return int(tf.BufferEnd(b))

    def _vector(self, start: Any, offsets: Sequence[int]) -> int:
        start(self._b, len(offsets))
        for offset in reversed(offsets):
            self._b.PrependUOffsetTRelative(offset)
        return int(self._b.EndVector())


def _int32(numbers: Sequence[int]) -> Array:
    return np.asarray(list(numbers), np.int32)
