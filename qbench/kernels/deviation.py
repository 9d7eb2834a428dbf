"""How far values are from others: sums of squares in one pass, integers dequantized on the way."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view

_LANES = 256  # sums side by side, as vector instructions have them: part of the result, since additions round


def sums_of_squares(
    reference: NDArray[np.float32],
    values: NDArray[Any],
    scales: NDArray[np.float32],
    zero_points: NDArray[Any],
    low: float,
    high: float,
) -> tuple[float, float, int]:
    """Sum of the squares of `reference`, sum of those of its difference to ``(values - zero_point) * scale``.

    Products and differences to zero points are rounded to float32, all else is done in double precision.

    Parameters
    ----------
    reference, values
        [outer, channels, inner], in row-major order; `values` in integers or in float32.
    scales, zero_points
        One per channel; zero points are float32 where values are, else int64.
    low, high
        The elements of `reference` beyond them are counted, which is the third result.
    """
    outer, channels, inner = reference.shape
    lanes = channels if inner == 1 else min(inner, _LANES)
    sums, beyond = np.zeros((2, lanes)), np.zeros(1, np.int64)
    deviation_kernel(values.dtype.str[1:])(
        x=np.ascontiguousarray(reference, np.float32),  # machine code knows no types: nothing else may lie there
        y=values,
        scales=np.ascontiguousarray(scales, np.float32),
        zero_points=np.ascontiguousarray(zero_points, np.int64 if values.dtype.kind in "iu" else values.dtype),
        low=low,
        high=high,
        outer=outer,
        channels=channels,
        inner=inner,
        lanes=lanes,
        sums=sums,
        beyond=beyond,
    )
    signals, noises = (math.fsum(part) for part in sums)
    return signals, noises, int(beyond[0])


@makes_kernels
def deviation_kernel(dtype: str) -> Kernel:
    """Adds to the sums side by side, float64[2, lanes] at `sums`, of signals at x and of noises at y.

    Parameters
    ----------
    dtype
        Of y, such as ``"u1"``.
    """
    other = np.dtype(dtype)
    zero = np.dtype(np.int64 if other.kind in "iu" else other)

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        channels, inner, lanes, low, high = args.channels, args.inner, args.lanes, args.low, args.high
        count, beyond = args.outer * channels * inner, 0
        references, values = view(bases, args.x, count, np.float32), view(bases, args.y, count, other)
        scales = view(bases, args.scales, channels, np.float32)
        zero_points = view(bases, args.zero_points, channels, zero)
        sums = view(bases, args.sums, 2 * lanes, np.float64)
        signals, noises = sums[:lanes], sums[lanes:]
        if inner == 1:
            for i in range(args.outer):
                for c in range(channels):
                    x = np.float64(references[i * channels + c])
                    real = np.float32(values[i * channels + c] - zero_points[c]) * scales[c]
                    signals[c] += x * x
                    noises[c] += (x - np.float64(real)) * (x - np.float64(real))
                    beyond += (x < low) | (x > high)
        else:
            for i in range(args.outer * channels):
                scale, zero_point = scales[i % channels], zero_points[i % channels]
                for start in range(i * inner, (i + 1) * inner, lanes):
                    stop = min(start + lanes, (i + 1) * inner)
                    row, others = references[start:stop], values[start:stop]
                    for j in range(row.size):
                        x = np.float64(row[j])
                        real = np.float32(others[j] - zero_point) * scale
                        signals[j] += x * x
                        noises[j] += (x - np.float64(real)) * (x - np.float64(real))
                        beyond += (x < low) | (x > high)
        view(bases, args.beyond, 1, np.int64)[0] = beyond

    places = dict.fromkeys(("x", "y", "scales", "zero_points", "sums", "beyond"), "i8")
    sizes = dict.fromkeys(("outer", "channels", "inner", "lanes"), "i8")
    return Kernel(f"deviation.{dtype}", record(**places, **sizes, low="f8", high="f8"), run)
