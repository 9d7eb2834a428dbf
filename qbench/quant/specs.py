"""The parts of a config: defaults for tensors and weights, rules, overrides."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self, TypeVar

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from qbench.ir.dtypes import DType, integer_range
from qbench.quant.calibrator_specs import CalibratorSpec, MaxSpec, MseSpec
from qbench.quant.rounding import Rounding
from qbench.quant.strict import PartialModel, StrictModel, fault

ActivationDType = Literal["uint8", "int8", "int16", "uint16"]
WeightDType = Literal["int8", "uint8", "int16", "uint16", "int4", "uint4"]
Mode = Literal["static", "dynamic", "weight_only"]
"""How a layer is quantized: "static": data and weights, by ranges that were measured before; "dynamic": its data by the
range that they have at run time; "weight_only": its weights are stored as integers and read as real numbers."""
WeightRounding = Literal["nearest", "sequential"]
"""To the nearest integer; or one layer after the other, each so that its output is the float network's as nearly as
can be, by second moments of its inputs over the calibration data."""
Blocks = Annotated[int, Field(ge=2)]
Granularity = Literal["channel", "tensor"] | Blocks

T = TypeVar("T")


def _in_float32(value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        stored = float(np.float32(value))
    if not 0 < stored < np.inf:
        raise ValueError(f"{value} is not a positive finite number in float32")
    return value


Positive = Annotated[float, AfterValidator(_in_float32)]
OneOrMore = T | Annotated[tuple[T, ...], Field(min_length=1)]


class TensorSpec(StrictModel):
    """How activations are quantized unless a rule or an override says otherwise: always per tensor."""

    dtype: ActivationDType = "uint8"
    symmetric: bool = False
    calibrator: CalibratorSpec = MseSpec()
    least_db: float | Literal["measured"] | None = None
    """Tensors of which 8 bits keep less than this stay in float, see `qbench.calibration.bulk`, and layers with weights
    read them in 16 bits; the parts of normalizations stay in float. "measured": as few as make the model good. None:
    all that can be is quantized."""


class WeightSpec(StrictModel):
    """How weights are quantized unless a rule or an override says otherwise."""

    dtype: WeightDType = "int8"
    symmetric: bool = True
    axis: Literal["channel"] | Blocks | None = "channel"
    """A scale for each output channel, or None (null): one for the whole tensor. A number: where a matrix is stored for
    a `weight_only` layer, a scale for every so many inputs of each channel; for each channel elsewhere."""
    narrow: bool = True
    """Leave the smallest integer unused, so that int8 weights lie in [-127, 127]."""
    calibrator: CalibratorSpec = MaxSpec()
    bias_correction: bool = True
    """Take out of each bias what rounding the weights adds on average over the calibration data."""
    equalize: bool = False
    """Share out the ranges of channels between layers that follow each other before anything is calibrated."""
    rounding: WeightRounding | Literal["measured"] = "nearest"
    """"measured": sequentially where that brings outputs nearer to the float model's and takes little time. What is
    given other integers by a rule or an override goes to the nearest.
    Where a session has no evaluation data, no weight is rounded on the last quarter of the calibration data."""


def matches(pattern: str, name: str) -> bool:
    """Whether a name is the pattern, or fits it as a glob (``*``, ``?``, ``[abc]``; case matters)."""
    return name == pattern or fnmatchcase(name, pattern)


class Rule(PartialModel):
    """Settings for all layers of an op, or whose name fits a pattern; where rules overlap the later one wins."""

    op: str | None = None
    """Glob on the op's name: ``nn.dense``, ``nn.*``."""
    name: str | None = None
    """Glob on the node's name or that of a tensor that it gives."""
    keep_float: bool | None = None
    mode: Mode | None = None
    rounding: Rounding | None = None
    dtype: ActivationDType | None = None
    symmetric: bool | None = None
    calibrator: CalibratorSpec | None = None
    weights_dtype: WeightDType | None = None
    weights_symmetric: bool | None = None
    weights_axis: Granularity | None = None
    weights_calibrator: CalibratorSpec | None = None
    weights_rounding: WeightRounding | None = None
    bias_correction: bool | None = None
    equalize: bool | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.op is None and self.name is None:
            raise fault((), "a rule needs op or name (op '*' is every layer)")
        if not self.model_dump().keys() - {"op", "name"}:
            raise fault((), "a rule needs at least one setting beside op and name")
        return self

    def matches(self, op: str | None, names: Iterable[str]) -> bool:
        """Whether the rule is for a layer of that op (None: a graph input) known by these names."""
        fits_op = self.op is None or (op is not None and matches(self.op, op))
        return fits_op and (self.name is None or any(matches(self.name, name) for name in names))


class TensorOverride(PartialModel):
    """The user's choice for one tensor; what is not said comes from rules and defaults."""

    threshold: OneOrMore[Positive] | None = None
    """Clip the range to [max(min, -t), min(max, t)]; a list gives one for each channel."""
    scale: OneOrMore[Positive] | None = None
    zero_point: OneOrMore[int] | None = None
    dtype: ActivationDType | WeightDType | None = None
    symmetric: bool | None = None
    calibrator: CalibratorSpec | None = None
    axis: Granularity | None = None
    """For a weight: a scale for each output channel, for every so many inputs of each (lists then go channel by
    channel), or one for the tensor."""
    reason: str | None = None
    """Why, where it is not the user's choice: rules then win."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        deciders = [name for name in ("threshold", "scale", "calibrator") if getattr(self, name) is not None]
        if len(deciders) > 1:
            raise fault((deciders[1],), f"{' and '.join(deciders)} each decide the range; give one of them")
        if self.zero_point is not None and self.symmetric:
            raise fault(("zero_point",), "a symmetric tensor has no zero point of its own; leave out one of the two")
        lengths = {len(v) for v in (self.scale, self.zero_point) if isinstance(v, tuple)}
        if len(lengths) > 1:
            raise fault(("zero_point",), "scale and zero_point differ in length")
        if self.axis == "tensor" and any(isinstance(v, tuple) for v in (self.threshold, self.scale, self.zero_point)):
            raise fault(("axis",), "lists are for each channel, so axis cannot be 'tensor'")
        complaint = self.zero_point_complaint(self.dtype) if self.dtype else None
        if complaint:
            raise fault(("zero_point",), complaint)
        return self

    def zero_point_complaint(self, *dtypes: DType) -> str | None:
        """What is wrong with a zero point that is in the range of none of these types; None where it fits one."""
        ranges = {dtype: integer_range(dtype) for dtype in dtypes}
        given = self.zero_point if isinstance(self.zero_point, tuple) else (self.zero_point,)
        for value in given:
            if value is not None and not any(low <= value <= high for low, high in ranges.values()):
                allowed = ", ".join(f"{dtype} [{low}, {high}]" for dtype, (low, high) in ranges.items())
                return f"{value} is outside {allowed}"
        return None


class LayerOverride(PartialModel):
    """The user's choice for one layer (a node of the prepared graph)."""

    keep_float: bool | None = None
    """False: in integers although a default says otherwise, layer and RMS normalization too."""
    mode: Mode | None = None
    rounding: Rounding | None = None
    weights_rounding: WeightRounding | None = None
    bias_correction: bool | None = None
    equalize: bool | None = None
    """Share out the ranges of its outputs with the layer that alone reads them."""
    reason: str | None = None
    """Why, where it is not the user's choice."""
