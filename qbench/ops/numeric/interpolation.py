"""Interpolation along one axis: which input elements make an output element, and with which weights.

Coordinates and rounding follow the ONNX specification of Resize, version 19. Positions beyond the edge repeat the edge,
or weigh nothing.
"""

import math
from typing import Literal

import numpy as np

from qbench.ir.op import Array

Method = Literal["nearest", "linear", "cubic"]
Coordinates = Literal[
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"
]
NearestMode = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def interpolation(
    method: Method,
    size: int,
    out: int,
    scale: float,
    coordinates: Coordinates,
    nearest_mode: NearestMode,
    cubic_coeff_a: float,
    *,
    antialias: bool = False,
    exclude_outside: bool = False,
) -> tuple[Array, Array]:
    """Indices (int64) and weights (float64) of the neighbours of each output element, both of shape (out, neighbours).

    Parameters
    ----------
    size, out
        Number of elements before and after.
    scale
        Output pixels per input pixel.
    antialias
        Whether a smaller image is made of all pixels that each of its pixels covers, not only of the nearest.
    exclude_outside
        Whether what lies beyond the edge weighs nothing.
    """
    places = _positions(size, out, scale, coordinates)
    if method == "nearest":
        indices = _nearest(places, nearest_mode)[:, np.newaxis]
        return np.clip(indices, 0, size - 1), np.ones((out, 1))
    shrunk = min(scale, 1.0) if antialias else 1.0
    reach = math.ceil((1 if method == "linear" else 2) / shrunk)
    first = np.floor(places).astype(np.int64)
    indices = first[:, np.newaxis] + np.arange(1 - reach, 1 + reach)
    away = np.abs((indices - places[:, np.newaxis]) * shrunk)
    weights = np.maximum(1 - away, 0) if method == "linear" else _cubic(away, cubic_coeff_a)
    if exclude_outside:
        weights = np.where((indices >= 0) & (indices < size), weights, 0)
    if antialias or exclude_outside:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(indices, 0, size - 1), weights


def interpolate(data: Array, indices: Array, weights: Array, axis: int) -> Array:
    """The weighted sum of neighbours along an axis, in the dtype of the data."""
    if weights.shape[1] == 1:
        return np.take(data, indices[:, 0], axis=axis)
    shape = [-1 if i == axis else 1 for i in range(data.ndim)]
    real = weights.astype(data.dtype)
    result = np.take(data, indices[:, 0], axis=axis) * real[:, 0].reshape(shape)
    for k in range(1, weights.shape[1]):
        result += np.take(data, indices[:, k], axis=axis) * real[:, k].reshape(shape)
    return result


def _positions(size: int, out: int, scale: float, mode: Coordinates) -> Array:
    """Where each output element lies among the input elements."""
    x = np.arange(out, dtype=np.float64)
    if mode == "asymmetric":
        return x / scale
    if mode == "align_corners":
        return x * (size - 1) / (out - 1) if out > 1 else x * 0
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if mode == "pytorch_half_pixel" and out == 1:
        return x * 0
    if mode == "half_pixel_symmetric":
        adjustment = out / (scale * size)
        return size / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5
    return (x + 0.5) / scale - 0.5


def _nearest(places: Array, mode: NearestMode) -> Array:
    if mode == "round_prefer_floor":
        rounded = np.ceil(places - 0.5)
    elif mode == "round_prefer_ceil":
        rounded = np.floor(places + 0.5)
    else:
        rounded = np.floor(places) if mode == "floor" else np.ceil(places)
    return rounded.astype(np.int64)


def _cubic(x: Array, a: float) -> Array:
    """Keys' kernel (1981) with the coefficient `a`, of distances."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))
