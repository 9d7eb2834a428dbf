"""Layer and RMS normalization of integers."""

from dataclasses import dataclass

import numpy as np

from qbench.ir.op import register
from qbench.ir.types import TensorType, numel
from qbench.ops.integer.normalize import Normalize
from qbench.ops.qnn.base import Lowered, QnnOp

_MOST = 2**60


@dataclass(frozen=True, kw_only=True)
class _Normalization(QnnOp):
    axis: int = -1
    epsilon: float = 1e-5

    def units(self, gamma: TensorType) -> int:
        """Epsilon as an integer: all other scales cancel."""
        return min(round(self.epsilon * (numel(gamma.shape) / self.q_in(0).scales[0]) ** 2), _MOST)


@register
class QnnLayerNorm(_Normalization):
    """Integers less their mean, over the root of their variance, times `gamma`, plus `beta`: an accumulator."""

    name = "qnn.layer_norm"
    form_of = "nn.layer_norm"
    operands = ("data", "gamma", "beta")

    def lower(self, *types: TensorType) -> Lowered:
        return Lowered(Normalize(axis=self.axis, epsilon=self.units(types[1])), {})


@register
class QnnRMSNorm(_Normalization):
    """Integers over the root of the mean of their squares, times `gamma`: an accumulator."""

    name = "qnn.rms_norm"
    form_of = "nn.rms_norm"
    operands = ("data", "gamma")

    def lower(self, *types: TensorType) -> Lowered:
        gamma, zero_point = types[1], self.one_zero_point(0)
        op = Normalize(axis=self.axis, centred=False, zero_point=zero_point, epsilon=self.units(gamma))
        return Lowered.of(op, beta=np.zeros([dim for dim in gamma.shape if isinstance(dim, int)], np.int32))
