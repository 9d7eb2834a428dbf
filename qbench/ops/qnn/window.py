"""Quantized averages, functions by table, and bilinear resizing."""

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import OPS, Epilogue, Op, register
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim, TensorType
from qbench.ops.float.pool import Windowed
from qbench.ops.integer.prelu import IntegerPrelu, prelu_multipliers
from qbench.ops.integer.table import IntegerTable
from qbench.ops.integer.window import IntegerResizeOpen, IntegerSum, IntegerSumPool2d
from qbench.ops.numeric.exact import Accumulator
from qbench.ops.numeric.interpolation import Coordinates
from qbench.ops.numeric.windows import Pair
from qbench.ops.onnx.functions import FUNCTIONS
from qbench.ops.qnn.base import Lowered, QnnOp
from qbench.ops.tflite.resize import tflite_resize
from qbench.ops.tflite.unary import TFLITE_FUNCTIONS, tflite_table
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.semantics import Semantics


@register
class QnnSum(QnnOp):
    """Sum over axes into an accumulator whose scale already holds the division by the number of elements."""

    name = "qnn.sum"
    form_of = "mean"
    absorbs = (Epilogue.REQUANTIZE, Epilogue.CLAMP)
    axes: tuple[int, ...]
    keepdims: bool = True
    accumulator: Accumulator = "int32"

    def lower(self, *types: TensorType) -> Lowered:
        return Lowered(self.as_op(IntegerSum, data_zero_point=self.one_zero_point(0)), {})


@register
class QnnSumPool2d(Windowed, QnnOp):
    """Sum over windows into an accumulator whose scale already holds the division by `denominator`."""

    name = "qnn.sum_pool2d"
    form_of = "nn.avg_pool2d"
    absorbs = (Epilogue.REQUANTIZE, Epilogue.CLAMP)
    strides: Pair = (1, 1)
    count_include_pad: bool = False
    denominator: int
    accumulator: Accumulator = "int32"

    def lower(self, *types: TensorType) -> Lowered:
        return Lowered(self.as_op(IntegerSumPool2d, data_zero_point=self.one_zero_point(0)), {})


@register
class QnnUnary(QnnOp):
    """A function of one element, as a table over all integers of the input's type.

    The table is filled with the function's own float meaning: dequantize each integer, apply, quantize. Integers
    outside the function's domain, such as negative ones under a square root, get the entry of the nearest one in it.
    PReLU of 16 bits is computed in fixed point: tables of all channels would fill more memory than weights do. Only
    onnxruntime's has them still, as its integers are those of float32.
    """

    name = "qnn.unary"
    elementwise = True
    function: str
    """Name of the float op."""
    parameters: tuple[tuple[str, float | str], ...] = ()
    """The float op's attributes."""
    slopes: tuple[float, ...] = ()
    """For nn.prelu: the slope of each channel."""
    axis: int | None = None
    """For nn.prelu with several slopes: the channels' axis."""
    constant: float | None = None
    """For a function of two numbers, such as multiply: the other one."""
    constant_first: bool = False
    """Whether that is the left one."""
    semantics: Semantics = "tvm"
    """``tflite`` fills the table as its kernel computes the function, which may be in integers; ``onnx`` with the
    function as onnxruntime approximates it."""

    @property
    def float_form(self) -> str:
        return self.function

    def lower(self, *types: TensorType) -> Lowered:
        source, target = self.q_in(0), self.q_out()
        if self.semantics == "tflite" and self.function in TFLITE_FUNCTIONS and not self.slopes:
            self.one_zero_point(0)
            table = tflite_table(self.function, dict(self.parameters), source, target)
            return Lowered.of(IntegerTable(), table=table)
        if self.function not in OPS:
            raise GraphError(f"there is no op {self.function} to make a table of")
        if self.slopes and self.semantics != "onnx" and numpy_dtype(source.dtype).itemsize > 1:
            prelu = IntegerPrelu(
                dtype=target.dtype,
                data_zero_point=self.one_zero_point(0),
                zero_point=target.zero_points[0],
                axis=self.axis,
            )
            slopes = np.asarray(self.slopes, np.float32)
            mantissa, shift = prelu_multipliers(source.scales[0] / target.scales[0], slopes)
            return Lowered.of(prelu, mantissa=mantissa, shift=shift)
        codes = np.arange(source.qmin, source.qmax + 1).astype(numpy_dtype(source.dtype))
        reals = dequantize(codes, QParams(source.scale, self.one_zero_point(0), source.dtype))
        table = quantize(_within_domain(self._values(reals)), target)
        return Lowered.of(IntegerTable(axis=self.axis), table=table)

    def _values(self, reals: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.slopes:
            slopes = np.asarray(self.slopes, np.float32).reshape(-1, 1)
            rows = np.where(reals >= 0, reals, reals * slopes)
            return rows if self.axis is not None else rows[0]
        if self.semantics == "onnx" and self.function in FUNCTIONS:
            return FUNCTIONS[self.function](reals)
        function: Op = OPS[self.function](**dict(self.parameters))  # pyright: ignore[reportArgumentType] checked by the float op when the graph was made
        operands: tuple[NDArray[np.float32], ...] = (reals,)
        if self.constant is not None:
            operands = (reals, np.asarray(self.constant, np.float32))[:: -1 if self.constant_first else 1]
        return np.asarray(function.compute_all(operands)[0], np.float32)


def _within_domain(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values at ascending arguments, those that are NaN at either end replaced by the first or last that is not."""
    defined = np.flatnonzero(~np.isnan(values)) if values.ndim == 1 else np.empty(0, np.intp)
    return values[np.arange(values.size).clip(defined[0], defined[-1])] if defined.size else values


@register
class QnnResizeLinear(QnnOp):
    """Bilinear resizing that keeps the qparams of its input."""

    name = "qnn.resize_linear"
    form_of = "image.resize2d"
    size: tuple[Dim, Dim]
    coordinate_transformation_mode: Coordinates = "half_pixel"
    scales: tuple[float, float] | None = None
    ties_to_even: bool = False
    toward_zero: bool = False
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        height, width = types[0].shape[2:]
        made = [size for size in self.size if isinstance(size, int)]
        is_known = isinstance(height, int) and isinstance(width, int) and len(made) == len(self.size)
        if self.semantics == "tflite":
            if not is_known:
                raise GraphError(f"TFLite's resizing needs a known height and width, not {types[0]} to {self.size}")
            integer, constants = tflite_resize(types[0], (made[0], made[1]), self.coordinate_transformation_mode)
            return Lowered.of(integer, **constants)
        op = self.as_op(IntegerResizeOpen, zero_point=self.one_zero_point(0))
        if not is_known:
            return Lowered(op, {})
        rows, columns = op.tables((int(height), int(width)))
        return Lowered.of(op.linear, rows=rows, columns=columns)
