"""Calibrators as a config names them: a name and parameters. What they compute is in `qbench.calibration`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from qbench.errors import nearest, shown
from qbench.quant.strict import StrictModel


class MaxSpec(StrictModel):
    """The whole range that was seen."""

    name: Literal["max"] = "max"


class PercentileSpec(StrictModel):
    """The smallest threshold with at least that share (in percent) of the values within it."""

    name: Literal["percentile"] = "percentile"
    percentile: Annotated[float, Field(gt=0, le=100)] = 99.99


class MseSpec(StrictModel):
    """The threshold with the smallest mean squared error of the quantized values."""

    name: Literal["mse"] = "mse"


class KlSpec(StrictModel):
    """The threshold whose quantized histogram diverges least from the original.

    The published algorithm leaves open what these fields say, and tools differ in each of them; the defaults are
    qbench's own, "kl_mxnet" and "kl_nvidia" are those tools'.
    """

    name: Literal["kl"] = "kl"
    levels: Annotated[int, Field(ge=2, le=65536)] | None = None
    """Number of quantized levels that candidates are merged into; None: what suits the dtype."""
    layout: Literal["cells", "two_sided", "one_sided"] = "cells"
    """Bins in the cells of each candidate's grid, of both signs (MXNet), or of absolute values (NVIDIA)."""
    zero_bin: Literal["without_zeros", "keep", "copy_next", "drop"] = "without_zeros"
    """The bin at zero: without exact zeros, kept, given its neighbour's count (NVIDIA), or emptied (TensorRT)."""
    folding: bool = True
    """Add the counts beyond a candidate threshold to its edge bins, rather than forget them."""
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    """Count moved to each empty bin before the divergence is taken."""
    tie: Literal["first", "last"] = "last"
    """Which of several equally good candidates wins."""


class PowerOfTwoSpec(StrictModel):
    """The whole range, its scale raised to a power of two."""

    name: Literal["power_of_two"] = "power_of_two"


def _with_scales(threshold: float) -> float:
    """A threshold whose scales are float32, in 16 bits too."""
    if not 1e-37 <= threshold <= 3e38:
        raise ValueError(f"{threshold} gives no scale in float32: it must be from 1e-37 to 3e38")
    return threshold


class GlobalScaleSpec(StrictModel):
    """The same threshold for every tensor; TVM's default is 8."""

    name: Literal["global_scale"] = "global_scale"
    threshold: Annotated[float, AfterValidator(_with_scales)] = 8.0


class RegisteredSpec(StrictModel):
    """The user's own function, by the name that it was registered under."""

    name: Literal["registered"] = "registered"
    callable: Annotated[str, Field(min_length=1)]


CALIBRATOR_PRESETS: Mapping[str, dict[str, Any]] = {
    **{name: {"name": name} for name in ("max", "percentile", "mse", "kl", "power_of_two", "global_scale")},
    "kl_mxnet": {"name": "kl", "layout": "two_sided", "zero_bin": "keep", "tie": "first"},
    "kl_nvidia": {"name": "kl", "layout": "one_sided", "zero_bin": "copy_next", "smoothing": 0.0},
}
"""What a bare string in a config stands for."""


def _from_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in CALIBRATOR_PRESETS:
        known = f"{nearest(value, CALIBRATOR_PRESETS)} (known: {', '.join(CALIBRATOR_PRESETS)})"
        own = 'your own function is {"name": "registered", "callable": NAME}'
        raise ValueError(f"unknown calibrator {shown(value)}{known}; {own}")
    return CALIBRATOR_PRESETS[value]


CalibratorSpec = Annotated[
    Annotated[
        MaxSpec | PercentileSpec | MseSpec | KlSpec | PowerOfTwoSpec | GlobalScaleSpec | RegisteredSpec,
        Field(discriminator="name"),
    ],
    BeforeValidator(_from_name),
]
"""One of the calibrators; in JSON an object with `name`, or a bare name for its defaults."""
