"""Whether the user's overrides suit the tensors that they are for: all that can be known before any statistics are."""

import math
from collections.abc import Iterable
from typing import get_args

from qbench.calibration.settings import fits, near_block, settings_of, unblocked
from qbench.errors import ConfigError
from qbench.ir.graph import Graph
from qbench.quant.config import QuantConfig
from qbench.quant.config_paths import format_path
from qbench.quant.points import Point
from qbench.quant.specs import ActivationDType


def check_overrides(points: Iterable[Point], graph: Graph, config: QuantConfig) -> None:
    """Raise ConfigError unless the override of each of these points of an annotated graph can be carried out.

    Nor may a rule ask for blocks that no weight can have that it is about.
    """
    points = tuple(points)
    for number, rule in enumerate(config.rules):
        if isinstance(block := rule.weights_axis, int):
            stored = [p for p in points if p.kind == "weight" and p.stored and fits(rule, p, graph)]
            shapes = [graph.constants[p.tensor].shape for p in stored]
            if stored and not any(near_block(p, shape, block) for p, shape in zip(stored, shapes, strict=True)):
                what = f"none of the {len(stored)} weights can have it: {unblocked(stored[0], shapes[0], block)}"
                raise ConfigError(f"rules[{number}].weights_axis: {what}")
    for point in points:
        if point.tensor in config.tensors:
            _check(point, graph, config)


def _check(point: Point, graph: Graph, config: QuantConfig) -> None:
    settings = settings_of(point, graph, config)
    override, axis = settings.override, point.channel_axis
    channels = None if axis is None else graph.constants[point.tensor].shape[axis]
    unit = "blocks" if isinstance(override.axis, int) else "channels"
    given = {"threshold": override.threshold, "scale": override.scale, "zero_point": override.zero_point}
    lengths = {key: len(value) for key, value in given.items() if isinstance(value, tuple)}
    if channels is None and (lengths or override.axis == "channel"):
        why = "activations are quantized per tensor; give one number"
        why = why if point.kind == "activation" else "this weight has no axis of channels"
        raise _wrong(point, next(iter(lengths), "axis"), f"cannot be per channel: {why}")
    if isinstance(override.axis, int):
        weight = graph.constants.get(point.tensor)
        why = unblocked(point, () if weight is None else weight.shape, override.axis)
        if weight is None or why:
            raise _wrong(point, "axis", f"cannot be {override.axis}: {why}")
        channels = weight.array.size // override.axis
    for key, length in lengths.items():
        if length != channels:
            raise _wrong(point, key, f"is a list of {length}, but the weight has {channels} {unit}")
    if point.kind == "activation" and settings.grid.dtype not in get_args(ActivationDType):
        allowed = ", ".join(get_args(ActivationDType))
        raise _wrong(point, "dtype", f"{settings.grid.dtype} is for weights; activations are one of {allowed}")
    complaint = override.zero_point_complaint(settings.grid.dtype)
    if complaint:
        raise _wrong(point, "zero_point", complaint)
    scales = override.scale if isinstance(override.scale, tuple) else (override.scale,)
    if settings.grid.power_of_two and any(scale is not None and math.frexp(scale)[0] != 0.5 for scale in scales):
        raise _wrong(point, "scale", "must be a power of two, since a rounding in this config is by shifts")


def _wrong(point: Point, key: str, complaint: str) -> ConfigError:
    return ConfigError(f"{format_path(('tensors', point.tensor, key))}: {complaint}")
