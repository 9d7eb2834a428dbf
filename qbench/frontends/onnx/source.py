"""What an ONNX file says, as plain Python data: nothing after this module touches a protobuf message's fields."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, ValueInfoProto

from qbench.errors import ModelError, nearest, shown

Array = NDArray[Any]
Kind = TypeVar("Kind", int, float, str)


@dataclass(frozen=True)
class SourceInput:
    """A graph input; a size is None where the file leaves it open, a str where it gives it a name."""

    name: str
    shape: tuple[int | str | None, ...] | None
    dtype: str


@dataclass(frozen=True, eq=False)
class SourceNode:
    """One ONNX node. An absent optional input or output is an empty string."""

    name: str
    op: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, object]
    proto: NodeProto

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"{shown(self.name)} ({op})"

    def integer(self, name: str, default: int) -> int:
        """An int attribute."""
        return self._one(name, int, default)

    def real(self, name: str, default: float) -> float:
        """A float attribute, as the shortest decimal that means the same float32."""
        return self._one(name, float, default)

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        return self._one(name, str, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """An int attribute that means yes or no."""
        return bool(self._one(name, int, int(default)))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of ints, or None where the node has no such attribute."""
        return self._many(name, int)

    def reals(self, name: str) -> tuple[float, ...] | None:
        """A list of floats, or None where the node has no such attribute."""
        return self._many(name, float)

    def array(self, name: str) -> Array | None:
        """A tensor, or None where the node has no such attribute."""
        value = self.attrs.get(name)
        if value is not None and not isinstance(value, np.ndarray):
            raise ModelError(f"node {self}: attribute {shown(name)} should be a tensor")
        return cast("Array | None", value)

    def body(self, name: str) -> SourceModel:
        """The graph that an attribute holds."""
        value = self.attrs.get(name)
        if not isinstance(value, SourceModel):
            raise ModelError(f"node {self}: attribute {shown(name)} should be a graph")
        return value

    def _one(self, name: str, kind: type[Kind], default: Kind) -> Kind:
        value = self.attrs.get(name, default)
        if not isinstance(value, kind):
            raise ModelError(f"node {self}: attribute {shown(name)} should be a {kind.__name__}")
        return value

    def _many(self, name: str, kind: type[Kind]) -> tuple[Kind, ...] | None:
        if name not in self.attrs:
            return None
        value = self.attrs[name]
        if not isinstance(value, tuple):
            raise ModelError(f"node {self}: attribute {shown(name)} should be a list")
        items: list[Kind] = []
        for item in value:  # pyright: ignore[reportUnknownVariableType] checked on the next line
            if not isinstance(item, kind):
                raise ModelError(f"node {self}: attribute {shown(name)} should be a list of {kind.__name__}s")
            items.append(item)
        return tuple(items)


@dataclass(frozen=True, eq=False)
class SourceModel:
    """A whole ONNX model; nodes in the file's order."""

    name: str
    inputs: tuple[SourceInput, ...]
    outputs: tuple[str, ...]
    nodes: tuple[SourceNode, ...]
    initializers: Mapping[str, Array]
    infos: Mapping[str, ValueInfoProto] = field(default_factory=dict[str, ValueInfoProto])
    """What the file says of its outputs' types."""

    def value_names(self) -> set[str]:
        """Every value's name."""
        names = {i.name for i in self.inputs} | set(self.initializers)
        return names.union(*(node.inputs + node.outputs for node in self.nodes)) - {""}

    def with_names(self, names: Mapping[str, str]) -> SourceModel:
        """The model with other names of values, also where nodes hold graphs of their own."""

        def other(values: Iterable[str]) -> tuple[str, ...]:
            return tuple(names.get(value, value) for value in values)

        def node_with(node: SourceNode) -> SourceNode:
            bodies = {k: v.with_names(names) for k, v in node.attrs.items() if isinstance(v, SourceModel)}
            changed = {"inputs": other(node.inputs), "outputs": other(node.outputs), "attrs": {**node.attrs, **bodies}}
            return replace(node, **changed)

        arrays = {names.get(name, name): array for name, array in self.initializers.items()}
        nodes = tuple(map(node_with, self.nodes))
        return replace(self, nodes=nodes, initializers=arrays, outputs=other(self.outputs))

    def with_outputs(self, outputs: Iterable[str]) -> SourceModel:
        """The model up to other values of it; ModelError where it has none of such a name."""
        outputs, known = tuple(outputs), sorted(self.value_names())
        for name in outputs:
            if name not in known:
                raise ModelError(f"outputs: the model has no value {shown(name)}{nearest(name, known)}")
        makers = {output: node for node in self.nodes for output in node.outputs}
        wanted, waiting = set[str](), [*outputs]
        while waiting:
            node = makers.get(waiting.pop())
            if node is not None and node.name not in wanted:
                wanted.add(node.name)
                waiting += node.inputs
                waiting += [
                    v for body in node.attrs.values() if isinstance(body, SourceModel) for v in body.value_names()
                ]
        return replace(self, outputs=outputs, nodes=tuple(node for node in self.nodes if node.name in wanted))

    def with_values(self, values: Mapping[str, Array]) -> SourceModel:
        """The model with some of its inputs as constants; ModelError where one cannot be what is given."""
        kept = tuple(i for i in self.inputs if i.name not in values)
        arrays: dict[str, Array] = {}
        for given in self.inputs:
            if given.name not in values:
                continue
            array, shape = values[given.name], given.shape or ()
            fits = array.ndim in (0, len(shape)) and np.can_cast(array.dtype, given.dtype, "same_kind")
            if not fits or any(isinstance(a, int) and array.ndim and a != b for a, b in zip(shape, array.shape)):  # noqa: B905
                raise ModelError(
                    f"values: {shown(given.name)} is {given.dtype} of shape {shape}, not {array.dtype} of {array.shape}"
                )
            sizes = array.shape or tuple(s if isinstance(s, int) else 1 for s in shape)
            arrays[given.name] = np.broadcast_to(array.astype(given.dtype), sizes)
        return replace(self, inputs=kept, initializers={**self.initializers, **arrays})


def in_order(nodes: Sequence[SourceNode]) -> list[SourceNode]:
    """The nodes, each behind those that it reads; ModelError where they go round in a circle."""
    makers = {output: node.name for node in nodes for output in node.outputs if output}
    by_name = {node.name: node for node in nodes}
    reads = {node.name: [makers[value] for value in node.inputs if value in makers] for node in nodes}
    seen: set[str] = set()
    for node in nodes:
        if not seen.issuperset(reads[node.name]):
            break
        seen.add(node.name)
    else:
        return list(nodes)
    try:
        return [by_name[name] for name in graphlib.TopologicalSorter(reads).static_order()]
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1]
        raise ModelError(f"the graph has a cycle through {' -> '.join(map(shown, circle))}") from None
