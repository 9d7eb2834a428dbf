"""qparams of weights, from the constants themselves: per tensor or per channel."""

import dataclasses
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.calibrators import Max, MeanSquaredError, Registered
from qbench.calibration.curve import Calibrator
from qbench.calibration.curves import threshold_curve
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics
from qbench.errors import DataError, shown
from qbench.ir.frozen import Constant
from qbench.ir.qparams import QParams
from qbench.quant.choose import next_powers_of_two, per_axis, power_of_two

BIAS_LIMIT = 2**30
"""Largest quantized bias: half of int32, so that the sum of products has the other half (recent onnxruntime's rule)."""

_TINY = float(np.finfo(np.float32).tiny)

Chosen = tuple[QParams, float | tuple[float, ...]]
"""qparams and the threshold (or one for each channel) that they come from."""


def calibrated(weight: Constant, axis: int | None, calibrator: Calibrator, grid: Grid, tensor: str) -> Chosen:
    """qparams of a weight by a calibrator, for each index of an axis or (None) for the whole.

    Raises
    ------
    DataError
        NaN or infinity in the weight.
    """
    if isinstance(calibrator, Registered):  # the user's own function may answer otherwise the next time
        return _calibrated(weight, axis, calibrator, grid, tensor)
    return _remembered(weight, axis, calibrator, grid, tensor)


def clipped(weight: Constant, axis: int | None, threshold: float | Sequence[float], grid: Grid, tensor: str) -> QParams:
    """qparams of a weight whose range is clipped to ``[max(min, -t), min(max, t)]``, with one t or one per channel."""
    channels = _channels(weight, axis, tensor)
    limit = np.broadcast_to(np.asarray(threshold, np.float64), len(channels))
    lows = np.maximum(channels.min(axis=1, initial=0), -limit).tolist()
    highs = np.minimum(channels.max(axis=1, initial=0), limit).tolist()
    if axis is None:
        return grid.of_range(lows[0], highs[0])
    qparams = per_axis(lows, highs, grid.dtype, axis, grid.symmetric, grid.narrow)
    return power_of_two(qparams) if grid.power_of_two else qparams


def in_blocks(weight: Constant, axis: int, block: int) -> Constant:
    """The blocks of a matrix along the other axis as rows, those of each index of `axis` after one another."""
    return Constant(np.ascontiguousarray(np.moveaxis(weight.array, axis, 0)).reshape(-1, block))


def with_room_for_bias(weight: QParams, bias: NDArray[np.generic], data_scale: float, shifts: bool) -> QParams:
    """The same qparams with scales raised where a bias, in steps of both scales, would be beyond `BIAS_LIMIT`.

    Parameters
    ----------
    weight
        Per tensor or per channel.
    bias
        One element per channel, or one for all.
    data_scale
        Scale of what the weight is multiplied with.
    shifts
        Raise to powers of two.
    """
    needed = np.abs(bias.astype(np.float64)).reshape(-1) / (data_scale * BIAS_LIMIT)
    if weight.axis is None or len(needed) not in (1, len(weight.scales)):
        needed = needed.max(initial=0.0, keepdims=True)
    scales = tuple(np.maximum(weight.scales, _rounded_up(needed, shifts)).tolist())
    return dataclasses.replace(weight, scale=scales[0] if weight.axis is None else scales)


def fitted_to_bias(weight: QParams, bias: NDArray[np.generic], data_scale: float, shifts: bool) -> QParams:
    """For a weight of nothing but zeros, which any scale suits: the finest one at which the bias fits `BIAS_LIMIT`.

    At scale 1 a bias, which is stored in steps of both scales, would lose its precision. Parameters are those of
    `with_room_for_bias`; the bias is not all zeros.
    """
    least = with_room_for_bias(QParams(_TINY, 0, weight.dtype), bias, data_scale, shifts).scales * len(weight.scales)
    return dataclasses.replace(weight, scale=least[0] if weight.axis is None else least)


@lru_cache(maxsize=1024)
def _remembered(weight: Constant, axis: int | None, calibrator: Calibrator, grid: Grid, tensor: str) -> Chosen:
    return _calibrated(weight, axis, calibrator, grid, tensor)


def _calibrated(weight: Constant, axis: int | None, calibrator: Calibrator, grid: Grid, tensor: str) -> Chosen:
    channels = _channels(weight, axis, tensor)
    if isinstance(calibrator, Max) or not channels.size:  # all channels at once
        largest = np.abs(channels).max(axis=1, initial=0).tolist()
        return clipped(weight, axis, largest, grid, tensor), largest[0] if axis is None else tuple(largest)
    if axis is None:
        statistics = Statistics.of(channels, tensor)
        curve = threshold_curve(statistics, calibrator, grid, tensor)
        return curve.qparams or grid.qparams(statistics, curve.best), curve.best
    if isinstance(calibrator, MeanSquaredError):
        best = tuple(calibrator.thresholds(channels, grid).tolist())
        return clipped(weight, axis, best, grid, tensor), best
    curves = [calibrator.curve(Statistics.of(channel, tensor), grid, tensor) for channel in channels]
    thresholds = tuple(curve.best for curve in curves)
    qparams = clipped(weight, axis, thresholds, grid, tensor)
    given = [curve.qparams for curve in curves]
    scales = tuple(q.scales[0] if q else scale for q, scale in zip(given, qparams.scales, strict=True))
    zeros = tuple(q.zero_points[0] if q else zero for q, zero in zip(given, qparams.zero_points, strict=True))
    return QParams(scales, zeros, grid.dtype, axis), thresholds


def _channels(weight: Constant, axis: int | None, tensor: str) -> NDArray[np.float32]:
    """float32[channels, elements of each]; one row where there is no axis."""
    array = weight.array.astype(np.float32)
    if not np.isfinite(array).all():
        index = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise DataError(f"weight {shown(tensor)} has {array[index]} at index {index}")
    return array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)


def _rounded_up(scales: NDArray[np.float64], shifts: bool) -> NDArray[np.float64]:
    """The next float32, or the next power of two; 0 stays."""
    if shifts:
        return np.where(scales > 0, next_powers_of_two(scales), 0.0)
    near = scales.astype(np.float32)
    return np.where(near >= scales, near, np.nextafter(near, np.float32(np.inf))).astype(np.float64)
