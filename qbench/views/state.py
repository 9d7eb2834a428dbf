"""One moment of a session, from which all views are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from qbench.calibration.settings import Settings, settings_of
from qbench.calibration.statistics import Statistics
from qbench.errors import SessionError, nearest, shown
from qbench.ir.frozen import Constant
from qbench.passes.annotate import points
from qbench.quant.config import QuantConfig
from qbench.quant.points import Point
from qbench.quantize.quantized import Quantized
from qbench.report.entries import LayerReport
from qbench.report.report import Report
from qbench.session.session import Session

Part = Literal["activation", "weight"]
"""Which tensor of a layer: what it makes, or the constant that it multiplies by."""


@dataclass(frozen=True)
class State:
    """What is true of a session at one moment; never changes, whatever the session does.

    Parameters
    ----------
    quantized
        Config, encodings and graphs.
    statistics
        What calibration saw, by tensor.
    report
        What an evaluation found out: of an earlier config where `is_stale`.
    is_stale
        Whether the config was changed since.
    imported
        The config that the model's file came with; None where it came in float.
    alone_db
        By layer what the output gains where that one alone runs in float, in dB; empty where nobody measured it.
    """

    quantized: Quantized
    statistics: Mapping[str, Statistics]
    report: Report
    is_stale: bool = False
    imported: QuantConfig | None = None
    alone_db: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def of(cls, session: Session) -> State:
        """The session as it is now; runs what was never run."""
        report = session.report or session.run()
        return cls(session.quantized(), session.statistics, report, session.is_stale, session.imported)

    def layer(self, name: str) -> LayerReport:
        """The report of a layer; SessionError with the nearest name where there is none."""
        if name not in self._layers:
            raise SessionError(f"no layer is called {shown(name)}{nearest(name, list(self._layers))}")
        return self._layers[name]

    def find(self, name: str) -> tuple[str, Part]:
        """The layer of that name, or the one that makes (or multiplies by) the quantized tensor of that name."""
        layers = self.report.by_layer
        if name in self._layers:
            return name, "activation"
        of: dict[str | None, tuple[str, Part]] = {layer.weight: (layer.name, "weight") for layer in layers}
        of |= {layer.tensor: (layer.name, "activation") for layer in layers}
        return of[name] if name in of else (self.layer(name).name, "activation")

    def tensor(self, layer: str, part: Part = "activation") -> str | None:
        """The quantized tensor that a layer's picture is of; None where it has none."""
        tensor = self.layer(layer).encoded if part == "activation" else self.layer(layer).weight
        return tensor if tensor in self.quantized.encodings else None

    def statistics_of(self, tensor: str) -> Statistics:
        """What calibration saw of an activation; the values themselves of a weight."""
        constant = self.quantized.prepared.constants.get(tensor)
        return self.statistics[tensor] if constant is None else _statistics(constant, tensor)

    def settings(self, tensor: str) -> Settings:
        """What the config says about a quantized tensor."""
        return settings_of(self.points[tensor], self.quantized.annotated, self.quantized.config)

    @cached_property
    def _layers(self) -> Mapping[str, LayerReport]:
        return {layer.name: layer for layer in self.report.by_layer}

    @cached_property
    def points(self) -> Mapping[str, Point]:
        """What is quantized, by tensor."""
        return points(self.quantized.annotated)


@lru_cache(maxsize=64)
def _statistics(constant: Constant, tensor: str) -> Statistics:
    return Statistics.of(constant.array, tensor)
