"""From statistics and a config to encodings: qparams for every point, each with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from qbench.calibration.calibrators import calibrator_of
from qbench.calibration.curves import threshold_curve
from qbench.calibration.overrides import check_overrides
from qbench.calibration.reach import Reach
from qbench.calibration.settings import Settings, settings_of
from qbench.calibration.statistics import Statistics
from qbench.calibration.weights import calibrated, clipped, fitted_to_bias, in_blocks, with_room_for_bias
from qbench.errors import CalibrationError, ConfigError, shown
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.mapped import release
from qbench.ir.memo import Memo
from qbench.ir.qparams import QParams
from qbench.quant.calibrator_specs import RegisteredSpec
from qbench.quant.config import QuantConfig
from qbench.quant.config_paths import format_path
from qbench.quant.encodings import Encoding, Encodings
from qbench.quant.points import Point

_ROOM, _FEWEST_STEPS = 2.0, 256
"""How many times as far as calibration data integers of 16 bits reach: other data is larger now and then, and clipping
that costs more than one bit of so many. Not where half of the data is smaller than so many steps, as where channels
differ much."""


def resolve(
    points: Iterable[Point],
    graph: Graph,
    statistics: Mapping[str, Statistics],
    config: QuantConfig,
    memo: Memo | None = None,
) -> Encodings:
    """Decide how every point is quantized.

    Parameters
    ----------
    points
        Of the annotated graph: ``passes.annotate.points(graph).values()``.
    graph
        The annotated graph; weights and biases are its constants.
    statistics
        By tensor name, for each activation among the points.
    config
        A tensor's settings come from its override, else from the last rule that fits, else from the defaults. Where any
        rounding in it is by shifts, all scales are powers of two.
    memo
        Of earlier calls.

    Returns
    -------
    Encodings
        By tensor name, in the order of the points. A reason says who decided, then what else departs from the
        defaults: ``rule 2: percentile 99.99; rule 0: dtype=int16``.

    Raises
    ------
    CalibrationError
        A point without statistics, or a calibrator that is not registered.
    ConfigError
        An override that does not suit its tensor.
    DataError
        NaN or infinity in a weight.
    """
    points, memo = tuple(points), memo or Memo()
    check_overrides(points, graph, config)
    found: dict[str, Encoding] = {}
    for point in sorted(points, key=lambda point: point.kind):  # activations first: weights need their scales
        settings = settings_of(point, graph, config, memo)
        if point.kind == "activation":
            given = point, settings, statistics.get(point.tensor), Reach.of(point, graph, statistics.get(point.tensor))
            make = partial(_activation, *given)
        else:
            constants = graph.constants[point.tensor], graph.constants.get(point.bias or "")
            given = point, settings, *constants, found.get(point.data or "")
            make = partial(_weight, *given)
        own = isinstance(settings.calibrator, RegisteredSpec)  # the user's function may answer otherwise the next time
        found[point.tensor] = make() if own else memo.recall(("encoding", point.tensor), given, make)
        if point.kind != "activation":
            release(graph.constants[point.tensor].array)
    return Encodings({point.tensor: found[point.tensor] for point in points})


def _activation(point: Point, settings: Settings, seen: Statistics | None, reach: Reach) -> Encoding:
    override = settings.override
    if seen is None:
        raise CalibrationError(f"there are no statistics of tensor {shown(point.tensor)}; collect them first")
    if isinstance(override.threshold, float):
        qparams, threshold = settings.grid.qparams(seen, override.threshold), override.threshold
    else:
        curve = threshold_curve(seen, calibrator_of(settings.calibrator), settings.grid, point.tensor)
        qparams, threshold = curve.qparams or settings.grid.qparams(seen, curve.best), curve.best
        if settings.has_room and seen.typical >= _FEWEST_STEPS * qparams.scales[0]:
            encoding = _overridden(settings, replace(qparams, scale=_ROOM * qparams.scales[0]), _ROOM * threshold)
            return replace(encoding, reason=f"{encoding.reason}; reaches twice as far, since it has bits to spare")
        if settings.is_open and reach.times > 1:
            qparams = settings.grid.of_range(*reach.widened(max(seen.min, -threshold), min(seen.max, threshold)))
            encoding = _overridden(settings, qparams, threshold * reach.times)
            return replace(encoding, reason=f"{encoding.reason}; {reach.reason}")
    return _overridden(settings, qparams, threshold)


def _weight(
    point: Point, settings: Settings, constant: Constant, bias: Constant | None, data: Encoding | None
) -> Encoding:
    override, grid = settings.override, settings.grid
    has_lists = any(isinstance(v, tuple) for v in (override.threshold, override.scale, override.zero_point))
    axis = point.channel_axis if settings.per_axis or has_lists else None
    if has_lists and isinstance(override.axis, int) and settings.block is None:
        path = format_path(("tensors", point.tensor, "axis"))
        raise ConfigError(f"{path}: lists for blocks of {override.axis} are for a weight that is only stored")
    block = None if has_lists and not isinstance(override.axis, int) else settings.block
    given = constant if block is None or axis is None else in_blocks(constant, axis, block)
    along = axis if block is None else 0
    if override.threshold is not None:
        qparams, threshold = clipped(given, along, override.threshold, grid, point.tensor), override.threshold
    else:
        qparams, threshold = calibrated(given, along, calibrator_of(settings.calibrator), grid, point.tensor)
    if block is not None:
        qparams = replace(qparams, axis=axis, block=block)
    encoding = _overridden(settings, qparams, threshold)
    if bias is None or data is None or override.scale is not None:
        return encoding
    before = encoding.qparams
    if bias.array.any() and not constant.array.any():
        fitted = fitted_to_bias(before, bias.array, data.qparams.scales[0], grid.power_of_two)
        return replace(encoding, qparams=fitted, reason=f"{encoding.reason}; all zeros, so the scale suits the bias")
    after = with_room_for_bias(before, bias.array, data.qparams.scales[0], grid.power_of_two)
    raised = sum(old != new for old, new in zip(before.scales, after.scales, strict=True))
    if not raised:
        return encoding
    channels = f" of {raised} of {len(after.scales)} channels" if after.axis is not None else ""
    reason = f"{encoding.reason}; scale{channels} raised for the bias to fit int32"
    return replace(encoding, qparams=after, reason=reason)


def _overridden(settings: Settings, qparams: QParams, threshold: float | tuple[float, ...]) -> Encoding:
    """The encoding that was decided, with the scale and zero point of the override in it."""
    override, calibrator = settings.override, settings.calibrator
    given = [key for key in ("threshold", "scale", "zero_point") if getattr(override, key) is not None]
    said = "override: " + ", ".join(f"{key}={_short(getattr(override, key))}" for key in given)
    name = calibrator.callable if isinstance(calibrator, RegisteredSpec) else calibrator.name
    if override.scale is not None or override.zero_point is not None:
        qparams = _replaced(settings, qparams)
    if not given:
        return Encoding(qparams, settings.reason, threshold, name)
    if given == ["zero_point"]:
        return Encoding(qparams, f"{settings.reason}; {said}", threshold, name)
    reason = "; ".join(filter(None, [said, settings.details]))
    return Encoding(qparams, reason, threshold if "threshold" in given else None, "override")


def _replaced(settings: Settings, qparams: QParams) -> QParams:
    override, count = settings.override, len(qparams.scales)
    scales = _each(override.scale, count, qparams.scales)
    zeros = _each(override.zero_point, count, qparams.zero_points)
    if qparams.axis is None:
        return replace(qparams, scale=scales[0], zero_point=zeros[0])
    return replace(qparams, scale=scales, zero_point=zeros)


T = TypeVar("T", int, float)


def _each(given: T | tuple[T, ...] | None, count: int, otherwise: tuple[T, ...]) -> tuple[T, ...]:
    if given is None:
        return otherwise
    return given if isinstance(given, tuple) else (given,) * count


def _short(value: float | tuple[float, ...]) -> str:
    return f"[{len(value)} values]" if isinstance(value, tuple) else str(value)
