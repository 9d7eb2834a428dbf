"""Quantized concatenation of tensors whose qparams differ."""

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.op import register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.integer.requantize import saturate
from qbench.ops.integer.table import ConcatenateTables
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.qnn.requantize import real_table
from qbench.quant.arithmetic import round_half_away
from qbench.quant.semantics import Semantics


@register
class QnnConcatenate(QnnOp):
    """8-bit inputs brought to the qparams of the output, then joined.

    ``tvm`` has none of its own: its form is requantizes and a concatenate.
    """

    name = "qnn.concatenate"
    form_of = "concatenate"
    operands = ("*data",)
    axis: int
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics == "tvm":
            raise no_arithmetic(self, self.semantics, "qnn.requantize and concatenate")
        target, table = self.q_out(), _tflite_table if self.semantics == "tflite" else real_table
        tables = {f"table_{i}": Constant(table(self.q_in(i), target)) for i in range(len(types))}
        return Lowered(ConcatenateTables(axis=self.axis), tables)


def _tflite_table(source: QParams, target: QParams) -> NDArray[np.generic]:
    """What each integer becomes: ``round(x * scale + bias) + zero_point`` in float32, ties away from zero."""
    codes = np.arange(source.qmin, source.qmax + 1)
    if source == target:
        return codes.astype(numpy_dtype(source.dtype))
    scale = np.float32(source.scales[0]) * (np.float32(1) / np.float32(target.scales[0]))
    bias = np.float32(-source.zero_points[0]) * scale
    steps = round_half_away(codes.astype(np.float32) * scale + bias).astype(np.float64)
    return saturate(steps + target.zero_points[0], target.dtype)
