"""Two runtimes compared, value by value: where they disagree, why, and how often theory says they must."""

from qbench.exporters.golden import golden
from qbench.parity.compare import Comparable, compare
from qbench.parity.comparison import Comparison, LayerComparison
from qbench.parity.difference import Difference
from qbench.parity.graph_runner import GraphRunner
from qbench.parity.litert import LiteRT
from qbench.parity.onnxruntime import OnnxRuntime
from qbench.parity.recorded import Recorded
from qbench.parity.runner import Made, Portion, Runner
from qbench.parity.theory import Mode, disagreement

Ours = GraphRunner
"""What it was called first."""

__all__ = [
    "Comparable",
    "Comparison",
    "Difference",
    "LayerComparison",
    "LiteRT",
    "Made",
    "Mode",
    "OnnxRuntime",
    "GraphRunner",
    "Ours",
    "Portion",
    "Recorded",
    "Runner",
    "compare",
    "disagreement",
    "golden",
]
