"""What the qnn ops share: each says which integer op it stands for, and that op gives it its types and meaning.

A qnn op knows scales (the qparams of the values it reads and makes); an integer op knows only integers. `lower` is the
one place where scales turn into zero points, mantissas, shifts and tables; legalize puts its answer into the graph.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qbench.errors import GraphError
from qbench.ir.dtypes import dtype_of
from qbench.ir.frozen import Constant
from qbench.ir.op import Array, Op
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.rules import InternalOp
from qbench.quant.semantics import Semantics


class Lowered(NamedTuple):
    """An integer op with its attributes, and the constants it takes after the qnn op's own inputs."""

    op: Op
    constants: Mapping[str, Constant]

    @classmethod
    def of(cls, op: Op, **constants: Array) -> Lowered:
        """An integer op and the arrays of its constants."""
        return cls(op, {name: Constant(array) for name, array in constants.items()})


@dataclass(frozen=True, kw_only=True)
class QnnOp(InternalOp):
    """Base of the ops that `legalize` lowers."""

    @abstractmethod
    def lower(self, *types: TensorType) -> Lowered:
        """The integer op that this one stands for, given the types of its inputs."""

    def lowered(self, types: tuple[TensorType, ...]) -> Lowered:
        """What `lower` gives, the last answer remembered."""
        known: tuple[object, Lowered] | None = vars(self).get("_lowered")
        if known is not None and known[0] == types:
            return known[1]
        lowered = self.lower(*types)
        vars(self)["_lowered"] = (types, lowered)
        return lowered

    def infer(self, *types: TensorType) -> TensorType | tuple[TensorType, ...]:
        op, constants = self.lowered(types)
        extra = [constant.type for constant in constants.values()]
        inferred = op.infer_all((*types, *extra))
        for made, q in zip(inferred, self.qout, strict=True):
            if q is not None and q.dtype != made.dtype:
                raise GraphError(f"{self.name} makes {made.dtype}, but its qparams are of {q.dtype}")
        return inferred

    def compute(self, *arrays: Array) -> Array | tuple[Array, ...]:
        op, constants = self.lowered(tuple(TensorType(array.shape, dtype_of(array.dtype)) for array in arrays))
        return op.compute(*arrays, *(constant.array for constant in constants.values()))

    def made(self, source: QParams, asked: QParams) -> QParams:
        """What its integers mean where its kernel makes those of one scale alone; else, or near enough, as asked."""
        return asked

    def q_in(self, index: int) -> QParams:
        """qparams of an input; GraphError where it has none."""
        return self._known(self.qin, index, "input")

    def q_out(self) -> QParams:
        """qparams of the output; GraphError where it has none."""
        return self._known(self.qout, 0, "output")

    def _known(self, all_qparams: tuple[QParams | None, ...], index: int, what: str) -> QParams:
        q = all_qparams[index] if index < len(all_qparams) else None
        if q is None:
            raise GraphError(f"{what} {index} of {self.name} has no qparams")
        return q

    def one_zero_point(self, index: int) -> int:
        """The zero point of an input that must be quantized per tensor."""
        q = self.q_in(index)
        if q.axis is not None:
            raise GraphError(
                f"input {index} ({self.operands[min(index, len(self.operands) - 1)]}) of {self.name} "
                f"must have one scale, not one per index of axis {q.axis}"
            )
        return q.zero_points[0]


def no_arithmetic(op: QnnOp, semantics: Semantics, instead: str) -> GraphError:
    """The error of an op that a runtime has no integer arithmetic for."""
    return GraphError(f"{op.name} has no arithmetic of its own in {semantics}: {instead} stand for it there")
