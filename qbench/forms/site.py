"""What a form is made from: a float node, the integers that it reads, what is fused behind it, and whose arithmetic."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qbench.errors import shown
from qbench.forms.sums import quantized_bias
from qbench.ir.graph import Attr, Node
from qbench.ir.op import Array, Op, bind
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.quant.arithmetic import Ties
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import Semantics, rounding_of

EIGHT_BITS = ("int8", "uint8")
"""Types that the integer kernels of onnxruntime and TFLite share."""

_LARGEST = float(np.finfo(np.float32).max)
_CLOSE = 1e-3
"""A bias counts as being in units of the accumulator's scale if its scale differs by less: it was made by rounding."""


class NoForm(Exception):
    """Why a node has no integer form where it stands."""


@dataclass(frozen=True)
class Arithmetic:
    """Whose arithmetic the integers get.

    Parameters
    ----------
    semantics
        A runtime; None rounds everything in one way. That of ``onnx`` has sums, products and softmax as the 8-bit
        kernels compute them that onnxruntime's default optimizations put in place of dequantize, op, quantize.
    rounding
        That way.
    from_file
        For ``tflite``: an operator of a TFLite file, which may join integers of several scales, sum them, and have
        slopes that are integers. For other graphs these are a few ops each, or stay in real numbers.
    """

    semantics: Semantics | None = None
    rounding: Rounding = "tflite_single"
    from_file: bool = False

    def after(self, op: str) -> Rounding:
        """How what a qnn op makes is rounded."""
        return self.rounding if self.semantics is None else rounding_of(self.semantics, op)

    @property
    def ties(self) -> Ties:
        """How real numbers become integers."""
        return "away" if self.semantics == "tflite" else "even"

    @property
    def spoken(self) -> dict[str, Attr]:
        """The attribute of an op that says whose arithmetic it has, where that is not the default."""
        return {} if self.semantics in (None, "tvm") else {"semantics": self.semantics}


@dataclass(frozen=True, eq=False)
class Operand:
    """What a float node reads.

    Parameters
    ----------
    name
        In the float graph, for messages.
    type
        Its shape, and the dtype of its integers.
    q
        What its integers mean; None for real numbers.
    array
        The integers of a constant, or its real numbers where it is not quantized.
    """

    name: str
    type: TensorType
    q: QParams | None = None
    array: Array | None = None


@dataclass(frozen=True, eq=False)
class Bias:
    """A constant per channel that is added to a sum of products.

    Parameters
    ----------
    real
        In real numbers; None where only its integers are known, in units of the sums.
    integers, q
        How a file stores it, and what that means (None: in units of the sums, whatever they are).
    attrs
        Of the bias_add.
    """

    real: Array | None
    integers: Array | None = None
    q: QParams | None = None
    attrs: tuple[tuple[str, Attr], ...] = ()

    def in_units_of(self, sums: QParams) -> NDArray[np.int64]:
        """The integers that are added to sums of this scale: the stored ones where they are in its units."""
        if self.integers is not None and (self.q is None or self._fits(self.q, sums)):
            return self.integers.astype(np.int64)
        assert self.real is not None
        return quantized_bias(self.real, sums)

    @staticmethod
    def _fits(q: QParams, sums: QParams) -> bool:
        if any(q.zero_points) or len(q.scales) not in (1, len(sums.scales)):
            return False
        return bool(np.all(np.abs(np.asarray(q.scales) / np.asarray(sums.scales) - 1) < _CLOSE))


@dataclass(frozen=True, eq=False)
class Site:
    """A float node on its way to integers.

    Parameters
    ----------
    node
        The float node; its op's quantization rule, or name, decides which form it gets.
    operands
        One for each of its inputs.
    rank
        Number of dimensions of its (first) result.
    targets
        What the result is quantized to behind the last clamp: once, several times, or not at all.
    arithmetic
        Whose.
    bias, clamps
        What is fused behind it.
    """

    node: Node
    operands: tuple[Operand, ...]
    rank: int
    targets: tuple[QParams, ...]
    arithmetic: Arithmetic
    bias: Bias | None = None
    clamps: tuple[Node, ...] = ()

    @cached_property
    def op(self) -> Op:
        """The declaration of the float node."""
        return bind(self.node)

    @property
    def semantics(self) -> Semantics | None:
        """Whose arithmetic, if a runtime's."""
        return self.arithmetic.semantics

    def integers(self, index: int) -> QParams:
        """qparams of an operand; NoForm where it is real."""
        operand = self.operands[index]
        if operand.q is None:
            what = "input" if operand.array is None else "constant"
            raise NoForm(f"neighbour of float: its {what} {shown(operand.name)} is not quantized")
        return operand.q

    def per_tensor(self, index: int) -> QParams:
        """qparams of an operand; NoForm where it is real or has a scale per channel."""
        q = self.integers(index)
        if q.axis is not None:
            raise NoForm(f"unsupported: {shown(self.operands[index].name)} has a scale for each index of axis {q.axis}")
        return q

    def all_per_tensor(self) -> tuple[QParams, ...]:
        """As `per_tensor`, for all operands."""
        return tuple(self.per_tensor(index) for index in range(len(self.operands)))

    def need_targets(self) -> None:
        """Raise NoForm where the result is read as real numbers."""
        if not self.targets:
            value = self.clamps[-1].output if self.clamps else self.node.output
            raise NoForm(f"neighbour of float: its result {shown(value)} is read as real numbers")

    def need_ratios(self, *sources: QParams) -> None:
        """Raise NoForm where integers of these scales cannot be brought to a target: a runtime's float32 overflows."""
        if self.semantics is None:
            return
        for source, target in ((source, target) for source in sources for target in self.targets):
            largest = max(source.scales) / min(target.scales)
            if max(largest, *source.scales) > _LARGEST:
                raise NoForm(f"unsupported: scales as far apart as a factor of {largest:.3g}")
