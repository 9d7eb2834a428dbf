from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import pytest

import qbench.ops  # noqa: F401 fills the registry
from qbench.errors import GraphError
from qbench.ir.build import build
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.passes.pipeline import Pipeline, Step, Trace

GRAPH = build("g", {"x": TensorType(("N", 4), "float32")}, ["y"], [Node("r", "nn.relu", ("x",), ("y",))])


@dataclass(frozen=True)
class Nothing:
    name: ClassVar[str] = "nothing"

    def __call__(self, graph: Graph) -> Graph:
        return graph


@dataclass(frozen=True)
class Break:
    name: ClassVar[str] = "break"

    def __call__(self, graph: Graph) -> Graph:
        return dataclasses.replace(graph, nodes=())


def test_trace() -> None:
    seen: list[Step] = []
    trace = Pipeline([Nothing(), Nothing()]).run(GRAPH, seen.append)
    assert trace.graph is GRAPH and [step.name for step in trace.steps] == ["nothing", "nothing"]
    assert tuple(seen) == trace.steps and trace.source is GRAPH
    assert Trace(GRAPH).graph is GRAPH


def test_a_broken_result_names_the_pass() -> None:
    with pytest.raises(GraphError) as caught:
        Pipeline([Nothing(), Break()]).run(GRAPH)
    assert caught.value.__notes__ == ["in pass break"]


def test_trials_are_not_verified() -> None:
    assert Pipeline([Break()], verifies=False).run(GRAPH).graph.nodes == ()


def test_broken_input_is_refused() -> None:
    with pytest.raises(GraphError):
        Pipeline([]).run(dataclasses.replace(GRAPH, nodes=()))
