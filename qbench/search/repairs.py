"""Repairs: edits of a config that may give quality back, each with where it acts and why it is thought to help."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from qbench.errors import shown
from qbench.quant.calibrator_specs import MaxSpec, MseSpec, PercentileSpec
from qbench.quant.config import QuantConfig

_FEW = 3
_UNEVEN = "coarse weights: channels of small range lose most, and the next layer can take up what scales them"
_NO_BEST = "no calibrator is best for every model, nor for every tensor; this one was measured"
_SPECS = MseSpec(), MaxSpec(), PercentileSpec()
_COARSE = "coarse weights: what one loses, others and later layers can make up for"


@dataclass(frozen=True)
class Repair(ABC):
    """One edit of a config; equal repairs are the same edit.

    Parameters
    ----------
    why
        Why it is thought to help, in words.
    """

    what: ClassVar[str]
    why: str

    @property
    def where(self) -> tuple[str, ...]:
        """Names of the layers or tensors that it is about; empty: the whole model."""
        return ()

    @abstractmethod
    def apply(self, config: QuantConfig) -> QuantConfig:
        """The config after the repair."""

    def __str__(self) -> str:
        return f"{self.what} {_few(self.where)}".rstrip()


@dataclass(frozen=True)
class KeepFloat(Repair):
    """Layers that run in float; what only they read and make follows them."""

    what: ClassVar[str] = "keep float"
    layers: tuple[str, ...]

    @property
    def where(self) -> tuple[str, ...]:
        """The layers."""
        return self.layers

    def apply(self, config: QuantConfig) -> QuantConfig:
        """An override of each layer."""
        return config.override_many("layers", self.layers, keep_float=True)


@dataclass(frozen=True)
class Widen(Repair):
    """Activations of 16 bits."""

    what: ClassVar[str] = "int16"
    tensors: tuple[str, ...]

    @property
    def where(self) -> tuple[str, ...]:
        """The tensors."""
        return self.tensors

    def apply(self, config: QuantConfig) -> QuantConfig:
        """An override of each tensor."""
        return config.override_many("tensors", self.tensors, dtype="int16")


@dataclass(frozen=True)
class NarrowWeights(Repair):
    """Weights of 4 bits: no repair but a saving, which a search weighs against repairs."""

    what: ClassVar[str] = "int4 weights"
    tensors: tuple[str, ...]

    @property
    def where(self) -> tuple[str, ...]:
        """The weights."""
        return self.tensors

    def apply(self, config: QuantConfig) -> QuantConfig:
        """An override of each weight."""
        return config.override_many("tensors", self.tensors, dtype="int4")


@dataclass(frozen=True)
class Calibrate(Repair):
    """Another calibrator: for some tensors, or for all activations that no rule or override speaks of."""

    calibrator: MaxSpec | MseSpec | PercentileSpec
    tensors: tuple[str, ...] = ()

    @property
    def what(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] it names the calibrator
        """Which calibrator."""
        return f"calibrator {self.calibrator.name}"

    @property
    def where(self) -> tuple[str, ...]:
        """The tensors."""
        return self.tensors

    def apply(self, config: QuantConfig) -> QuantConfig:
        """An override of each tensor, or the default of activations."""
        if self.tensors:
            return config.override_many("tensors", self.tensors, calibrator=self.calibrator)
        return config.with_value("activations.calibrator", self.calibrator)


@dataclass(frozen=True)
class PerChannel(Repair):
    """A scale for each output channel: of some weights, or of all that no rule or override speaks of."""

    what: ClassVar[str] = "weights per channel"
    tensors: tuple[str, ...] = ()

    @property
    def where(self) -> tuple[str, ...]:
        """The weights."""
        return self.tensors

    def apply(self, config: QuantConfig) -> QuantConfig:
        """An override of each weight, or the default of weights."""
        if self.tensors:
            return config.override_many("tensors", self.tensors, axis="channel")
        return config.with_value("weights.axis", "channel")


@dataclass(frozen=True)
class CorrectBias(Repair):
    """Biases with or without what rounding the weights adds on average."""

    on: bool

    @property
    def what(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] on or off
        """On or off."""
        return f"bias correction {'on' if self.on else 'off'}"

    def apply(self, config: QuantConfig) -> QuantConfig:
        """The default of weights."""
        return config.with_value("weights.bias_correction", self.on)


@dataclass(frozen=True)
class Equalize(Repair):
    """Ranges of channels shared out between layers that follow each other."""

    what: ClassVar[str] = "equalize weights"

    def apply(self, config: QuantConfig) -> QuantConfig:
        """The default of weights."""
        return config.with_value("weights.equalize", True)


@dataclass(frozen=True)
class RoundWeights(Repair):
    """Weights rounded one layer after the other on calibration data, in place of each to its nearest integer."""

    what: ClassVar[str] = "round weights sequentially"

    def apply(self, config: QuantConfig) -> QuantConfig:
        """The default of weights."""
        return config.with_value("weights.rounding", "sequential")


def global_repairs(config: QuantConfig) -> tuple[Repair, ...]:
    """The few edits of the whole model that change this config."""
    tried: Iterable[Repair] = (
        *(Calibrate(_NO_BEST, spec) for spec in _SPECS),
        CorrectBias("rounded weights shift what a layer makes; taking the shift back helps most models", True),
        CorrectBias("where means over the calibration data do not fit the data, corrected biases harm", False),
        PerChannel("one scale for all channels spoils those whose weights are small"),
        *((Equalize(_UNEVEN), RoundWeights(_COARSE)) if _coarse(config) else ()),
    )
    return tuple(repair for repair in tried if repair.apply(config) != config)


def tensor_repairs(config: QuantConfig, activations: tuple[str, ...], weights: tuple[str, ...]) -> Iterator[Repair]:
    """The edits of a region's tensors that cost no time: other calibrators, and scales for each channel."""
    if activations:
        yield from (Calibrate(_NO_BEST, spec, activations) for spec in _SPECS if spec != config.activations.calibrator)
    if weights and config.weights.axis is None:
        yield PerChannel("one scale for all channels spoils those whose weights are small", weights)


def _coarse(config: QuantConfig) -> bool:
    """Whether any weights have 4 bits, or one scale for all channels: rounding them with care is worth its time."""
    said = [config.weights.dtype, *(rule.weights_dtype for rule in config.rules)]
    said += [override.dtype for override in config.tensors.values()]
    return config.weights.axis is None or any(dtype in ("int4", "uint4") for dtype in said)


def _few(names: tuple[Any, ...]) -> str:
    said = ", ".join(shown(name) for name in names[:_FEW])
    return f"{said} and {len(names) - _FEW} more" if len(names) > _FEW else said
