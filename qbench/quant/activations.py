"""The activations that TFLite fuses into other operators, and the integers between which they lie."""

import numpy as np

from qbench.ir.dtypes import integer_range
from qbench.ir.qparams import QParams

ACTIVATION_BOUNDS = {"RELU": (0.0, np.inf), "RELU_N1_TO_1": (-1.0, 1.0), "RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0)}
"""Real bounds by TFLite's names."""


def activation_bounds(name: str, q: QParams) -> tuple[int, int]:
    """The integers between which an activation lies (TFLite's CalculateActivationRangeQuantized)."""
    low, high = integer_range(q.dtype)
    scale = np.float32(q.scales[0])
    steps = [np.float32(bound) / scale for bound in ACTIVATION_BOUNDS[name]]
    rounded = [np.copysign(np.floor(np.abs(step) + np.float32(0.5)), step) for step in steps]
    bounds = [float(step) + q.zero_points[0] for step in rounded]
    return int(min(max(bounds[0], low), high)), int(max(min(bounds[1], high), low))
