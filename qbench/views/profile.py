"""The profile of the network: the signal-to-noise ratio along the graph, and the steps where it falls for good."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from qbench.ir.graph import Graph
from qbench.passes.groups import Group, find_groups
from qbench.report.entries import LayerReport
from qbench.search.attribution import Attribution, StepLoss, attribute
from qbench.views.layers import HEARD_DB, edited
from qbench.views.state import State
from qbench.views.view import View

Kind = Literal["narrow", "wide", "float", "other"]
"""What a step makes: integers of at most 8 bits, of more, real numbers, or what is no activation (sizes, indices)."""

_NAMED = 3  # steps that the chart says by name


@dataclass(frozen=True, kw_only=True)
class ProfileStep(View):
    """One fused group; ratios in dB as in :class:`~qbench.search.attribution.StepLoss`, None where not measured.

    Parameters
    ----------
    name, op, layers
        Of its first node; names of all its nodes.
    runs_as, kind
        As the report says it; and of what kind the integers are that it makes.
    sqnr_db, own_db
        Signal to noise of what it makes; of what it would make of exact inputs.
    lasting_db, cause
        How much of the ratio is lost here for good, and by whose error: ``own``, ``amplified`` or nothing.
    weight_db, channel_db
        Signal to noise of its weights, and of their worst channel.
    edited
        Whether the user set something for it.
    reads
        Places of the steps whose results it reads.
    """

    name: str
    op: str
    layers: tuple[str, ...]
    runs_as: str
    kind: Kind
    sqnr_db: float | None
    own_db: float | None
    lasting_db: float
    cause: str
    weight_db: float | None
    channel_db: float | None
    edited: bool
    reads: tuple[int, ...]


@dataclass(frozen=True)
class ProfileView(View):
    """All steps in graph order.

    Parameters
    ----------
    steps
        One for each fused group.
    falls
        Places of the steps where most is lost for good, the greatest loss first.
    output_db
        What comes out at the end.
    is_stale
        Whether the config was changed since this was measured.
    """

    steps: tuple[ProfileStep, ...]
    falls: tuple[int, ...]
    output_db: float | None
    is_stale: bool


def profile_view(state: State, found: Attribution | None = None) -> ProfileView:
    """The profile of a session's state; `found` where the attribution of its report is known already."""
    prepared = state.quantized.prepared
    found = found or attribute(prepared, state.report)
    layers = {layer.name: layer for layer in state.report.by_layer}
    reads = _reads(prepared, find_groups(prepared))
    steps = tuple(_step(state, loss, layers, reads[loss.name]) for loss in found.steps)
    places = {step.name: place for place, step in enumerate(steps)}
    falls = tuple(places[loss.name] for loss in found.falls[:_NAMED] if loss.lasting_db >= HEARD_DB)
    return ProfileView(steps, falls, _number(found.output_db), state.is_stale)


def _step(state: State, loss: StepLoss, layers: Mapping[str, LayerReport], reads: tuple[int, ...]) -> ProfileStep:
    head, last = layers[loss.name], layers[loss.nodes[-1]]
    return ProfileStep(
        name=loss.name,
        op=loss.op,
        layers=loss.nodes,
        runs_as=loss.runs_as,
        kind=_kind(last),
        sqnr_db=_number(last.sqnr_db),
        own_db=_number(loss.own_db),
        lasting_db=round(loss.lasting_db, 3),
        cause=loss.cause,
        weight_db=_number(head.weight_sqnr_db),
        channel_db=_number(head.weight_worst_channel_db),
        edited=any(edited(state, layers[name]) for name in loss.nodes),
        reads=reads,
    )


def _kind(layer: LayerReport) -> Kind:
    if "float" in layer.runs_as:
        return "float"
    return "other" if layer.bits is None else "narrow" if layer.bits <= 8 else "wide"


def _reads(prepared: Graph, groups: tuple[Group, ...]) -> dict[str, tuple[int, ...]]:
    """By name of a group's first node: the places of the groups that it reads from, itself left out."""
    place = {node.name: at for at, group in enumerate(groups) for node in group.nodes}
    makers = {value: place[node.name] for value, node in prepared.producers.items()}
    return {
        group.head.name: tuple(
            sorted({makers[v] for node in group.nodes for v in node.inputs if v in makers and makers[v] != at})
        )
        for at, group in enumerate(groups)
    }


def _number(ratio: float | None) -> float | None:
    return None if ratio is None or math.isnan(ratio) else ratio
