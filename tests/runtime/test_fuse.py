"""Which nodes become one step."""

import numpy as np
import pytest

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Epilogue
from qbench.ir.types import TensorType
from qbench.runtime.fuse import fuse


def dense_layer(outputs: list[str], *more: Node) -> Graph:
    """x -> dense -> bias_add -> requantize -> clip."""
    nodes = [
        Node("dense", "integer.dense", ("x", "w"), ("sums",)),
        Node("bias", "nn.bias_add", ("sums", "b"), ("biased",)),
        Node(
            "requantize",
            "integer.requantize",
            ("biased", "m", "s"),
            ("narrow",),
            FrozenMap({"dtype": "uint8", "rounding": "tflite_single"}),
        ),
        Node("clip", "clip", ("narrow",), ("y",), FrozenMap({"a_min": 3.0, "a_max": 200.0})),
        *more,
    ]
    constants = {
        "w": Constant(np.ones((4, 8), np.int8)),
        "b": Constant(np.ones(4, np.int32)),
        "m": Constant(np.full(4, 1 << 30, np.int32)),
        "s": Constant(np.full(4, -3, np.int32)),
    }
    return build("g", {"x": TensorType((1, 8), "uint8")}, outputs, nodes, constants)


def names(graph: Graph, keep: tuple[str, ...] = ()) -> list[list[str]]:
    return [[node.name for node in step.nodes] for step in fuse(graph, keep)]


def test_what_follows_a_product_joins_it():
    assert names(dense_layer(["y"])) == [["dense", "bias", "requantize", "clip"]]


def test_nothing_is_fused_behind_a_value_that_is_kept_or_an_output():
    assert names(dense_layer(["y"]), keep=("biased",)) == [["dense", "bias"], ["requantize", "clip"]]
    assert names(dense_layer(["y", "narrow"])) == [["dense", "bias", "requantize"], ["clip"]]


def test_nothing_is_fused_behind_a_value_that_two_read():
    other = Node("other", "clip", ("narrow",), ("z",), FrozenMap({"a_min": 0.0, "a_max": 9.0}))
    assert names(dense_layer(["y", "z"], other)) == [["dense", "bias", "requantize"], ["clip"], ["other"]]


def residual(operands: str, other: Node | None = None, size: int = 4) -> Graph:
    """A dense layer, its bias, a sum with these operands, a clamp."""
    nodes = [
        *([other] if other else []),
        Node("dense", "nn.dense", ("x", "w"), ("products",)),
        Node("bias", "nn.bias_add", ("products", "b"), ("biased",), FrozenMap({"axis": -1})),
        Node("sum", "add", tuple(operands.split()), ("total",)),
        Node("relu", "nn.relu", ("total",), ("y",)),
    ]
    numbers = {
        "w": np.ones((4, 8), "f4"),
        "b": np.ones(4, "f4"),
        "v": np.ones((4, 8), "f4"),
        "c": np.ones((1, 4), "f4"),
    }
    inputs = {"x": TensorType((1, 8), "float32"), "z": TensorType((1, size), "float32")}
    return build("g", inputs, ["y"], nodes, {name: Constant(array) for name, array in numbers.items()})


def with_sums(graph: Graph, keep: tuple[str, ...] = ()) -> list[list[str]]:
    return [[node.name for node in step.nodes] for step in fuse(graph, keep, lambda _: Epilogue)]


def test_a_sum_with_another_value_joins_the_product_that_kernels_can_add_it_to():
    for operands in ("biased z", "z biased"):
        graph = residual(operands)
        assert names(graph) == [["dense", "bias"], ["sum", "relu"]]
        assert with_sums(graph) == [["dense", "bias", "sum", "relu"]]
        (step,) = fuse(graph, (), lambda _: Epilogue)
        assert step.inputs(graph) == ("x", "z")
        assert with_sums(graph, ("biased",)) == [["dense", "bias"], ["sum", "relu"]]


def test_a_sum_does_not_join_where_it_repeats_an_operand_or_adds_a_constant_or_the_value_to_itself():
    for graph in (residual("biased z", size=1), residual("biased c"), residual("biased biased")):
        assert with_sums(graph) == [["dense", "bias"], ["sum", "relu"]]


def test_a_sum_of_two_products_joins_one_of_them():
    graph = residual("biased other", Node("second", "nn.dense", ("x", "v"), ("other",)))
    assert with_sums(graph) == [["dense", "bias"], ["second", "sum", "relu"]]


def scaled(operands: str, *before: Node, cast: str = "float32") -> Graph:
    """A product of integers, cast and multiplied by a value."""
    nodes = [
        *before,
        Node("product", "integer.matmul_dynamic", ("x", "w", "zero", "zeros"), ("sums",)),
        Node("cast", "cast", ("sums",), ("real",), FrozenMap({"dtype": cast})),
        Node("scale", "multiply", tuple(operands.split()), ("y",)),
    ]
    inputs = {"x": TensorType((1, 8), "uint8"), "zero": TensorType((), "uint8"), "s": TensorType((1,), cast)}
    inputs["t"] = TensorType((3, 4), cast)
    constants = {"w": Constant(np.ones((8, 4), np.int8)), "zeros": Constant(np.zeros(1, np.int8))}
    return build("g", inputs, ["y"], nodes, constants)


@pytest.mark.parametrize("operands", ["real s", "s real"])
def test_a_scale_that_is_known_at_run_time_joins_the_product_that_is_cast(operands: str):
    graph = scaled(operands)
    assert names(graph) == [["product", "cast", "scale"]]
    (step,) = fuse(graph)
    assert step.inputs(graph) == ("x", "zero", "s")


def test_a_scale_does_not_join_where_it_repeats_the_value_or_changes_its_shape_or_multiplies_integers():
    for operands in ("real real", "real t"):
        assert names(scaled(operands)) == [["product", "cast"], ["scale"]]
    graph = scaled("real s")
    integers = [graph.node("product"), Node("scale", "multiply", ("sums", "sums"), ("y",))]
    inputs = {name: graph.types[name] for name in ("x", "zero")}
    assert names(build("g", inputs, ["y"], integers, graph.constants)) == [["product"], ["scale"]]


def test_a_step_knows_what_it_reads_and_makes():
    graph = dense_layer(["y"])
    (step,) = fuse(graph)
    assert step.inputs(graph) == ("x",)
    assert step.outputs == ("y",)
