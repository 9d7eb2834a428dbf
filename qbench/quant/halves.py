"""16 bits as two bytes: what each of them means as a quantized tensor of its own."""

import numpy as np

from qbench.ir.qparams import QParams

_BYTE = 256


def halves(q: QParams) -> tuple[QParams, QParams]:
    """Of the upper byte and of the lower, both unsigned: their numbers add up to that of the 16 bits, of one scale."""
    (scale,), (zero_point,) = q.scales, q.zero_points
    upper, lower = divmod(zero_point - q.qmin, _BYTE)
    return QParams(_BYTE * scale, upper, "uint8"), QParams(scale, lower, "uint8")


def below_upper(q: QParams) -> float:
    """What is taken off numbers so that the nearest upper byte is the right one: then no lower byte is negative."""
    _, lower = halves(q)
    return float(np.float32((_BYTE / 2 - 0.5 - lower.zero_points[0]) * q.scales[0]))
