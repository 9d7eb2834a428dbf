"""Loop and Scan whose turns can be counted while loading, written out: a copy of the body for each turn."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Open, Unsupported, Value
from qbench.frontends.onnx.source import Array, SourceModel, SourceNode

_MOST = 1000
WAYS = "fix sizes with load(shapes={name: (...)}), and an input that decides it with load(values={name: number})"


def count_turns(node: SourceNode, values: Sequence[Value | None]) -> int:
    """How often the body runs; Unsupported where only the run says."""
    if node.op == "Loop":
        count, condition = (value and value.array for value in (*values, None, None)[:2])
        if count is None or (condition is not None and (condition.dtype == object or not condition.all())):
            raise Open("it ends when its data say so")
        number = count.item()
    else:
        size = _scanned(node)
        data = values[-size]
        if node.opset < 9 or data is None:
            raise Unsupported("a Scan of before opset 9")
        number = data.shape[data.axis(_listed(node, "scan_input_axes", size)[0])]
    if not isinstance(number, int):
        raise Unsupported(f"it turns {number} times, as often as an open size says; {WAYS}")
    if not 0 < number <= _MOST:
        raise Unsupported(f"it turns {number} times, and is written out for 1 to {_MOST}; {WAYS}")
    return number


def written_out(node: SourceNode, count: int, fresh: Callable[[str], str]) -> SourceModel:
    """All turns as one graph, whose outputs are the conditions to go on, of a Loop, and then what the node makes."""
    body = node.body("body")
    scanned = _scanned(node) if node.op == "Scan" else 0
    states = list(node.inputs[: len(node.inputs) - scanned] if scanned else node.inputs[2:])
    carried, lists = len(states), node.inputs[len(node.inputs) - scanned :] if scanned else ()
    nodes, arrays = list[SourceNode](), dict[str, Array]()
    conditions, items = list[str](), list[tuple[str, ...]]()
    axes, backward = _listed(node, "scan_input_axes", scanned), _listed(node, "scan_input_directions", scanned)
    for turn in range(count):
        given = list[str]()
        if not scanned:
            arrays[number := fresh(f"{node.name}.turn")] = np.asarray(turn)
            arrays[condition := fresh(f"{node.name}.condition")] = np.asarray(True)
            given = [number, condition]
        given += states
        for name, axis, back in zip(lists, axes, backward, strict=True):
            arrays[at := fresh(f"{node.name}.at")] = np.asarray(count - 1 - turn if back else turn)
            given.append(fresh(f"{name}.{turn}"))
            nodes.append(_node(node, "Gather", (name, at), given[-1], axis=axis))
        if len(given) != len(body.inputs):
            raise ModelError(f"node {node}: its body takes {len(body.inputs)} values, not {len(given)}")
        own = {*body.initializers, *(output for inner in body.nodes for output in inner.outputs)} - {""}
        names = {name: fresh(f"{name}.{turn}") for name in sorted(own)}
        copy = body.with_names(names | dict(zip([i.name for i in body.inputs], given, strict=True)))
        nodes += [dataclasses.replace(inner, name=f"{inner.name}.{turn}") for inner in copy.nodes]
        arrays |= copy.initializers
        made = copy.outputs if scanned else copy.outputs[1:]
        conditions += () if scanned else copy.outputs[:1]
        states, rest = list(made[:carried]), made[carried:]
        items.append(rest)
    columns = list(zip(*items, strict=True))
    ends = _listed(node, "scan_output_axes", len(columns)), _listed(node, "scan_output_directions", len(columns))
    for column, axis, back in zip(columns, *ends, strict=True):
        together, stacked = fresh(f"{node.name}.items"), fresh(f"{node.name}.stacked")
        nodes.append(_node(node, "SequenceConstruct", column[::-1] if back else column, together))
        nodes.append(_node(node, "ConcatFromSequence", (together,), stacked, axis=axis, new_axis=1))
        states.append(stacked)
    return SourceModel(node.name, (), (*conditions, *states), tuple(nodes), arrays)


def _scanned(node: SourceNode) -> int:
    count = node.integer("num_scan_inputs", 0)
    if not 0 < count <= len(node.inputs):
        raise ModelError(f"node {node}: num_scan_inputs={count}")
    return count


def _listed(node: SourceNode, name: str, count: int) -> tuple[int, ...]:
    """An attribute with a number for each list that goes in or comes out, 0 unless given."""
    given = node.integers(name) or (0,) * count
    if len(given) != count:
        raise ModelError(f"node {node}: {name} has {len(given)} numbers, not {count}")
    return given


def _node(loop: SourceNode, op: str, inputs: tuple[str, ...], output: str, **attrs: Any) -> SourceNode:
    proto = helper.make_node(op, inputs, [output], **attrs)
    return SourceNode(output, op, "", max(loop.opset, 11), inputs, (output,), attrs, proto)
