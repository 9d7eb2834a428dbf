"""Interpolation along one axis: which input elements make an output element, and with which weights.

Coordinates and rounding follow the ONNX specification of Resize, version 19, without antialiasing. Positions beyond the
edge repeat the edge.
"""

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
) -> tuple[Array, Array]:
    """Indices (int64) and weights (float64) of the neighbours of each output element, both of shape (out, neighbours).

    Parameters
    ----------
    size, out
        Number of elements before and after.
    scale
        Output pixels per input pixel.
    """
    places = _positions(size, out, scale, coordinates)
    if method == "nearest":
        indices = _nearest(places, nearest_mode)[:, np.newaxis]
        return np.clip(indices, 0, size - 1), np.ones((out, 1))
    first = np.floor(places).astype(np.int64)
    ratio = places - first
    if method == "linear":
        offsets, weights = (0, 1), [1 - ratio, ratio]
    else:
        offsets, weights = (-1, 0, 1, 2), _cubic(ratio, cubic_coeff_a)
    indices = first[:, np.newaxis] + np.array(offsets)
    return np.clip(indices, 0, size - 1), np.stack(weights, axis=1)


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


def _cubic(ratio: Array, a: float) -> list[Array]:
    """Weights of the four neighbours by Keys' kernel (1981) with the coefficient `a`."""

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio)]
