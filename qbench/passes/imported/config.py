"""The config that an imported model stands for: its own scales as overrides, and whose arithmetic it was made for."""

from collections import Counter

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.ir.qparams import QParams
from qbench.passes.imported.template import Template
from qbench.quant.config import QuantConfig
from qbench.quant.semantics import SEMANTICS, Semantics, rounding_of
from qbench.quant.specs import TensorOverride, TensorSpec, WeightSpec


def imported_config(template: Template) -> QuantConfig:
    """Every scale of the file as an override; the defaults are how most of its tensors are quantized.

    Biases are not corrected: they are as the file's maker left them.
    """
    constants = template.graph.constants
    activations = [template.qparams(name) for name, value in template.tensors.items() if value not in constants]
    weights = [template.qparams(name) for name, value in template.tensors.items() if value in constants]
    usual, heavy = _most_common(activations), _most_common(weights)
    spec, weight_spec = TensorSpec(), WeightSpec(bias_correction=False)
    if usual is not None:
        dtype, symmetric, _ = usual
        spec = TensorSpec(dtype=dtype, symmetric=symmetric)  # pyright: ignore[reportArgumentType] checked by the model
    if heavy is not None:
        dtype, symmetric, per_axis = heavy
        weight_spec = WeightSpec(
            dtype=dtype,  # pyright: ignore[reportArgumentType] checked by the model
            symmetric=symmetric,
            axis="channel" if per_axis else None,
            narrow=symmetric,
            bias_correction=False,
        )
    tensors = {name: imported_override(template, name) for name in template.tensors}
    return QuantConfig(activations=spec, weights=weight_spec, semantics=template.semantics, tensors=FrozenMap(tensors))


def imported_override(template: Template, tensor: str) -> TensorOverride:
    """What the file says of one tensor, as a user would say it."""
    q = template.qparams(tensor)
    axis = None
    if template.tensors[tensor] in template.graph.constants:
        axis = "tensor" if q.axis is None else q.block or "channel"
    return TensorOverride(scale=q.scale, zero_point=q.zero_point, dtype=q.dtype, axis=axis)  # pyright: ignore[reportArgumentType] checked by the model


def _most_common(qparams: list[QParams]) -> tuple[str, bool, bool] | None:
    """dtype, whether 0.0 is in the middle, and whether there is a scale per channel, of most of these."""
    kinds = Counter((q.dtype, _is_symmetric(q), q.axis is not None) for q in qparams)
    return kinds.most_common(1)[0][0] if kinds else None


def _is_symmetric(q: QParams) -> bool:
    middle = (q.qmin + q.qmax + 1) // 2
    return all(zero_point == middle for zero_point in q.zero_points)


def semantics_of(graph: Graph) -> Semantics:
    """The arithmetic that most of a graph's nodes speak of: by name, or by how they round."""
    votes = Counter[Semantics]()
    for node in graph.nodes:
        op = bind(node, graph.qparams)
        named = node.attrs.get("semantics")
        rounding = str(getattr(op, "rounding", ""))
        for semantics in SEMANTICS:
            if named == semantics or (named is None and rounding.startswith(_FAMILIES[semantics])):
                votes[semantics] += 1
    return votes.most_common(1)[0][0] if votes else "tflite"


_FAMILIES: dict[Semantics, str] = {name: rounding_of(name, "qnn.conv2d").partition("_")[0] for name in SEMANTICS}
