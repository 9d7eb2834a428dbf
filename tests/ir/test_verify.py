"""The verifier accepts what build makes, and finds each broken rule by itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from qbench.errors import GraphError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ir.verify import verify
from tests.strategies import graphs

X = TensorType(("N", 4), "float32")


def graph() -> Graph:
    return build(
        "m",
        {"x": X},
        ["z"],
        [Node("dense", "nn.dense", ("x", "w"), ("y",)), Node("relu", "nn.relu", ("y",), ("z",))],
        {"w": Constant(np.zeros((2, 4), np.float32))},
        {"w": QParams((1.0, 1.0), (0, 0), "int8", 0)},
    )


def changed(**fields: Any) -> Graph:
    return dataclasses.replace(graph(), **fields)


def node(index: int, **fields: Any) -> tuple[Node, ...]:
    nodes = list(graph().nodes)
    nodes[index] = dataclasses.replace(nodes[index], **fields)
    return tuple(nodes)


def types(**more: TensorType) -> FrozenMap[str, TensorType]:
    return FrozenMap({**graph().types, **more})


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(hostile=True, quantized=True))
def test_what_build_makes_is_valid(graph: Graph) -> None:
    verify(graph)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda: changed(inputs=("x", "x")), "two inputs have the same name"),
        (lambda: changed(inputs=("x", "w")), "'w' is an input and a constant"),
        (lambda: changed(inputs=("x", "q")), "input 'q' has no type"),
        (lambda: changed(outputs=("zz",)), "'zz' is defined by nothing; did you mean 'z'"),
        (lambda: changed(nodes=graph().nodes[::-1]), "reads 'y' before it is defined"),
        (lambda: changed(nodes=node(0, name="relu")), "two nodes are called 'relu'"),
        (lambda: changed(nodes=node(1, outputs=("y",))), "defines 'y', which is defined already"),
        (lambda: changed(nodes=node(1, outputs=("x",))), "defines 'x', which is defined already"),
        (lambda: changed(nodes=node(1, outputs=("z", "z"))), "defines 'z', which is defined already"),
        (lambda: changed(nodes=node(1, outputs=("z", "q"))), "nn.relu makes 1 values, not 2"),
        (lambda: changed(nodes=node(1, outputs=())), "nn.relu makes 1 values, not 0"),
        (lambda: changed(nodes=node(1, op="nn.rellu")), "unknown op 'nn.rellu'; did you mean 'nn.relu'"),
        (lambda: changed(nodes=node(1, attrs=FrozenMap({"alpha": 1.0}))), "no attribute 'alpha'"),
        (lambda: changed(nodes=node(0, inputs=("x",))), "takes"),
        (lambda: changed(types=types(y=X)), "'y' is .*2.*, but its type says .*4"),
        (lambda: changed(types=types(w=X)), "constant 'w' is"),
        (lambda: changed(types=types(q=X)), "types of 'q', which nothing defines"),
        (lambda: changed(types=FrozenMap({k: t for k, t in graph().types.items() if k != "z"})), "type says None"),
        (lambda: changed(qparams=FrozenMap({"q": QParams(1.0, 0, "int8")})), "qparams of 'q', which nothing defines"),
        (lambda: changed(qparams=FrozenMap({"x": QParams((1.0,), (0,), "int8", 2)})), "run along axis 2"),
        (lambda: changed(qparams=FrozenMap({"x": QParams((1.0,), (0,), "int8", 0)})), "have 1 scales along axis 0"),
        (lambda: changed(qparams=FrozenMap({"w": QParams((1.0,), (0,), "int8", 0)})), "have 1 scales along axis 0"),
    ],
)
def test_each_broken_rule_is_found(broken: Any, message: str) -> None:
    verify(graph())
    with pytest.raises(GraphError, match=message):
        verify(broken())


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_qparams_of_an_integer_value_have_its_dtype(dtype: Any) -> None:
    inputs = {"x": TensorType((2,), dtype)}
    with pytest.raises(GraphError, match=f"{dtype}.*but its qparams are for int8"):
        verify(build("m", inputs, ["x"], [], qparams={"x": QParams(1.0, 0, "int8")}))


def test_a_note_shows_the_place() -> None:
    with pytest.raises(GraphError) as caught:
        verify(changed(nodes=node(1, op="nn.rellu")))
    assert caught.value.__notes__ == [
        '  %y = nn.dense(%x, @w);  // Tensor[(N, 2), float32], name="dense"\n'
        '> %z = nn.rellu(%y);  // Tensor[(N, 2), float32], name="relu"'
    ]
