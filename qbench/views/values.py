"""The values of one tensor in both models: each channel's spread and error, value against value, maps of a sample."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from qbench.evaluate.measure import clipped, decibels
from qbench.evaluate.values import Values
from qbench.views.pictures import Picture, encoded
from qbench.views.state import Part
from qbench.views.view import View

_POINTS = 1500
_BINS = 61  # of errors, an odd number: the one in the middle is around 0
_MAPS = 6
_RANKED = 1 << 13  # values of a channel that its quartiles are taken of, at most
_SMALLEST = 4  # pixels on a side of what is called an image
_LESS, _MORE = np.array([0, 114, 178]), np.array([213, 94, 0])  # too small, too large: as in the figures

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ChannelValues(View):
    """One channel of the float model's tensor: the five numbers of a box plot, and what became of it.

    Parameters
    ----------
    channel
        Its number.
    min, low, median, high, max
        The least, the quartiles and the largest of its values; quartiles of at most 8192 of them, evenly spread.
    sqnr_db
        Signal to noise of its quantized values, as in `qbench.evaluate.measure.decibels`.
    """

    channel: int
    min: float
    low: float
    median: float
    high: float
    max: float
    sqnr_db: float | None


@dataclass(frozen=True, kw_only=True)
class FeatureMaps(View):
    """One channel of one sample as pictures: both models' from the least to the largest value of both, the difference.

    `largest` is the largest absolute difference: as far as its colours go, blue where the quantized value is too small,
    orange where it is too large.
    """

    channel: int
    exact: Picture
    quantized: Picture
    difference: Picture
    largest: float


@dataclass(frozen=True, kw_only=True)
class ValuesView(View):
    """One tensor in both models.

    Parameters
    ----------
    layer, part, tensor
        Which one.
    absent
        Why nothing else is here; empty where there is something.
    dtype, scale
        Of the integers; None for the scale where there are several, and where the values are real.
    samples, sample
        How many samples were run, and which of them the maps are of.
    channels
        Of all channels, the lowest ratio first; one where the tensor has none.
    channel
        The one that the rest is about; None: all of them.
    sqnr_db, clipped
        Signal to noise, and the part of the values that the integers do not reach.
    points
        Pairs of a float and a quantized value, at most 1500, evenly spread.
    start, width, counts
        Bins of the differences, quantized less float: an odd number, as far on both sides.
    maps
        Of the worst channels, or the chosen one; empty where the tensor has no rows and columns.
    """

    layer: str
    part: Part
    tensor: str
    absent: str = ""
    dtype: str = ""
    scale: float | None = None
    samples: int = 0
    sample: int = 0
    channels: tuple[ChannelValues, ...] = ()
    channel: int | None = None
    sqnr_db: float | None = None
    clipped: float = 0.0
    points: tuple[tuple[float, float], ...] = ()
    start: float = 0.0
    width: float = 0.0
    counts: tuple[int, ...] = ()
    maps: tuple[FeatureMaps, ...] = ()


def values_view(values: Values, sample: int = 0, channel: int | None = None) -> ValuesView:
    """The picture of what :meth:`qbench.Session.values` gave.

    Parameters
    ----------
    values
        Of one tensor; infinities count as the largest number that there is, NaN as 0.
    sample
        Whose maps to draw; the last one where there are fewer.
    channel
        What to show in detail; all of them where it is None, or there is no such channel.
    """
    exact, other = (np.nan_to_num(one).astype(np.float64) for one in (values.exact, values.quantized))
    rows = _rows(exact, values.axis), _rows(other, values.axis)
    boxes = tuple(_channel(i, *pair) for i, pair in enumerate(zip(*rows, strict=True)))
    worst = tuple(sorted(boxes, key=lambda one: np.inf if one.sqnr_db is None else one.sqnr_db))
    channel = channel if channel is not None and channel < len(boxes) else None
    shown = [one.ravel() if channel is None else one[channel] for one in rows]
    error, q = shown[1] - shown[0], values.qparams
    reach = float(np.abs(error).max(initial=0.0)) * (1 + 1e-9) or 1.0
    counts, edges = np.histogram(error, _BINS, (-reach, reach))
    each = max(1, -(-len(error) // _POINTS))
    is_sampled = values.part == "activation" and exact.ndim > 0
    samples = len(exact) if is_sampled else 1
    sample = min(sample, samples - 1)
    chosen = [one.channel for one in worst[:_MAPS]] if channel is None else [channel]
    return ValuesView(
        layer=values.layer,
        part=values.part,
        tensor=values.tensor,
        dtype="float" if q is None else q.dtype,
        scale=q.scales[0] if q is not None and q.axis is None else None,
        samples=samples,
        sample=sample,
        channels=worst,
        channel=channel,
        sqnr_db=_ratio(*shown),
        clipped=0.0 if q is None else clipped(values.exact, q) / max(1, exact.size),
        points=tuple(zip(*(_short(one[::each]) for one in shown), strict=True)),
        start=float(edges[0]),
        width=float(edges[1] - edges[0]),
        counts=tuple(counts.tolist()),
        maps=_maps(exact, other, values.axis, sample, chosen) if is_sampled else (),
    )


def _channel(channel: int, exact: Floats, other: Floats) -> ChannelValues:
    some = exact[:: max(1, -(-len(exact) // _RANKED))]
    least, low, median, high, most = _short(
        [exact.min(initial=np.inf), *np.quantile(some, (0.25, 0.5, 0.75)), exact.max(initial=-np.inf)]
        if len(exact)
        else [0.0] * 5
    )
    ratio = _ratio(exact, other)
    return ChannelValues(
        channel=channel, min=least, low=low, median=median, high=high, max=most, sqnr_db=ratio and round(ratio, 3)
    )


def _maps(exact: Floats, other: Floats, axis: int | None, sample: int, channels: list[int]) -> tuple[FeatureMaps, ...]:
    """Of a sample: rows and columns are the axes that count neither samples nor channels."""
    if exact.ndim != 4 or axis not in (1, 3):
        return ()
    pair = [np.moveaxis(one[sample], axis - 1, 0) for one in (exact, other)]
    if min(pair[0].shape[1:]) < _SMALLEST:
        return ()
    return tuple(_map(channel, *(one[channel] for one in pair)) for channel in channels)


def _map(channel: int, exact: Floats, other: Floats) -> FeatureMaps:
    least, most = (float(of((exact, other))) for of in (np.min, np.max))
    error = other - exact
    largest = float(np.abs(error).max())
    grey = [(255 * ((one - least) / ((most - least) or 1)))[..., None] for one in (exact, other)]
    part = (error / (largest or 1))[..., None]
    colours = 255 + np.maximum(part, 0) * (_MORE - 255) + np.maximum(-part, 0) * (_LESS - 255)
    one, two, three = (encoded(np.round(levels).astype(np.uint8)) for levels in (*grey, colours))
    return FeatureMaps(channel=channel, exact=one, quantized=two, difference=three, largest=largest)


def _rows(array: Floats, axis: int | None) -> Floats:
    """float64[channels, values of each]."""
    if axis is None:
        return array.reshape(1, -1)
    many = array.shape[axis]
    return np.moveaxis(array, axis, 0).reshape(many, array.size // max(1, many))


def _ratio(exact: Floats, other: Floats) -> float | None:
    return decibels(float(np.square(exact).sum()), float(np.square(other - exact).sum())) if exact.size else None


def _short(numbers: object) -> list[float]:
    """Numbers of five digits: more are not to be seen."""
    return [float(f"{one:.5g}") for one in cast("Floats", np.asarray(numbers)).tolist()]
