"""The bit-exactness lab: where two "int8" runtimes disagree, why, and how often theory says they must."""

from __future__ import annotations

from qbench.lab.compare import Comparable, compare
from qbench.lab.comparison import Comparison, LayerComparison
from qbench.lab.difference import Difference
from qbench.lab.golden import golden
from qbench.lab.litert import LiteRT
from qbench.lab.onnxruntime import OnnxRuntime
from qbench.lab.ours import Ours
from qbench.lab.recorded import Recorded
from qbench.lab.runner import Made, Portion, Runner
from qbench.lab.theory import Mode, disagreement

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
