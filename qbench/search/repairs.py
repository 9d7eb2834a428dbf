"""Repairs: edits of a config that may give quality back, each with where it acts and why it is thought to help."""

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from qbench.errors import listed
from qbench.quant.calibrator_specs import MaxSpec, MseSpec, PercentileSpec
from qbench.quant.config import QuantConfig

_USUAL = MseSpec()


@dataclass(frozen=True)
class Repair(ABC):
    """One edit of a config; equal repairs are the same edit.

    Parameters
    ----------
    why
        Why it is thought to help, in words.
    where
        Names of the layers or tensors that it is about; empty: all that no rule or override speaks of.
    """

    what: ClassVar[str]
    kind: ClassVar[Literal["layers", "tensors"]]
    """What it overrides."""
    setting: ClassVar[str]
    default: ClassVar[str | None] = None
    """Path of the setting of the whole model."""

    why: str
    where: tuple[str, ...] = ()

    @property
    def value(self) -> Any:
        """What the setting becomes."""
        return True

    def apply(self, config: QuantConfig) -> QuantConfig:
        """The config after the repair."""
        if self.where or self.default is None:
            return config.override_many(self.kind, self.where, **{self.setting: self.value})
        return config.with_value(self.default, self.value)

    def __str__(self) -> str:
        return f"{self.what} {listed(self.where)}".rstrip()


class KeepFloat(Repair):
    """Layers that run in float; what only they read and make follows them."""

    what, kind, setting = "keep float", "layers", "keep_float"


class SplitScales(KeepFloat):
    """Each part of a concatenation keeps a scale of its own: it and what moves its elements give real numbers."""

    what = "split the scales of"


class MeasureRange(Repair):
    """Dense layers that take the range of their data from each sample as it comes."""

    what, kind, setting = "dynamic scale", "layers", "mode"

    @property
    def value(self) -> str:
        """The mode."""
        return "dynamic"


class Widen(Repair):
    """Activations of 16 bits."""

    what, kind, setting = "int16", "tensors", "dtype"

    @property
    def value(self) -> str:
        """The dtype."""
        return "int16"


class NarrowWeights(Repair):
    """Weights of 4 bits: no repair but a saving, which a search weighs against repairs."""

    what, kind, setting = "int4 weights", "tensors", "dtype"

    @property
    def value(self) -> str:
        """The dtype."""
        return "int4"


@dataclass(frozen=True)
class Calibrate(Repair):
    """Another calibrator for activations."""

    kind, setting, default = "tensors", "calibrator", "activations.calibrator"
    calibrator: MaxSpec | MseSpec | PercentileSpec = _USUAL

    @property
    def what(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] it names the calibrator
        """Which calibrator."""
        return f"calibrator {self.calibrator.name}"

    @property
    def value(self) -> MaxSpec | MseSpec | PercentileSpec:
        """The calibrator."""
        return self.calibrator


class PerChannel(Repair):
    """A scale for each output channel of weights."""

    what, kind, setting, default = "weights per channel", "tensors", "axis", "weights.axis"

    @property
    def value(self) -> str:
        """The axis."""
        return "channel"


@dataclass(frozen=True)
class CorrectBias(Repair):
    """Biases with or without what rounding the weights adds on average."""

    kind, setting, default = "layers", "bias_correction", "weights.bias_correction"
    on: bool = True

    @property
    def what(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] on or off
        """On or off."""
        return f"bias correction {'on' if self.on else 'off'}"

    @property
    def value(self) -> bool:
        """On or off."""
        return self.on


class Equalize(Repair):
    """Ranges of channels shared out between layers and those that follow them."""

    what, kind, setting, default = "equalize weights", "layers", "equalize", "weights.equalize"


class RoundWeights(Repair):
    """Weights rounded one layer after the other on calibration data, in place of each to its nearest integer."""

    what, kind, setting = "round weights sequentially", "layers", "weights_rounding"
    default = "weights.rounding"

    @property
    def value(self) -> str:
        """The rounding."""
        return "sequential"


class Spare(Repair):
    """What 8 bits would spoil in 16 bits or in float, as few layers as the model needs: what the default preset does.

    It is measured once for a session; `where` is what that spares, to be seen before.
    """

    what = "spare what 8 bits spoil"

    def apply(self, config: QuantConfig) -> QuantConfig:
        """The config that leaves it to be measured, and weights rounded on data where outputs gain by it."""
        spared = config.with_value("activations.least_db", "measured")
        return spared.with_value("weights.rounding", "measured") if config.weights.rounding == "nearest" else spared


def before(config: QuantConfig) -> str:
    """What a label says of the repairs that a config has already."""
    kept = sum(layer.keep_float is True for layer in config.layers.values())
    wide = sum(tensor.dtype == "int16" for tensor in config.tensors.values())
    return (f"{kept} layers in float, " if kept else "") + (f"{wide} tensors in int16, " if wide else "")
