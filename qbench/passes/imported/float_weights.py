"""Weights and biases of the float model that a quantized one was made from."""

import numpy as np

from qbench.errors import GraphError, nearest, shown
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.passes.imported.template import Template
from qbench.passes.prepare import prepare

_SUFFIXES = ("", "_quantized", ".quantized")


def with_float_weights(template: Template, model: Graph) -> Template:
    """The template with the constants of a float model in its twin.

    A constant is that of the same name (onnxruntime's quantizer adds ``_quantized``), else the one that the node of the
    same name reads in its place.

    Raises
    ------
    GraphError
        A quantized constant that the float model has not, or has in another shape; inputs or outputs that differ. All
        are listed.
    """
    prepared, twin = prepare(model).graph, template.twin
    complaints = [
        f"{what} {shown(name)} is not in it{nearest(name, theirs)}"
        for what, ours, theirs in (
            ("input", twin.inputs, prepared.inputs),
            ("output", twin.outputs, prepared.outputs),
        )
        for name in ours
        if name not in theirs
    ]
    found: dict[str, Constant] = {}
    for value, q in template.graph.qparams.items():
        name = template.real[value]
        if value not in template.graph.constants or name not in twin.constants:
            continue
        constant, old = _counterpart(twin, name, prepared), twin.constants[name]
        if constant is None:
            kind = "bias" if q.dtype in ("int32", "int64") else "weight"
            complaints.append(f"{kind} {shown(name)} is not in it{nearest(name, prepared.constants)}")
        elif constant.shape != old.shape or constant.array.dtype != np.float32:
            complaints.append(f"{shown(name)} is {constant.type} in it, but {old.type} here")
        else:
            found[name] = constant
    if complaints:
        raise GraphError("the float model is of another network: " + "; ".join(complaints))
    return template.with_constants(found)


def _counterpart(twin: Graph, name: str, model: Graph) -> Constant | None:
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in model.constants:
            return model.constants[name.removesuffix(suffix)]
    for node in twin.consumers[name]:
        other = model.by_name.get(node.name)
        if other is not None and other.op == node.op:
            place = node.inputs.index(name)
            return model.constants.get(other.inputs[place])
    return None
