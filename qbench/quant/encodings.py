"""What statistics and a config resolve to: qparams by tensor name, each with its reason."""

from dataclasses import dataclass

from qbench.ir.frozen import FrozenMap
from qbench.ir.qparams import QParams


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one tensor is quantized, and why."""

    qparams: QParams
    reason: str
    """Which part of the config decided: ``default: mse``, ``rule 2: ...``, ``override: threshold``."""
    threshold: float | tuple[float, ...] | None
    """What the range was clipped to, [max(min, -t), min(max, t)]; None where the qparams were given outright."""
    calibrator: str
    """Name of the calibrator, or ``override``."""


Encodings = FrozenMap[str, Encoding]
"""Encodings by tensor name."""
