"""The layer table: every layer in the order in which it runs, what it became and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from qbench.engine.report import LayerReport, Number
from qbench.quant.config import QuantConfig
from qbench.views.state import State
from qbench.views.view import View

__all__ = ["LayerRow", "LayerTableView", "layer_table"]


@dataclass(frozen=True, kw_only=True)
class LayerRow(View):
    """One layer; what is said of it is as in :class:`~qbench.engine.report.LayerReport`.

    Parameters
    ----------
    shape
        Of the layer's output, such as ``N x 512``.
    overridden
        What the user set for the layer or its tensors, such as ``threshold``; empty where that is nothing.
    """

    name: str
    op: str
    shape: str
    runs_as: str
    reason: str | None
    bits: int | None
    scale: Number
    zero_point: int | tuple[int, ...] | None
    threshold: Number
    chosen_by: str | None
    clipped: float | None
    sqnr_db: float | None
    weight_sqnr_db: float | None
    macs: int
    tensor: str | None
    weight: str | None
    overridden: tuple[str, ...]


@dataclass(frozen=True)
class LayerTableView(View):
    """All layers, in graph order.

    Parameters
    ----------
    rows
        One per node of the prepared float graph.
    worst
        Name of the layer with the lowest SQNR; None where none was measured.
    """

    rows: tuple[LayerRow, ...]
    worst: str | None


def layer_table(state: State) -> LayerTableView:
    """The table of a session's state."""
    types, config = state.quantized.prepared.types, state.quantized.config
    rows = tuple(
        LayerRow(
            name=layer.name,
            op=layer.op,
            shape=" x ".join(map(str, types[layer.tensor].shape)) or "scalar",
            runs_as=layer.runs_as,
            reason=layer.reason,
            bits=layer.bits,
            scale=layer.scale,
            zero_point=layer.zero_point,
            threshold=layer.threshold,
            chosen_by=layer.chosen_by,
            clipped=layer.clipped,
            sqnr_db=layer.sqnr_db,
            weight_sqnr_db=layer.weight_sqnr_db,
            macs=layer.macs,
            tensor=layer.encoded,
            weight=layer.weight,
            overridden=_overridden(config, layer),
        )
        for layer in state.report.by_layer
    )
    measured = [(row.sqnr_db, row.name) for row in rows if row.sqnr_db is not None]
    return LayerTableView(rows, min(measured, key=lambda pair: pair[0])[1] if measured else None)


def _overridden(config: QuantConfig, layer: LayerReport) -> tuple[str, ...]:
    """Which settings the user made for the layer, for the tensor that it makes and for its weight."""
    found = list(config.layers[layer.name].model_dump(exclude_none=True)) if layer.name in config.layers else []
    # an override of a fused group's output shows where that is made, not on every layer of the group
    if layer.tensor == layer.encoded and layer.tensor in config.tensors:
        found += config.tensors[layer.tensor].model_dump(exclude_none=True)
    if layer.weight is not None and layer.weight in config.tensors:
        found += [f"weight {key}" for key in config.tensors[layer.weight].model_dump(exclude_none=True)]
    return tuple(found)
