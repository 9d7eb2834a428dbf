"""Where two runs of a network differ: how often in each layer, how far, in which channels, and how often they must."""

from dataclasses import dataclass

from qbench.parity.comparison import Comparison, LayerComparison
from qbench.views.state import State
from qbench.views.view import View


@dataclass(frozen=True, kw_only=True)
class ExactnessLayer(View):
    """One value; what is said of it is as in :class:`~qbench.parity.LayerComparison`.

    Parameters
    ----------
    rate, predicted, rate_end_to_end
        Fractions of the elements that differ: by this op alone, in theory, and in runs from the network's input on.
    largest, largest_end_to_end
        In steps; relative to the largest number of the tensor where `is_real`.
    histogram
        Pairs of (steps, count); of (decade, count) where `is_real`.
    channels
        How many elements differ in each; those of one channel are elements / number of channels.
    rounding
        How the two sides round, such as ``tflite_double against litert_builtin``; empty where nothing is rounded.
    layer
        What a session calls the layer; None where it has no such layer, or none was given.
    """

    name: str
    op: str
    tensor: str
    dtype: str
    elements: int
    different: int
    rate: float
    predicted: float | None
    largest: float
    different_end_to_end: int
    rate_end_to_end: float
    largest_end_to_end: float
    histogram: tuple[tuple[int, int], ...]
    channels: tuple[int, ...]
    rounding: str
    is_real: bool
    layer: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExactnessView(View):
    """All layers, in execution order.

    Parameters
    ----------
    left, right, samples
        Who was compared, on how many samples.
    fed_with
        Whose values each op was fed with; None where both sides only ran from end to end.
    elements, different, different_end_to_end, differing
        Over all layers, and how many layers have differences of their own.
    first
        Tensor of the first divergent op; None where nothing differs.
    layers
        One for each value that both sides have.
    missing
        Values that could not be compared, and why.
    """

    left: str
    right: str
    samples: int
    fed_with: str | None
    elements: int
    different: int
    different_end_to_end: int
    differing: int
    first: str | None
    layers: tuple[ExactnessLayer, ...]
    missing: tuple[tuple[str, str], ...]


def exactness_view(comparison: Comparison, state: State | None = None) -> ExactnessView:
    """The picture of a comparison; its layers are looked for in the session of a state."""
    fed_with = {"left": comparison.right, "right": comparison.left}.get(comparison.fed)
    return ExactnessView(
        left=comparison.left,
        right=comparison.right,
        samples=comparison.samples,
        fed_with=fed_with,
        elements=comparison.elements,
        different=comparison.different,
        different_end_to_end=comparison.different_end_to_end,
        differing=sum(layer.different > 0 for layer in comparison.layers),
        first=None if comparison.first is None else comparison.first.tensor,
        layers=tuple(_layer(layer, _known(layer, state)) for layer in comparison.layers),
        missing=comparison.missing,
    )


def _known(layer: LayerComparison, state: State | None) -> str | None:
    """The layer that makes the same value, else the one of the same name: legalized, a layer is several ops."""
    layers = () if state is None else state.report.by_layer
    makers = [known.name for known in layers if known.tensor == layer.tensor]
    return next((name for name in (*makers, layer.name) if any(known.name == name for known in layers)), None)


def _layer(layer: LayerComparison, known: str | None) -> ExactnessLayer:
    own, whole = layer.found, layer.end_to_end
    is_real = own.max_lsb is None
    left, right = layer.roundings or ("", "")
    return ExactnessLayer(
        name=layer.name,
        op=layer.op,
        tensor=layer.tensor,
        dtype=layer.dtype,
        elements=own.elements,
        different=own.different,
        rate=own.rate,
        predicted=layer.predicted,
        largest=(own.max_relative if is_real else own.max_lsb) or 0,
        different_end_to_end=whole.different,
        rate_end_to_end=whole.rate,
        largest_end_to_end=(whole.max_relative if is_real else whole.max_lsb) or 0,
        histogram=own.histogram,
        channels=own.channels,
        rounding=left if left == right else f"{left} against {right}",
        is_real=is_real,
        layer=known,
    )
