"""The whole workbench in one picture: what a notebook shows without a kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qbench.errors import SessionError
from qbench.report.report import Report
from qbench.search.attribution import Attribution, attribute
from qbench.views.front import FrontView
from qbench.views.layers import LayerTableView, groups_of, layer_table, worst_layer
from qbench.views.profile import ProfileView, profile_view
from qbench.views.repairs import RepairsView
from qbench.views.result import Pictures, ResultView, result_view
from qbench.views.state import Part, State
from qbench.views.tensor import TensorView, tensor_view
from qbench.views.view import View


@dataclass(frozen=True)
class WorkbenchView(View):
    """The views of one moment.

    Parameters
    ----------
    title
        The model's name.
    layers, tensor, result, profile
        All layers, the chosen one, and the network as a whole: what it lost, and where along the graph.
    repairs
        What to do about it; None before anybody asked.
    front
        Configs that a search found; None where there was none.
    """

    title: str
    layers: LayerTableView
    tensor: TensorView
    result: ResultView
    profile: ProfileView
    repairs: RepairsView | None = None
    front: FrontView | None = None


def workbench_view(
    state: State,
    layer: str | None = None,
    part: Part = "activation",
    before: Report | None = None,
    pictures: Pictures = lambda _: None,
    baselines: Mapping[str, Report] | None = None,
    labels: Sequence[str] = (),
    repairs: RepairsView | None = None,
    caveats: tuple[str, ...] = (),
    front: FrontView | None = None,
) -> WorkbenchView:
    """The workbench with a layer chosen; None: the one to look at first. The rest is as in `result_view`.

    Raises
    ------
    SessionError
        No layer has that name, or the model has none at all.
    """
    if not state.report.by_layer:
        raise SessionError("this model has no layers: there is nothing to look at")
    found = attribute(state.quantized.prepared, state.report)
    chosen = first_row(state, found) if layer is None else layer
    return WorkbenchView(
        title=state.quantized.trace.source.title,
        layers=layer_table(state, found),
        tensor=tensor_view(state, chosen, part),
        result=result_view(state, before, pictures, baselines, labels, caveats),
        profile=profile_view(state, found),
        repairs=repairs,
        front=front,
    )


def first_layer(state: State, found: Attribution | None = None) -> str:
    """The worst layer, else the first whose own output is quantized, else the first."""
    layers = state.report.by_layer
    worst, _ = worst_layer(state, found)
    return worst or next((layer.name for layer in layers if layer.encoded == layer.tensor), layers[0].name)


def first_row(state: State, found: Attribution | None = None) -> str:
    """The head of the group that the first layer is fused into: it has the weights, and gives the row its name."""
    first = first_layer(state, found)
    return groups_of(state).get(first, first)  # a stale report may be of a graph with other nodes
