"""Loop and Scan whose turns can be counted while loading, written out: a copy of the body for each turn."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Open, Unsupported, Value
from qbench.frontends.onnx.source import Array, SourceModel, SourceNode

MOST = 1000
"""No loop is written out that turns more often."""
WAYS = "fix sizes with load(shapes={name: (...)}), and an input that decides it with load(values={name: number})"
ENDS = f"it ends when its data say so, or open sizes; {WAYS}"
_ENDLESS = 2**31 - 1
"""Files write this, or more, for: as long as the condition holds."""


def count_turns(node: SourceNode, values: Sequence[Value | None]) -> int:
    """How often the body runs at most; Unsupported where only the run says."""
    if node.op == "Loop":
        count, condition = (*values, None, None)[:2]
        if count is None:
            count = Value.known("", np.asarray(_ENDLESS))
        if count.array is None or (condition is not None and not holds(condition)):
            raise Open(ENDS)
        number = count.array.item()
    else:
        size = _scanned(node)
        data = values[-size]
        if node.opset < 9 or data is None:
            raise Unsupported("a Scan of before opset 9")
        number = data.shape[data.axis(_listed(node, "scan_input_axes", size)[0])]
    if not isinstance(number, int):
        raise Unsupported(f"it turns {number} times, as often as an open size says; {WAYS}")
    if not 0 < number <= MOST and number < _ENDLESS:
        raise Unsupported(f"it turns {number} times, and is written out for 1 to {MOST}; {WAYS}")
    return number


def holds(condition: Value | None) -> bool:
    """Whether a condition is true; Open where only the run says."""
    if condition is None or condition.constant is None:
        raise Open(ENDS)
    return bool(condition.constant.all())


class Turns:
    """The turns of a loop, each as a graph of its own.

    Parameters
    ----------
    node
        The loop.
    count
        How often it turns at most.
    fresh
        Gives names that nothing else has.
    """

    def __init__(self, node: SourceNode, count: int, fresh: Callable[[str], str]) -> None:
        scanned = _scanned(node) if node.op == "Scan" else 0
        self._node, self._body, self._count, self._fresh = node, node.body("body"), count, fresh
        self._lists = node.inputs[len(node.inputs) - scanned :] if scanned else ()
        self._states = [*node.inputs[: len(node.inputs) - scanned]] if scanned else [*node.inputs[2:]]
        self._carried = len(self._states)
        self._axes = _listed(node, "scan_input_axes", scanned)
        self._backward = _listed(node, "scan_input_directions", scanned)
        self._items = list[tuple[str, ...]]()

    def take(self, turn: int) -> SourceModel:
        """One turn, whose outputs are the condition to go on, of a Loop; they are to be taken in order."""
        if turn == MOST:
            raise Unsupported(f"it turns more than {MOST} times; {WAYS}")
        node, body, nodes, arrays = self._node, self._body, list[SourceNode](), dict[str, Array]()
        given = list[str]()
        if node.op == "Loop":
            arrays[number := self._fresh(f"{node.name}.turn")] = np.asarray(turn)
            arrays[condition := self._fresh(f"{node.name}.condition")] = np.asarray(True)
            given = [number, condition]
        given += self._states
        for name, axis, back in zip(self._lists, self._axes, self._backward, strict=True):
            arrays[at := self._fresh(f"{node.name}.at")] = np.asarray(self._count - 1 - turn if back else turn)
            given.append(self._fresh(f"{name}.{turn}"))
            nodes.append(_node(node, "Gather", (name, at), given[-1], axis=axis))
        if len(given) != len(body.inputs):
            raise ModelError(f"node {node}: its body takes {len(body.inputs)} values, not {len(given)}")
        own = {*body.initializers, *(output for inner in body.nodes for output in inner.outputs)} - {""}
        names = {name: self._fresh(f"{name}.{turn}") for name in sorted(own)}
        copy = body.with_names(names | dict(zip([i.name for i in body.inputs], given, strict=True)))
        nodes += [dataclasses.replace(inner, name=f"{inner.name}.{turn}") for inner in copy.nodes]
        first = 1 if node.op == "Loop" else 0
        conditions, made = copy.outputs[:first], copy.outputs[first:]
        self._states = [*made[: self._carried]]
        self._items.append(made[self._carried :])
        return SourceModel(node.name, (), conditions, tuple(nodes), {**arrays, **copy.initializers})

    def end(self) -> SourceModel:
        """What comes behind the turns that were taken, whose outputs are what the loop makes."""
        node, nodes, outputs = self._node, list[SourceNode](), self._states
        columns = list(zip(*self._items, strict=True))
        axes, backward = (_listed(node, f"scan_output_{what}", len(columns)) for what in ("axes", "directions"))
        for column, axis, back in zip(columns, axes, backward, strict=True):
            together, stacked = self._fresh(f"{node.name}.items"), self._fresh(f"{node.name}.stacked")
            nodes.append(_node(node, "SequenceConstruct", column[::-1] if back else column, together))
            nodes.append(_node(node, "ConcatFromSequence", (together,), stacked, axis=axis, new_axis=1))
            outputs = [*outputs, stacked]
        return SourceModel(node.name, (), tuple(outputs), tuple(nodes), {})


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
