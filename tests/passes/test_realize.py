"""Realize and legalize: names, types, and integers that follow from the scales alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import bind
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ir.verify import verify
from qbench.passes.annotate import AnnotatePass, quantized_value
from qbench.passes.legalize import LegalizePass
from qbench.passes.realize import RealizePass
from qbench.quant.arithmetic import add, dequantize, quantize, requantize, subtract
from qbench.quant.choose import power_of_two
from qbench.quant.fixed_point import quantized_multiplier, sixteen_bits
from qbench.quant.rescaling import rescale
from qbench.quant.rounding import Rounding
from qbench.runtime.interpreter import run
from tests.passes.quantizable import all_values, bind_qparams, every_op, min_max_qparams, sample, sqnr
from tests.passes.quantizable import node as named

FIXED: tuple[Rounding, ...] = ("tflite_single", "tflite_double", "tvm_upward", "tvm_tonearest")


def lowered(graph: Graph, rounding: Rounding, dtype: str = "uint8", per_channel: bool = True) -> list[Graph]:
    """Fake-quantized, realized, legalized."""
    annotated = AnnotatePass()(graph)
    q = min_max_qparams(annotated, all_values(graph, sample(graph)), dtype, per_channel)
    fake = bind_qparams(annotated, q)
    realized = RealizePass(rounding)(fake)
    return [fake, realized, LegalizePass()(realized)]


@pytest.mark.parametrize("rounding", [*FIXED, "fp32_rne"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_integers_are_as_accurate_as_the_fake_quantized_graph(rounding: Rounding, dtype: str) -> None:
    graph = every_op()
    x = sample(graph)
    fake, realized, legal = lowered(graph, rounding, dtype)
    for step in (fake, realized, legal):
        verify(step)
    exact, simulated, integers = (run(g, {"x": x})["f2"] for g in (graph, fake, legal))
    assert sqnr(exact, integers) > sqnr(exact, simulated) - 3
    assert sqnr(exact, integers) > 20
    np.testing.assert_array_equal(run(realized, {"x": x})["f2"], integers)


def test_names_of_nodes_and_constants_survive() -> None:
    graph = every_op()
    for step in lowered(graph, "tflite_single"):
        assert set(graph.by_name) <= set(step.by_name)
        assert {"w1", "b1", "w2", "g", "bb", "w3", "b3"} <= set(step.constants)
        assert {source for node in step.nodes for source in node.sources} <= set(graph.by_name)


def test_no_float_between_the_first_quantize_and_the_last_dequantize() -> None:
    legal = lowered(every_op(), "tflite_single")[2]
    for node in legal.nodes:
        if node.op not in ("qnn.quantize", "qnn.dequantize") and not node.reason:
            dtypes = {legal.types[value].dtype for value in (*node.inputs, *node.outputs)}
            assert not any("float" in dtype for dtype in dtypes), node


def test_fp32_rne_is_the_one_mode_with_float_multipliers() -> None:
    legal = lowered(every_op(), "fp32_rne")[2]
    floats = {node.op for node in legal.nodes if any(legal.types[v].dtype == "float32" for v in node.inputs)}
    assert floats == {"qnn.quantize", "integer.requantize_float32", "nn.softmax"}


def test_types_and_scales_of_parameters() -> None:
    legal = lowered(every_op(), "tflite_single")[2]
    assert (legal.types["w1"].dtype, legal.qparams["w1"].axis) == ("int8", 0)
    assert legal.types["b1"].dtype == "int32"
    expected = [legal.qparams["x.quantized"].scales[0] * scale for scale in legal.qparams["w1"].scales]
    np.testing.assert_allclose(legal.qparams["b1"].scales, expected)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    rounding=st.sampled_from([*FIXED, "fp32_rne"]),
    dtype=st.sampled_from(["uint8", "int8", "int16"]),
    per_channel=st.booleans(),
)
def test_each_integer_step_follows_from_the_scales(
    seed: int, rounding: Rounding, dtype: str, per_channel: bool
) -> None:
    """Fed with the graph's own integers, every step equals the references of `quant`, which know scales only."""
    graph = every_op(seed)
    _, realized, legal = lowered(graph, rounding, dtype, per_channel)
    values = all_values(legal, sample(graph, 2, seed))
    checked = 0
    for node in realized.nodes:
        expected = _reference(realized, node, values, rounding)
        if expected is not None:
            np.testing.assert_array_equal(values[node.output], expected, err_msg=node.name)
            checked += 1
    assert checked >= 20


def _reference(graph: Graph, node: Node, values: dict[str, NDArray[Any]], rounding: Rounding) -> NDArray[Any] | None:
    inputs = [values[value] for value in node.inputs]
    q = [graph.qparams.get(value) for value in node.inputs]
    out = graph.qparams.get(node.outputs[0])
    if node.op == "qnn.requantize" and q[0] is not None and out is not None:
        source = q[0]
        scale = np.asarray(source.scales) if source.axis is not None else source.scales[0]
        if source.dtype == "int64" and rounding == "tflite_double":
            ratio = np.asarray(source.scales) / np.float64(np.float32(out.scales[0]))
            column = [-1 if i == source.axis else 1 for i in range(inputs[0].ndim)]
            mantissa, shift = (part.reshape(column) for part in quantized_multiplier(ratio))
            wide = rescale(inputs[0], sixteen_bits(mantissa), shift, "tflite_single") + out.zero_points[0]
            return np.clip(wide, out.qmin, out.qmax)
        return requantize(inputs[0], scale, out, rounding, source.axis, source.zero_points[0])
    if node.op == "qnn.add" and rounding.startswith("tvm"):
        return add(*inputs, q[0], q[1], out, rounding)
    if node.op == "qnn.subtract" and rounding.startswith("tvm"):
        return subtract(*inputs, q[0], q[1], out, rounding)
    if node.op in ("qnn.conv2d", "qnn.dense", "qnn.multiply"):
        return _products(node, inputs, q)
    if node.op == "qnn.quantize" and out is not None:
        return quantize(inputs[0], out)
    if node.op == "qnn.dequantize" and q[0] is not None:
        return dequantize(inputs[0], q[0])
    return None


def _products(node: Node, inputs: list[NDArray[Any]], q: list[QParams | None]) -> NDArray[np.int64]:
    """Sums of products, one Python loop per tap or row."""
    assert q[0] is not None and q[1] is not None
    x = inputs[0].astype(np.int64) - q[0].zero_points[0]
    w = inputs[1].astype(np.int64) - q[1].zero_points[0]
    if node.op == "qnn.multiply":
        return x * w
    if node.op == "qnn.dense":
        return (x[..., np.newaxis, :] * w).sum(axis=-1)
    op: Any = bind(node, {})
    top, left, bottom, right = op.padding
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    kh, kw = w.shape[2:]
    height = (x.shape[2] - (kh - 1) * op.dilation[0] - 1) // op.strides[0] + 1
    width = (x.shape[3] - (kw - 1) * op.dilation[1] - 1) // op.strides[1] + 1
    sums = np.zeros((x.shape[0], w.shape[0], height, width), np.int64)
    per_group = w.shape[0] // op.groups
    for out, i, k, m in itertools.product(range(w.shape[0]), range(w.shape[1]), range(kh), range(kw)):
        channel = out // per_group * w.shape[1] + i
        rows = slice(k * op.dilation[0], None, op.strides[0])
        columns = slice(m * op.dilation[1], None, op.strides[1])
        sums[:, out] += x[:, channel, rows, columns][:, :height, :width] * w[out, i, k, m]
    return sums


def test_rounding_of_one_layer_can_differ() -> None:
    graph = every_op()
    annotated = AnnotatePass()(graph)
    fake = bind_qparams(annotated, min_max_qparams(annotated, all_values(graph, sample(graph))))
    realized = RealizePass("tflite_single", FrozenMap({"conv1.bias_add": "tvm_upward"}))(fake)
    assert realized.node("conv1.requantize").attrs["rounding"] == "tvm_upward"
    assert realized.node("fc.requantize").attrs["rounding"] == "tflite_single"


def test_quantized_value_finds_the_integers_of_inputs_inner_tensors_and_outputs() -> None:
    legal = lowered(every_op(), "tflite_single")[2]
    found = {tensor: quantized_value(legal, tensor) for tensor in ("x", "r1", "c1", "f2", "y")}
    assert found == {"x": "x.quantized", "r1": "r1", "c1": "c1", "f2": "f2.quantized", "y": None}
    assert legal.types["c1"].dtype == "int32"


def test_a_sum_that_could_leave_int32_gets_a_64_bit_accumulator() -> None:
    legal = lowered(every_op(), "tflite_single", "int16")[2]
    dtypes = {node.name: legal.types[node.output].dtype for node in legal.nodes if node.op.startswith("integer.conv")}
    assert set(dtypes.values()) <= {"int32", "int64"}
    values = all_values(legal, sample(every_op()))
    for name, dtype in dtypes.items():
        assert values[legal.node(name).output].dtype == dtype


@pytest.mark.parametrize(("narrow", "smallest"), [(True, -127), (False, -128)])
def test_clipped_weights_leave_the_smallest_integer_unused_if_so_asked(narrow: bool, smallest: int) -> None:
    graph = every_op()
    annotated = AnnotatePass(narrow_weights=narrow)(graph)
    q = min_max_qparams(annotated, all_values(graph, sample(graph)))
    q["w3"] = QParams(1e-4, 0, "int8")
    realized = RealizePass()(bind_qparams(annotated, q))
    assert realized.constants["w3"].array.min() == smallest


@pytest.mark.parametrize("rounding", ["pow2_half_up", "pow2_half_even"])
def test_power_of_two_scales_need_shifts_only_but_for_averages_of_other_counts(rounding: Rounding) -> None:
    graph = every_op()
    x = sample(graph)
    annotated = AnnotatePass()(graph)
    plain = min_max_qparams(annotated, all_values(graph, x))
    fake = bind_qparams(annotated, {tensor: power_of_two(q) for tensor, q in plain.items()})
    legal = LegalizePass()(RealizePass(rounding)(fake))
    assert {node.name for node in legal.nodes if node.op == "integer.requantize"} == {"average.requantize"}
    assert sqnr(run(graph, {"x": x})["f2"], run(legal, {"x": x})["f2"]) > 20


@pytest.mark.parametrize("op", ["nn.batch_matmul", "multiply"])
def test_a_constant_may_be_the_left_factor(op: str) -> None:
    array = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    x = TensorType((5, 4) if op == "nn.batch_matmul" else (3, 5), "float32")
    graph = build("g", {"x": x}, ["y"], [Node("product", op, ("k", "x"), ("y",))], {"k": Constant(array)})
    feeds = {"x": np.random.default_rng(1).normal(size=x.shape).astype(np.float32)}
    annotated = AnnotatePass()(graph)
    q = min_max_qparams(annotated, all_values(graph, feeds["x"]))
    integers = LegalizePass()(RealizePass()(bind_qparams(annotated, q)))
    assert sqnr(run(graph, feeds)["y"], run(integers, feeds)["y"]) > 30


def test_a_fill_that_an_edge_pad_does_not_use_is_an_integer_too() -> None:
    nodes = [
        named("s", "sigmoid", "x", "s"),
        named("p", "nn.pad", "s", "p", pad_width=((0, 0), (0, 1)), mode="edge", pad_value=-np.inf),
        named("t", "tanh", "p", "y"),
    ]
    realized = lowered(build("edge", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, {}), "tflite_single")[1]
    q = realized.qparams[realized.node("p").output]
    assert realized.node("p").attrs["pad_value"] == q.qmin
