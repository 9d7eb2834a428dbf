"""The bit-exactness lab: where two "int8" runtimes disagree, why, and how often theory says they must."""

from __future__ import annotations

from qbench.parity.compare import Comparable, compare
from qbench.parity.comparison import Comparison, LayerComparison
from qbench.parity.difference import Difference
from qbench.parity.golden import golden
from qbench.parity.litert import LiteRT
from qbench.parity.onnxruntime import OnnxRuntime
from qbench.parity.ours import Ours
from qbench.parity.recorded import Recorded
from qbench.parity.runner import Made, Portion, Runner
from qbench.parity.theory import Mode, disagreement

__all__ = [
    "Comparable",
    "Comparison",
    "Difference",
    "LayerComparison",
    "LiteRT",
    "Made",
    "Mode",
    "OnnxRuntime",
    "Ours",
    "Portion",
    "Recorded",
    "Runner",
    "compare",
    "disagreement",
    "golden",
]
