"""What a config says about one point: the defaults, then the rules that fit, then the tensor's own override."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qbench.calibration.grid import Grid
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.op import OPS
from qbench.ops.moves import moved_from
from qbench.quant.calibrator_specs import (
    CALIBRATOR_PRESETS,
    CalibratorSpec,
    GlobalScaleSpec,
    KlSpec,
    MseSpec,
    PercentileSpec,
    RegisteredSpec,
)
from qbench.quant.config import QuantConfig
from qbench.quant.points import Point
from qbench.quant.specs import Rule, TensorOverride, TensorSpec, WeightSpec

_KL_PRESETS = {KlSpec(**CALIBRATOR_PRESETS[name]): name for name in ("kl_mxnet", "kl_nvidia")}
_NONE = TensorOverride()


@dataclass(frozen=True, slots=True)
class Settings:
    """How one point is to be quantized.

    Parameters
    ----------
    grid
        The kind of qparams.
    calibrator
        Who decides the threshold where the override does not.
    per_axis
        For a weight: a scale for each channel.
    block
        For a matrix that is stored: a scale for every so many inputs of each channel.
    override
        What the user says about this very tensor; empty where that is nothing.
    reason
        Where calibrator and grid come from: ``default: mse``, ``rule 2: percentile 99.99; rule 0: dtype=int16``.
    details
        The part of the reason that is not about the calibrator; empty where it is all defaults.
    has_room
        Whether it has bits to spare, and nobody has said how far it reaches.
    is_open
        Whether nobody has said how far it reaches, or by which calibrator.
    """

    grid: Grid
    calibrator: CalibratorSpec
    per_axis: bool
    override: TensorOverride
    reason: str
    details: str
    block: int | None = None
    has_room: bool = False
    is_open: bool = False


def settings_of(point: Point, graph: Graph, config: QuantConfig, memo: Memo | None = None) -> Settings:
    """What a config says about a point of an annotated graph; `memo` is of earlier calls.

    An override of a tensor in float goes on to what is only moved of it."""
    names = moved_from(graph, point.tensor) if config.tensors else ()
    override = next((config.tensors[name] for name in names if name in config.tensors), _NONE)
    default = config.weights if point.kind == "weight" else config.activations
    rules = tuple((f"rule {number}", rule) for number, rule in enumerate(config.rules) if fits(rule, point, graph))
    shape = graph.constants[point.tensor].shape if point.kind == "weight" else ()
    given = point, shape, default, rules, override, config.by_shifts
    return (memo or Memo()).recall(("settings", point.tensor), given, lambda: _settings_of(*given))


def _settings_of(
    point: Point,
    shape: tuple[int, ...],
    default: TensorSpec | WeightSpec,
    rules: tuple[tuple[str, Rule], ...],
    override: TensorOverride,
    shifts: bool,
) -> Settings:
    said: dict[str, tuple[str, Any]] = {key: ("default", value) for key, value in default if key != "least_db"}
    if point.wide:
        said["dtype"] = (point.wide, "int16")
    given = {key: getattr(override, key) for key in ("dtype", "symmetric", "axis", "calibrator")}
    own = {key: (override.reason or "override", value) for key, value in given.items() if value is not None}
    if override.reason:
        said |= own
    for source, rule in rules:
        said |= {key: (source, value) for key, value in _settings(rule, point).items()}
    if not override.reason:
        said |= own
    block = said.get("axis", ("", None))[1]
    if isinstance(block, int):
        why = unblocked(point, shape, block) if point.stored else "blocks are for weights that are only stored"
        if why:
            other = near_block(point, shape, block)
            said["axis"], block = (why, other or "channel"), other

    source, calibrator = said.pop("calibrator")
    dtype, symmetric = said["dtype"][1], said["symmetric"][1]
    if point.kind == "activation" and dtype == "int16" and said["symmetric"][0] == "default":
        symmetric = True  # kernels for 16 bits expect the zero point to be 0
    details = "; ".join(
        [f"{where}: {key}={value}" for key, (where, value) in said.items() if where != "default"]
        + ["scales are powers of two"] * shifts
    )
    grid = Grid(dtype, symmetric, said.get("narrow", ("", False))[1], shifts)
    reason = "; ".join(filter(None, [f"{source}: {describe(calibrator)}", details]))
    wide = point.kind == "activation" and numpy_dtype(dtype).itemsize > 1
    is_said = override.scale is not None or isinstance(calibrator, GlobalScaleSpec | RegisteredSpec)
    has_room = wide and source == "default" and not is_said
    is_open = source == "default" and override.scale is None and isinstance(calibrator, MseSpec)
    axis = said.get("axis", ("", None))[1]
    per_axis = axis not in (None, "tensor")
    block = block if isinstance(block, int) else None
    return Settings(grid, calibrator, per_axis, override, reason, details, block, has_room, is_open)


def unblocked(point: Point, shape: tuple[int, ...], block: int) -> str:
    """Why a weight of that shape cannot have blocks of a size; empty where it can."""
    if len(shape) != 2 or point.channel_axis is None:
        return "blocks are for matrices"
    depth = shape[1 - point.channel_axis]
    return f"blocks of {block} do not divide its {depth} inputs" if depth % block else ""


def near_block(point: Point, shape: tuple[int, ...], block: int) -> int | None:
    """The size of blocks that divides a matrix's inputs, and is nearest to what was asked for: within a factor of 2."""
    if not point.stored or len(shape) != 2 or point.channel_axis is None:
        return None
    depth = shape[1 - point.channel_axis]
    sizes = [size for size in range(-(-block // 2), min(2 * block, depth) + 1) if depth % size == 0]
    return min(sizes, key=lambda size: max(size / block, block / size), default=None)


def describe(calibrator: CalibratorSpec) -> str:
    """A calibrator in a few words: its name and the numbers that it goes by."""
    match calibrator:
        case PercentileSpec():
            return f"percentile {calibrator.percentile}"
        case GlobalScaleSpec():
            return f"global_scale {calibrator.threshold}"
        case RegisteredSpec():
            return f"registered {calibrator.callable}"
        case KlSpec() if calibrator in _KL_PRESETS:
            return _KL_PRESETS[calibrator]
        case _:
            usual = type(calibrator)()
            changed = [f"{key}={value}" for key, value in calibrator if value != getattr(usual, key)]
            return " ".join([calibrator.name, *changed])


def _settings(rule: Rule, point: Point) -> Mapping[str, Any]:
    prefix = "weights_" if point.kind == "weight" else ""
    found = {key: getattr(rule, prefix + key, None) for key in ("dtype", "symmetric", "axis", "calibrator")}
    return {key: value for key, value in found.items() if value is not None}


def fits(rule: Rule, point: Point, graph: Graph) -> bool:
    """Whether a rule is about a point of an annotated graph."""
    nodes = _group(point, graph)
    if not nodes:
        return rule.matches(None, [point.tensor])
    return any(rule.matches(node.op, [node.name, *node.outputs, point.tensor]) for node in nodes)


def _group(point: Point, graph: Graph) -> list[Node]:
    """The nodes that are fused into the one that makes the tensor; for a weight, the node that reads it."""
    if point.node is None:
        return []
    nodes = [graph.node(point.node)]
    while point.kind == "activation" and (epilogue := OPS[nodes[-1].op].epilogue) is not None:
        value = nodes[-1].inputs[0]
        before = graph.producers.get(value)
        if before is None or epilogue not in OPS[before.op].absorbs or len(graph.consumers[value]) > 1:
            break
        nodes.append(before)
    return nodes
