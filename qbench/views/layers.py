"""The layer table: every layer in the order in which it runs, what it became and what that costs."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from qbench.passes.groups import find_groups
from qbench.quant.config import QuantConfig
from qbench.report.entries import LayerReport, Number
from qbench.search.attribution import Attribution, attribute
from qbench.views.bulk import BULK, BulkView
from qbench.views.state import State
from qbench.views.view import View

Level = Literal["low", "some", "high"]
"""How much quantization error there is: under 1/300, under 1/30, or more of the signal's power."""
HEARD_DB = 1.0  # lost at one step for good: less is not worth a name
_QUIET_DB, _SOME_DB, _HIGH_DB = 60, 25, 15


@dataclass(frozen=True)
class Noise(View):
    """A signal to noise ratio, and how it is drawn.

    Parameters
    ----------
    sqnr_db
        In dB; infinite where there is no error.
    share
        Length of a bar from 0 (60 dB or more) to 1 (0 dB or less): a longer bar is more error.
    level
        The same in a word.
    """

    sqnr_db: float
    share: float
    level: Level


@dataclass(frozen=True, kw_only=True)
class LayerRow(View):
    """One layer; what is said of it is as in :class:`~qbench.report.report.LayerReport`.

    Parameters
    ----------
    shape
        Of the layer's output, such as ``N x 512``.
    is_float
        Whether it runs in float; `reason` says why.
    error, own, inherited
        All of the error at its output; that which it makes itself; that which it was given. None where not measured.
    alone_db
        What the output's SQNR gains where this layer alone runs in float; None where that was not measured.
    overridden
        What the user set for the layer or its tensors, such as ``threshold``; empty where that is nothing.
    imported
        What the model's file set for them, where the user left that as it is.
    group
        Name of the first layer of its fused step: the layers of one group have one scale and one error.
    """

    name: str
    group: str
    op: str
    shape: str
    runs_as: str
    is_float: bool
    reason: str | None
    bits: int | None
    scale: Number
    zero_point: int | tuple[int, ...] | None
    threshold: Number
    chosen_by: str | None
    clipped: float | None
    error: Noise | None
    own: Noise | None
    inherited: Noise | None
    weight_dtype: str | None
    weight_sqnr_db: float | None
    weight_worst_channel_db: float | None
    macs: int
    ms: float | None
    alone_db: float | None
    tensor: str | None
    weight: str | None
    overridden: tuple[str, ...]
    imported: tuple[str, ...]


@dataclass(frozen=True)
class LayerTableView(View):
    """All layers, in graph order.

    Parameters
    ----------
    rows
        One per node of the prepared float graph.
    worst, worst_why
        Name of the layer that does the most damage, and which; see `worst_layer`.
    bulk
        What can be set for several of them.
    """

    rows: tuple[LayerRow, ...]
    worst: str | None
    worst_why: str
    bulk: BulkView = BULK


def groups_of(state: State) -> dict[str, str]:
    """By layer: the head of the group that it is fused into."""
    return {node.name: group.head.name for group in find_groups(state.quantized.prepared) for node in group.nodes}


def layer_table(state: State, found: Attribution | None = None) -> LayerTableView:
    """The table of a session's state; `found` where the attribution of its report is known already."""
    config, imported = state.quantized.config, state.imported
    groups = groups_of(state)
    rows = tuple(
        LayerRow(
            name=layer.name,
            group=groups.get(layer.name, layer.name),
            op=layer.op,
            shape=" x ".join(map(str, layer.shape)) or "scalar",
            runs_as=layer.runs_as,
            is_float="float" in layer.runs_as,
            reason=layer.reason,
            bits=layer.bits,
            scale=layer.scale,
            zero_point=layer.zero_point,
            threshold=layer.threshold,
            chosen_by=layer.chosen_by,
            clipped=layer.clipped,
            error=noise(layer.sqnr_db),
            own=noise(layer.own_sqnr_db),
            inherited=noise(layer.inherited_sqnr_db),
            weight_dtype=_dtype(state, layer.weight),
            weight_sqnr_db=layer.weight_sqnr_db,
            weight_worst_channel_db=layer.weight_worst_channel_db,
            macs=layer.macs,
            ms=layer.ms,
            alone_db=state.alone_db.get(layer.name),
            tensor=layer.encoded,
            weight=layer.weight,
            overridden=_set_by(config, layer, imported),
            imported=() if imported is None else _kept(config, layer, imported),
        )
        for layer in state.report.by_layer
    )
    return LayerTableView(rows, *worst_layer(state, found))


def _dtype(state: State, weight: str | None) -> str | None:
    encoding = None if weight is None else state.quantized.encodings.get(weight)
    return None if encoding is None else encoding.qparams.dtype


def noise(sqnr_db: float | None) -> Noise | None:
    """An SQNR as a bar; None where it was not measured, or is not a number."""
    if sqnr_db is None or math.isnan(sqnr_db):
        return None
    level: Level = "high" if sqnr_db < _HIGH_DB else "some" if sqnr_db < _SOME_DB else "low"
    return Noise(sqnr_db, min(1.0, max(0.0, 1 - sqnr_db / _QUIET_DB)), level)


def worst_layer(state: State, found: Attribution | None = None) -> tuple[str | None, str]:
    """The layer to look at first, and why: where most of the signal is lost for good.

    Where nothing is, the one that makes the most error itself, or has the lowest SQNR; None where nothing was measured
    or nothing is lost.
    """
    falls = (found or attribute(state.quantized.prepared, state.report)).falls
    if falls and falls[0].lasting_db >= HEARD_DB:
        return falls[0].nodes[-1], f"the signal-to-noise ratio falls here by {falls[0].lasting_db:.1f} dB for good"
    return _noisiest(state.report.by_layer), "makes the most error itself"


def edited(state: State, layer: LayerReport) -> bool:
    """Whether the user set something for a layer or its tensors."""
    return bool(_set_by(state.quantized.config, layer, state.imported))


def _noisiest(layers: tuple[LayerReport, ...]) -> str | None:
    """Of the layers of a fused group, which have one error, the one that an edit of it shows at."""
    for ratios in ([layer.own_sqnr_db for layer in layers], [layer.sqnr_db for layer in layers]):
        found = [
            (ratio, layer.tensor != layer.encoded, layer.name)
            for ratio, layer in zip(ratios, layers, strict=True)
            if ratio is not None and ratio < math.inf
        ]
        if found:
            return min(found)[2]
    return None


def _set_by(config: QuantConfig, layer: LayerReport, imported: QuantConfig | None) -> tuple[str, ...]:
    """Which settings the user made for the layer, for the tensor that it makes and for its weight."""
    before = {} if imported is None else _settings(imported, layer)
    return tuple(key for key, value in _settings(config, layer).items() if before.get(key) != value)


def _kept(config: QuantConfig, layer: LayerReport, imported: QuantConfig) -> tuple[str, ...]:
    """Which settings the file made that still stand."""
    now = _settings(config, layer)
    return tuple(key for key, value in _settings(imported, layer).items() if now.get(key) == value)


def _settings(config: QuantConfig, layer: LayerReport) -> dict[str, Any]:
    found = dict(config.layers[layer.name].model_dump(exclude_none=True)) if layer.name in config.layers else {}
    if found.pop("reason", None) is not None and found["keep_float"]:  # measured by default, and nobody's edit
        del found["keep_float"]
    # an override of a fused group's output shows where that is made, not on every layer of the group
    if layer.tensor == layer.encoded and layer.tensor in config.tensors:
        tensor = config.tensors[layer.tensor]
        found |= {} if tensor.reason else tensor.model_dump(exclude_none=True)
    if layer.weight is not None and layer.weight in config.tensors:
        weight = config.tensors[layer.weight].model_dump(exclude_none=True)
        found |= {f"weight {key}": value for key, value in weight.items()}
    return found
