"""One step of an imported graph at other scales: what follows from them is what the form of its twins says."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from qbench.forms import Arithmetic, Bias, Integers, NoForm, Operand, Site, Step, form_of
from qbench.forms.form import clamp_bounds, clipped, said
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.op import OPS, QuantRule, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.dense import BiasAdd
from qbench.ops.qnn.base import QnnOp
from qbench.ops.qnn.requantize import QnnRequantize
from qbench.passes.imported.float_forms import is_narrow
from qbench.passes.imported.template import Template, Unit
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import rounding_of

_BY_SCALES = ("accumulator", "a_min", "a_max", "pad_value")
"""Attributes that follow from scales: a node has those of its form, and all others as in the file."""


class Scales(NamedTuple):
    """The present scales of an imported graph: `q` of a value, the `integers` of a quantized constant."""

    template: Template
    q: Callable[[str], QParams]
    integers: Callable[[str], Constant]

    def keep(self, values: Iterable[str]) -> bool:
        """Whether values of few bits have the scales of the file."""
        graph = self.template.graph
        return all(self.q(value) == graph.qparams[value] for value in values if is_narrow(graph, value))


class Scaled(NamedTuple):
    """What a unit becomes, its values and biases called as in the imported graph, and the qparams of these."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Constant]
    qparams: Mapping[str, QParams]


def with_scales(
    scales: Scales, unit: Unit, bias: Constant | None, rounding: Rounding | None, fresh: Callable[[str], str]
) -> Scaled:
    """A unit of the imported graph at other scales; with its own ones, the very nodes and bits that it has.

    Parameters
    ----------
    scales, unit
        The imported graph at its scales, and a step of it that computes on integers.
    bias
        The real bias of the step, where it is another one than the twin's.
    rounding
        Another rounding than the file's.
    fresh
        Makes a new name.
    """
    graph = scales.template.graph
    if bias is None and scales.keep(value for node in unit.nodes for value in (*node.inputs, *node.outputs)):
        made = (value for node in unit.nodes for value in node.outputs if value in graph.qparams)
        found = Scaled(unit.nodes, {}, {value: graph.qparams[value] for value in made})
    else:
        found = _requantized(scales, _at(scales, unit, bias), fresh)
        found = _with_implied(found, unit, fresh) if unit.implied else found
    return found._replace(nodes=tuple(_rounded(node, rounding) for node in found.nodes))


def _at(scales: Scales, unit: Unit, bias: Constant | None) -> Scaled:
    graph = scales.template.graph
    nodes, constants, qparams = list[Node](), dict[str, Constant](), dict[str, QParams]()
    for node, step in zip(unit.nodes, _steps(scales, unit, bias), strict=True):
        for value in node.outputs:
            if is_narrow(graph, value):
                qparams[value] = scales.q(value)
            elif step is not None and step.q is not None:
                qparams[value] = step.q
            elif value in graph.qparams:  # sums of what they read
                old, read = graph.qparams[value], node.inputs[0]
                ratio = qparams.get(read, scales.q(read)).scales[0] / graph.qparams[read].scales[0]
                scale = tuple(one * ratio for one in old.scales)
                qparams[value] = dataclasses.replace(old, scale=scale if old.axis is not None else scale[0])
        stored = () if step is None else step.inputs
        for value, given in zip(node.inputs, stored, strict=False):
            if isinstance(given, Integers):
                constants[value], qparams[value] = Constant(given.array), given.q
        nodes.append(node if step is None else _with(node, step.attrs, _BY_SCALES))
    return Scaled(tuple(nodes), constants, qparams)


def _steps(scales: Scales, unit: Unit, bias: Constant | None) -> list[Step | None]:
    """The step of the unit's form behind each of its nodes.

    The form is that of the file's runtime, or plain integer arithmetic where that runtime has none at these scales; of
    a file that does otherwise than both, only clips depend on more than the qparams of what they read and make.
    """
    site = _site(scales, unit, bias)
    for arithmetic in (Arithmetic(scales.template.semantics), Arithmetic()):
        try:
            form = form_of(dataclasses.replace(site, arithmetic=arithmetic))
        except NoForm:
            continue
        clips = [step for step in form.steps if step.op == "clip"]
        steps = [step for step in form.steps if step not in clips]
        steps += clips * sum(node.op == "clip" for node in unit.nodes)
        if [step.op for step in steps] == [node.op for node in unit.nodes]:
            return [*steps]
    twins = {node.name: node for node in unit.twins}
    return [
        clipped((twins[node.name],), 0, scales.q(node.output)) if node.op == "clip" else None for node in unit.nodes
    ]


def _site(scales: Scales, unit: Unit, bias: Constant | None) -> Site:
    """The unit's twins with their present qparams."""
    template, head, out = scales.template, unit.twins[0], unit.outputs[0]
    graph = template.graph
    adding = next((node for node in unit.nodes if is_op(node, BiasAdd)), None)
    added = None
    if adding is not None:
        value = adding.inputs[1]
        stored = graph.constants[value].array if bias is None and scales.keep(head.inputs) else None
        real = bias or template.twin.constants[template.real[value]]
        added = Bias(real.array, stored, attrs=tuple(adding.attrs.items()))
    explicit = unit.twins[: -1 if unit.implied else None]
    return Site(
        head,
        tuple(_operand(scales, value) for value in head.inputs),
        graph.types[unit.nodes[0].output].rank,
        (scales.q(out),) if is_narrow(graph, out) else (),
        Arithmetic(template.semantics),
        added,
        tuple(node for node in explicit[1:] if OPS[node.op].rule == QuantRule.CLAMP),
    )


def _operand(scales: Scales, value: str) -> Operand:
    graph, twin = scales.template.graph, scales.template.twin
    if is_narrow(graph, value):
        q = scales.q(value)
        array = scales.integers(value).array if value in graph.constants else None
        return Operand(value, graph.types[value].with_dtype(q.dtype), q, array)
    real = scales.template.real.get(value, value)
    constant = twin.constants.get(real)
    return Operand(value, twin.types[real], None, None if constant is None else constant.array)


def _requantized(scales: Scales, found: Scaled, fresh: Callable[[str], str]) -> Scaled:
    """With a requantize behind each node whose kernel makes integers of another scale than is asked for."""
    nodes, qparams = list[Node](), dict(found.qparams)
    for node in found.nodes:
        op, asked = bind(node), qparams.get(node.outputs[0])
        made = asked
        if isinstance(op, QnnOp) and asked is not None:
            made = op.made(qparams.get(node.inputs[0]) or scales.q(node.inputs[0]), asked)
        if made is None or made == asked:
            nodes.append(node)
            continue
        value, name = fresh(f"{node.output}.made"), fresh(f"{node.name}.requantize")
        rounding = rounding_of(scales.template.semantics, node.op)
        nodes.append(dataclasses.replace(node, outputs=(value,)))
        attrs = FrozenMap[str, Attr]({"rounding": rounding})
        nodes.append(Node(name, QnnRequantize.name, (value,), node.outputs, attrs, node.sources))
        qparams[value] = made
    return found._replace(nodes=tuple(nodes), qparams=qparams)


def _with_implied(found: Scaled, unit: Unit, fresh: Callable[[str], str]) -> Scaled:
    """With the relu that saturation stands for in the file, where it no longer does."""
    relu, q = unit.twins[-1], found.qparams[unit.outputs[0]]
    low, high = clamp_bounds((relu,), q)
    if (low, high) == (q.qmin, q.qmax):
        return found
    value = fresh(f"{unit.outputs[0]}.requantized")
    last = dataclasses.replace(found.nodes[-1], outputs=(value,))
    bounds = FrozenMap[str, Attr]({"a_min": float(low), "a_max": float(high)})
    clip = Node(relu.name, "clip", (value,), unit.outputs, bounds, relu.sources)
    return Scaled((*found.nodes[:-1], last, clip), found.constants, {**found.qparams, value: q})


def _rounded(node: Node, rounding: Rounding | None) -> Node:
    """The node with another rounding, where it rounds."""
    return node if rounding is None else _with(node, {"rounding": rounding}, ("rounding",))


def _with(node: Node, given: Mapping[str, Attr], keys: Iterable[str]) -> Node:
    """The node with those of the given attributes that are named here and that it has; itself where it has them so."""
    fields = OPS[node.op].attributes()
    told: dict[str, Any] = {key: given.get(key, fields[key].default) for key in keys if key in fields}
    attrs = FrozenMap(said(node.op, {**node.attrs, **told}))
    return node if attrs == node.attrs else dataclasses.replace(node, attrs=attrs)
