"""The whole workbench in one picture: what a notebook shows without a kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qbench.errors import SessionError
from qbench.report.entries import LayerReport
from qbench.report.report import Report
from qbench.views.layers import LayerTableView, layer_table
from qbench.views.result import Pictures, ResultView, result_view
from qbench.views.state import Part, State
from qbench.views.tensor import TensorView, tensor_view
from qbench.views.view import View

__all__ = ["WorkbenchView", "first_layer", "workbench_view"]


@dataclass(frozen=True)
class WorkbenchView(View):
    """The views of one moment.

    Parameters
    ----------
    title
        The model's name.
    layers, tensor, result
        All layers, the chosen one, and the network as a whole.
    """

    title: str
    layers: LayerTableView
    tensor: TensorView
    result: ResultView


def workbench_view(
    state: State,
    layer: str | None = None,
    part: Part = "activation",
    before: Report | None = None,
    pictures: Pictures = lambda _: None,
) -> WorkbenchView:
    """The workbench with a layer chosen; None: the one to look at first. `before` and `pictures` as in `result_view`.

    Raises
    ------
    SessionError
        No layer has that name, or the model has none at all.
    """
    chosen = first_layer(state) if layer is None else layer
    return WorkbenchView(
        title=state.quantized.prepared.name,
        layers=layer_table(state),
        tensor=tensor_view(state, chosen, part),
        result=result_view(state, before, pictures),
    )


def first_layer(state: State) -> str:
    """Of the layers whose own output is quantized the one that makes the most error itself, else the first."""
    layers = state.report.by_layer
    measured = [(_ratio(layer), layer.name) for layer in layers if layer.encoded == layer.tensor]
    found = min(measured, default=(math.inf, ""))
    if found[0] < math.inf:
        return found[1]
    if not layers:
        raise SessionError("this model has no layers: there is nothing to look at")
    return layers[0].name


def _ratio(layer: LayerReport) -> float:
    ratio = layer.sqnr_db if layer.own_sqnr_db is None else layer.own_sqnr_db
    return math.inf if ratio is None or math.isnan(ratio) else ratio
