"""Comparisons made by hand, small enough to know every number of."""

from __future__ import annotations

from qbench.parity import Comparison, Difference, LayerComparison
from tests.hostile import NAMES

SAME = Difference(1000, 0, max_lsb=0, channels=(0, 0, 0, 0), channel_max=(0.0,) * 4)
APART = Difference(1000, 30, 2, None, ((-1, 20), (1, 8), (2, 2)), (0, 25, 0, 5), (0.0, 2.0, 0.0, 1.0))
LATER = Difference(1000, 400, 9, None, ((-1, 300), (9, 100)), (100,) * 4, (9.0,) * 4)
REAL = Difference(10, 3, None, 0.02, ((-2, 3),), (3, 0), (0.02, 0.0))
MODES = ("tflite_double", "litert_builtin")


def comparison(*, names: tuple[str, str, str] = ("conv_1", "conv_2", "softmax"), fed: str = "left") -> Comparison:
    """Three layers: the same, one that differs, and real numbers behind it."""
    first, second, third = names
    layers = (
        LayerComparison(name=first, op="qnn.conv2d", tensor=f"{first}.out", dtype="int8", found=SAME, end_to_end=SAME),
        LayerComparison(
            name=second, op="qnn.conv2d", tensor=f"{second}.out", dtype="int8", found=APART, end_to_end=LATER,
            roundings=MODES, predicted=0.025,
        ),
        LayerComparison(
            name=third, op="nn.softmax", tensor=f"{third}.out", dtype="float32", found=REAL, end_to_end=REAL
        ),
    )  # fmt: skip
    return Comparison(
        left="qbench", right="LiteRT builtin", layers=layers, samples=5, fed=fed, missing=(("scratch", "only there"),)
    )


def hostile() -> Comparison:
    """The same with names that try everything."""
    return comparison(names=(NAMES[0], NAMES[1], NAMES[3]))
