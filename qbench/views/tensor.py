"""The layer that was chosen: one of its tensors, and what can be done about it."""

from dataclasses import dataclass, replace

from qbench.views.curves import CurvesView, curves_view
from qbench.views.histogram import HistogramView, histogram_view
from qbench.views.state import Part, State
from qbench.views.view import View


@dataclass(frozen=True, kw_only=True)
class TensorView(View):
    """One tensor of one layer.

    Parameters
    ----------
    layer, part
        Which one.
    parts
        Those that are there to choose from.
    about
        What the layer is, and which tensor it shares its encoding with.
    absent
        Why there is no histogram; empty where there is one.
    histogram, curves
        None where the tensor has none.
    overridden
        Whether the layer or the tensor has edits to take back.
    keep_float, can_keep_float
        Whether the user keeps the layer in float, or could.
    """

    layer: str
    part: Part
    parts: tuple[Part, ...]
    about: str
    absent: str
    histogram: HistogramView | None
    curves: CurvesView | None
    overridden: bool
    keep_float: bool
    can_keep_float: bool


def tensor_view(state: State, name: str, part: Part = "activation") -> TensorView:
    """The picture of a layer's tensor.

    Parameters
    ----------
    state
        Of a session.
    name
        Of a layer; SessionError with the nearest name where there is none.
    part
        Where the layer has no weight, its activation is shown.
    """
    facts = tensor_facts(state, name, part)
    histogram = None if facts.absent else histogram_view(state, name, facts.part)
    return replace(facts, histogram=histogram, curves=curves_view(state, name, facts.part))


def tensor_facts(state: State, name: str, part: Part = "activation") -> TensorView:
    """The same without what is drawn: neither histogram nor curves."""
    layer, config = state.layer(name), state.quantized.config
    parts: tuple[Part, ...] = ("activation",) if state.tensor(name, "weight") is None else ("activation", "weight")
    part = part if part in parts else "activation"
    about = layer.op
    if part == "activation" and layer.encoded is not None and layer.encoded != layer.tensor:
        about += f", quantized together with {layer.encoded}: an edit here changes that"
    chosen = config.layers.get(name)
    chosen = None if chosen is None or chosen.reason else chosen  # what has a reason is no choice of the user's
    kept = chosen is not None and bool(chosen.keep_float)
    tensor = state.tensor(name, part)
    override = None if tensor is None else config.tensors.get(tensor)
    is_there = tensor is not None and 0 not in state.quantized.prepared.types[tensor].shape
    return TensorView(
        layer=name,
        part=part,
        parts=parts,
        about=about,
        absent="" if is_there else f"{layer.op} runs as {layer.runs_as}: {layer.reason or 'nothing to quantize'}",
        histogram=None,
        curves=None,
        overridden=chosen is not None or (override is not None and not override.reason),
        keep_float=kept,
        can_keep_float=kept or "float" not in layer.runs_as,
    )
