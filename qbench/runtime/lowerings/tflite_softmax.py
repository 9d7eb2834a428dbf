"""TFLite's softmax of 8 and 16 bits, and its logarithm of 8."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.op import Array, bind
from qbench.kernels.levels import Level
from qbench.kernels.tflite_softmax import (
    tflite_log_softmax_kernel,
    tflite_softmax_int16_kernel,
    tflite_softmax_kernel,
)
from qbench.ops.tflite.log_softmax import TfliteLogSoftmax
from qbench.ops.tflite.softmax import TfliteSoftmax, TfliteSoftmaxInt16, reciprocals
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.lowering import Refused, Site, lowers
from qbench.runtime.lowerings.rows import RowsLowering
from qbench.runtime.step import Instruction


class _Kind(NamedTuple):
    """What is known of a softmax: its types, what the exponential of 0 is at least, and how long rows may be.

    Their sums then have a reciprocal or a logarithm, and fit into 32 bits.
    """

    dtypes: frozenset[DType]
    least: int
    longest: int


_EIGHT: frozenset[DType] = frozenset({"int8", "uint8"})
_KINDS = {
    TfliteSoftmax: _Kind(_EIGHT, 2**12, 2**12 - 1),
    TfliteSoftmaxInt16: _Kind(frozenset({"int16"}), 2, 2**16 - 1),
    TfliteLogSoftmax: _Kind(_EIGHT, 2**31 - 2**11, 2**12 - 1),
}


@lowers(*_KINDS)
class TfliteSoftmaxLowering(RowsLowering):
    """By a table of exponentials."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        op = bind(step.head)
        assert isinstance(op, (TfliteSoftmax, TfliteSoftmaxInt16, TfliteLogSoftmax))
        self.op, kind = op, _KINDS[type(op)]
        super().__init__(step, graph, level, op.axis)
        if op.dtype not in kind.dtypes:
            raise Refused("its result has other bits")
        if any(name not in graph.constants for name in step.head.inputs[1:]):
            raise Refused("its tables are no constants")
        self.table, *self.more = (_table(graph, name) for name in step.head.inputs[1:])
        if self.table.min() < 0 or self.table[0] < kind.least:
            raise Refused("its table is none of exponentials: their sum could be 0")
        if self.count > kind.longest:
            raise Refused("sums of its rows could leave 32 bits")
        if isinstance(op, TfliteLogSoftmax) and op.shift > 0:
            raise Refused("its smallest result is not found by a right shift")

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, table = self.op, site.constant(self.table)
        if isinstance(op, TfliteSoftmax):
            return self.on_rows(site, tflite_softmax_kernel(), table=table)
        if isinstance(op, TfliteSoftmaxInt16):
            known = site.constant(reciprocals().astype(np.int32))
            return self.on_rows(site, tflite_softmax_int16_kernel(), table=table, reciprocals=known)
        return self.on_rows(
            site, tflite_log_softmax_kernel(), exponentials=table, arguments=site.constant(self.more[0]),
            limit=op.count, mantissa=op.mantissa, right=-op.shift,
        )  # fmt: skip


def _table(graph: Graph, name: str) -> Array:
    return np.ascontiguousarray(graph.constants[name].array)
