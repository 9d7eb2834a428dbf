"""Patterns of dequantize, float op, quantize, each with the ops it becomes and bit-exact results.

Scales are powers of two, so that the float graph computes without error: then it and the integers must agree wherever
no tie is broken differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.ir.verify import verify
from qbench.passes.legalize import LegalizePass
from qbench.passes.qdq_to_qnn import QdqToQnnPass
from qbench.quant.arithmetic import add, requantize, subtract
from qbench.runtime.interpreter import run
from tests.passes.qdq_nets import Net, assert_equal, feeds, ops, q

RNG = np.random.default_rng(7)
X, Y, Z = q(0.5, 3), q(2.0, -4), q(0.25, 10)
ROUGH, SUM = q(16.0, 5), q(4.0, 2)
UX, UY = q(0.5, 130, "uint8"), q(4.0, 120, "uint8")
WEIGHT = RNG.integers(-127, 128, (4, 3, 3, 3))
PER_CHANNEL = QParams((0.5, 0.25, 1.0, 0.125), (0, 0, 0, 0), "int8", 0)


def conv(x: QParams = X, w: QParams = PER_CHANNEL, after: str = "", bias: str = "", out: QParams = ROUGH) -> Graph:
    net = Net()
    y = net.op("nn.conv2d", net.input((2, 3, 6, 5), x), net.stored(WEIGHT, w), strides=(2, 1), padding=(1, 0, 1, 1))
    if bias:
        numbers, scales = RNG.integers(-5000, 5000, 4), tuple(x.scales[0] * s for s in w.scales)
        units = QParams(scales, (0,) * 4, "int32", 0) if len(scales) > 1 else QParams(scales[0], 0, "int32")
        real = net.constant(numbers * 0.5, "b") if bias == "float" else net.stored(numbers, units, "b")
        y = net.op("nn.bias_add", y, real)
    if after == "relu":
        y = net.op("nn.relu", y)
    if after == "clip":
        y = net.op("clip", y, a_min=-100.0, a_max=320.0)
    return net.graph(net.quantized(y, out))


def dense(bias: bool = False, x: QParams = X) -> Graph:
    net = Net()
    weight = net.stored(RNG.integers(-127, 128, (5, 8)), QParams((0.5,) * 4 + (0.25,), (0,) * 5, "int8", 0))
    y = net.op("nn.dense", net.input((3, 8), x), weight)
    if bias:
        y = net.op("nn.bias_add", y, net.constant(RNG.integers(-50, 50, 5) * 0.5, "b"))
    return net.graph(net.quantized(y, q(32.0, 7)))


def matmul(constant: bool = False) -> Graph:
    net = Net()
    rhs = net.stored(RNG.integers(-127, 128, (2, 8, 5)), q(0.5), "m") if constant else net.input((2, 8, 5), UX, "m")
    return net.graph(net.quantized(net.op("nn.batch_matmul", net.input((2, 4, 8), X), rhs), q(64.0, 9)))


def transposed() -> Graph:
    net = Net()
    weight = net.stored(RNG.integers(-127, 128, (3, 2, 2, 2)), QParams((0.5, 0.25), (0, 0), "int8", 1))
    y = net.op("nn.conv2d_transpose", net.input((1, 3, 4, 4), X), weight, strides=(2, 2))
    return net.graph(net.quantized(y, q(16.0, 5)))


def two(op: str, lhs: QParams = X, rhs: QParams = Y, out: QParams = SUM, after: str = "") -> Graph:
    net = Net()
    y = net.op(op, net.input((2, 3, 4), lhs, "a"), net.input((3, 1), rhs, "b"))
    y = net.op(after, y) if after else y
    return net.graph(net.quantized(y, out))


def with_constant(op: str) -> Graph:
    net = Net()
    y = net.op(op, net.stored(np.arange(4) - 2, q(0.5), "c"), net.input((2, 3, 4), X))
    return net.graph(net.quantized(y, q(1.0, 2)))


def one_number(op: str, first: bool = False, after: str = "") -> Graph:
    net = Net()
    x, number = net.input((2, 3), X), net.constant(np.asarray(0.375))
    y = net.op(op, *((number, x) if first else (x, number)))
    return net.graph(net.quantized(net.op(after, y) if after else y, Y))


def one(op: str, sizes: tuple[int, ...] = (2, 4, 6, 8), out: QParams = X, x: QParams = X, **attrs: object) -> Graph:
    net = Net()
    return net.graph(net.quantized(net.op(op, net.input(sizes, x), **attrs), out))  # pyright: ignore[reportArgumentType]


def joined(*sources: QParams, out: QParams = X) -> Graph:
    net = Net()
    parts = [net.input((2, 3), source, f"x{index}") for index, source in enumerate(sources)]
    return net.graph(net.quantized(net.op("concatenate", *parts, axis=1), out))


def cut(out: QParams = X) -> Graph:
    net = Net()
    parts = net.many("split", (net.input((2, 9), X),), 3, cuts=(2, 5), axis=1)
    return net.graph(*(net.quantized(part, out) for part in parts))


def chosen(rhs: QParams = X) -> Graph:
    net = Net()
    net.constants["mask"] = Constant(np.arange(6).reshape(2, 3) % 2 == 0)
    y = net.op("where", "mask", net.input((2, 3), X, "a"), net.input((2, 3), rhs, "b"))
    return net.graph(net.quantized(y, X))


def chain(*qs: QParams) -> Graph:
    net = Net()
    value = net.input((4, 64), X)
    for each in qs[:-1]:
        value = net.op("qnn.dequantize", net.quantized(value, each))
    return net.graph(net.quantized(value, qs[-1]))


C, R = Counter, "requantize"
PATTERNS: dict[str, tuple[Callable[[], Graph], dict[str, int]]] = {
    "conv": (conv, {"conv2d": 1, R: 1}),
    "conv, one scale": (lambda: conv(w=q(0.5)), {"conv2d": 1, R: 1}),
    "conv of uint8": (lambda: conv(x=UX), {"conv2d": 1, R: 1}),
    "conv, weights with a zero point": (lambda: conv(w=q(0.5, 3)), {"conv2d": 1, R: 1}),
    "conv to uint8": (lambda: conv(out=q(16.0, 100, "uint8")), {"conv2d": 1, R: 1}),
    "conv to int16": (lambda: conv(out=q(0.5, 0, "int16")), {"conv2d": 1, R: 1}),
    "conv, int32 bias": (lambda: conv(bias="int32"), {"conv2d": 1, "bias_add": 1, R: 1}),
    "conv, float bias": (lambda: conv(bias="float"), {"conv2d": 1, "bias_add": 1, R: 1}),
    "conv, relu": (lambda: conv(after="relu"), {"conv2d": 1, R: 1, "clip": 1}),
    "conv, bias, relu": (lambda: conv(bias="int32", after="relu"), {"conv2d": 1, "bias_add": 1, R: 1, "clip": 1}),
    "conv, relu that the type does": (lambda: conv(after="relu", out=q(16.0, -128)), {"conv2d": 1, R: 1}),
    "conv, clip": (lambda: conv(after="clip"), {"conv2d": 1, R: 1, "clip": 1}),
    "transposed conv": (transposed, {"conv2d_transpose": 1, R: 1}),
    "dense": (dense, {"dense": 1, R: 1}),
    "dense, bias": (lambda: dense(bias=True), {"dense": 1, "bias_add": 1, R: 1}),
    "dense of uint8": (lambda: dense(x=UX), {"dense": 1, R: 1}),
    "batch matmul": (matmul, {"batch_matmul": 1, R: 1}),
    "batch matmul with a constant": (lambda: matmul(True), {"batch_matmul": 1, R: 1}),
    "add": (lambda: two("add"), {"add": 1}),
    "add of uint8": (lambda: two("add", UX, UY, UY), {"add": 1}),
    "add of two types": (lambda: two("add", X, UX), {"binary": 1}),
    "add, relu": (lambda: two("add", after="nn.relu"), {"add": 1, "clip": 1}),
    "add of a constant": (lambda: with_constant("add"), {"add": 1}),
    "subtract": (lambda: two("subtract"), {"binary": 1}),
    "multiply": (lambda: two("multiply"), {"multiply": 1, R: 1}),
    "multiply, relu": (lambda: two("multiply", after="nn.relu"), {"multiply": 1, R: 1, "clip": 1}),
    "multiply by a constant": (lambda: with_constant("multiply"), {"multiply": 1, R: 1}),
    "multiply by a number": (lambda: one_number("multiply"), {"unary": 1}),
    "a number less an element": (lambda: one_number("subtract", True, "nn.relu"), {"unary": 1, "clip": 1}),
    "divide": (lambda: two("divide"), {"binary": 1}),
    "maximum, equal scales": (lambda: two("maximum", X, X, X), {"maximum": 1}),
    "maximum": (lambda: two("maximum"), {"maximum": 1, R: 2}),
    "minimum": (lambda: two("minimum"), {"minimum": 1, R: 2}),
    "max pool": (lambda: one("nn.max_pool2d", pool_size=(2, 2), strides=(2, 2)), {"max_pool2d": 1}),
    "max pool, other scale": (
        lambda: one("nn.max_pool2d", out=Y, pool_size=(2, 2), strides=(2, 2)),
        {"max_pool2d": 1, R: 1},
    ),
    "average pool": (lambda: one("nn.avg_pool2d", out=Y, pool_size=(2, 2), strides=(2, 2)), {"avg_pool2d": 1}),
    "global average": (lambda: one("nn.global_avg_pool2d", (2, 3, 4, 8), Y), {"sum": 1, R: 1}),
    "global maximum": (lambda: one("nn.global_max_pool2d"), {"global_max_pool2d": 1}),
    "mean": (lambda: one("mean", (2, 3, 8), Z, axes=(2,)), {"sum": 1, R: 1}),
    "mean without the axes": (lambda: one("mean", (2, 4, 8), Z, axes=(1, 2), keepdims=False), {"sum": 1, R: 1}),
    "max over axes": (lambda: one("max", axes=(1,)), {"max": 1}),
    "min over axes": (lambda: one("min", axes=(2, 3)), {"min": 1}),
    "concatenate, equal scales": (lambda: joined(X, X, X), {"concatenate": 1}),
    "concatenate": (lambda: joined(X, Y, Z), {"concatenate": 1}),
    "split": (cut, {"split": 1}),
    "split, other scale": (lambda: cut(Y), {"split": 1, R: 3}),
    "strided slice": (
        lambda: one("strided_slice", begin=(1,), end=(4,), strides=(2,), axes=(2,)), {"strided_slice": 1}
    ),
    "pad": (lambda: one("nn.pad", pad_width=((0, 0), (0, 0), (1, 2), (0, 1))), {"pad": 1}),
    "pad with a number": (
        lambda: one("nn.pad", pad_width=((0, 0), (0, 0), (1, 2), (0, 1)), pad_value=-4.0), {"pad": 1}
    ),
    "reshape": (lambda: one("reshape", newshape=(8, -1)), {"reshape": 1}),
    "reshape, other scale": (lambda: one("reshape", out=Y, newshape=(8, -1)), {"reshape": 1, R: 1}),
    "transpose": (lambda: one("transpose", axes=(0, 2, 3, 1)), {"transpose": 1}),
    "squeeze": (lambda: one("squeeze", (2, 1, 3), axes=(1,)), {"squeeze": 1}),
    "expand dims": (lambda: one("expand_dims", axes=(1,)), {"expand_dims": 1}),
    "flatten": (lambda: one("nn.batch_flatten"), {"batch_flatten": 1}),
    "broadcast": (lambda: one("broadcast_to", (2, 1, 3), shape=(2, 5, 3)), {"broadcast_to": 1}),
    "depth to space": (lambda: one("nn.depth_to_space", block_size=2), {"depth_to_space": 1}),
    "resize to the nearest": (lambda: one("image.resize2d", size=(12, 16)), {"image.resize2d": 1}),
    "where": (chosen, {"where": 1}),
    "where, other scale": (lambda: chosen(Y), {"where": 1, R: 1}),
    "relu": (lambda: one("nn.relu"), {"clip": 1}),
    "relu, other scale": (lambda: one("nn.relu", out=Y), {"unary": 1}),
    "clip": (lambda: one("clip", a_min=-3.0, a_max=6.0), {"clip": 1}),
    "leaky relu": (lambda: one("nn.leaky_relu", alpha=0.25), {"unary": 1}),
    "absolute value": (lambda: one("abs", out=Y), {"unary": 1}),
    "square root": (lambda: one("sqrt", x=q(0.5, -128)), {"unary": 1}),
    "exponential": (lambda: one("exp", out=Y), {"unary": 1}),
    "hard swish": (lambda: one("nn.hard_swish", out=Y), {"unary": 1}),
    "gelu": (lambda: one("nn.gelu", out=Y), {"unary": 1}),
    "dequantize, quantize": (lambda: chain(X, Y), {R: 1}),
    "a chain of scales": (lambda: chain(Y, Z, q(1.0, 7, "uint8")), {R: 3}),
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_becomes_integers_that_are_what_the_reals_were(pattern: str) -> None:
    make, expected = PATTERNS[pattern]
    literal = make()
    converted = QdqToQnnPass()(literal)
    verify(converted)
    assert ops(converted) == expected
    assert all(node.sources for node in converted.nodes)
    assert_equal(literal, converted)
    assert_equal(converted, LegalizePass()(converted))


FIXED = {
    "softmax": (lambda: one("nn.softmax", (2, 9), q(1 / 256, -128)), {"softmax": 1}),
    "softmax of uint8": (lambda: one("nn.softmax", (2, 9), q(1 / 256, 0, "uint8"), UX), {"softmax": 1}),
    "softmax, a scale that TFLite has not": (
        lambda: one("nn.softmax", (2, 9), q(1 / 128, -128)), {"dequantize": 1, "softmax": 1, "quantize": 1}
    ),
    "log softmax": (lambda: one("nn.log_softmax", (2, 9), q(1 / 16, 127)), {"log_softmax": 1}),
}  # fmt: skip


@pytest.mark.parametrize("pattern", FIXED)
def test_kernels_of_tflite_make_integers_where_they_can(pattern: str) -> None:
    make, expected = FIXED[pattern]
    literal = make()
    converted = QdqToQnnPass("tflite")(literal)
    assert ops(converted) == expected
    (name,), x = literal.outputs, feeds(literal)
    meant, made = run(literal, x)[name].astype(int), run(converted, x)[name].astype(int)
    assert np.abs(meant - made).max() <= 1  # TFLite's own arithmetic, not a rounding of the real numbers


def test_a_float_graph_stays_what_it_is() -> None:
    net = Net()
    graph = net.graph(net.op("nn.relu", net.real((2, 3))))
    assert QdqToQnnPass()(graph) is graph


def test_names_and_sources_are_those_of_the_file() -> None:
    net = Net()
    y = net.op("nn.dense", net.input((3, 8), X), net.stored(np.ones((5, 8)), q(0.5)))
    y = net.op("nn.bias_add", y, net.constant(np.ones(5), "b"))
    graph = QdqToQnnPass()(net.graph(net.quantized(net.op("nn.relu", y), q(32.0, 7))))
    (out,) = graph.outputs
    assert [node.outputs for node in graph.nodes] == [
        (f"{out}.accumulator",), (f"{out}.summed",), (f"{out}.unclamped",), (out,),
    ]  # fmt: skip
    head, bias, rounding, clip = graph.nodes
    assert head.name == "n2" and bias.name == "n3" and clip.name == "n4"
    assert rounding.sources == ("n2", "n3", "n4", "n5")
    assert {"w", "b"} <= graph.constants.keys() and graph.constants["b"].dtype == "int32"


def test_one_dequantize_feeds_several_ops_and_one_result_several_scales() -> None:
    net = Net()
    x = net.input((2, 6), X)
    y = net.op("nn.dense", x, net.stored(RNG.integers(-9, 9, (4, 6)), q(0.5)))
    graph = net.graph(
        net.quantized(y, Y),
        net.quantized(y, q(16.0, 3, "uint8")),
        net.quantized(net.op("add", x, x), Y),
        net.op("abs", x),
    )
    converted = QdqToQnnPass()(graph)
    assert ops(converted) == {"dense": 1, R: 2, "add": 1, "dequantize": 1, "abs": 1}
    assert_equal(graph, converted)


def test_a_tensor_quantized_twice_alike_is_quantized_once() -> None:
    net = Net()
    y = net.op("add", net.input((4,), X, "a"), net.input((4,), X, "b"))
    first, second = (net.op("qnn.dequantize", net.quantized(y, Y)) for _ in range(2))
    graph = net.graph(net.quantized(net.op("multiply", first, second), q(16.0, 2)))
    converted = QdqToQnnPass()(graph)
    assert ops(converted) == {"add": 1, "multiply": 1, R: 1}
    assert_equal(graph, converted)


def test_quantize_of_what_was_dequantized_alike_is_nothing() -> None:
    net = Net()
    x = net.input((4,), X)
    again = net.op("qnn.dequantize", net.quantized(x, X))
    converted = QdqToQnnPass()(net.graph(net.quantized(net.op("add", again, x), Y)))
    assert ops(converted) == {"add": 1}
    assert converted.nodes[0].inputs == ("x", "x")


def test_moves_go_before_the_dequantize_also_where_nothing_is_quantized_after_them() -> None:
    net = Net()
    x = net.op("transpose", net.op("reshape", net.input((2, 6), X), newshape=(3, 4)), axes=(1, 0))
    graph = net.graph(x)
    converted = QdqToQnnPass()(graph)
    assert [node.op for node in converted.nodes] == ["reshape", "transpose", "qnn.dequantize"]
    assert converted.outputs == graph.outputs
    assert_equal(graph, converted)


def test_the_index_of_the_largest_is_found_among_the_integers() -> None:
    net = Net()
    graph = net.graph(net.op("argmax", net.input((2, 6), X), axis=1))
    converted = QdqToQnnPass()(graph)
    assert ops(converted) == {"argmax": 1}
    assert_equal(graph, converted)


def test_an_accumulator_is_dequantized_where_reals_are_read() -> None:
    net = Net()
    y = net.op("nn.conv2d", net.input((1, 3, 5, 5), X), net.stored(WEIGHT, PER_CHANNEL))
    graph = net.graph(net.op("nn.relu", net.op("nn.bias_add", y, net.constant(np.arange(4.0), "b"))))
    converted = QdqToQnnPass()(graph)
    assert ops(converted) == {"conv2d": 1, "bias_add": 1, "dequantize": 1, "relu": 1}
    assert converted.node("n4").reason == "unsupported: 'n3.0' has a scale for each index of axis 1"
    assert_equal(graph, converted)


@pytest.mark.parametrize("scale", [0.25, 0.2501, 0.75])
def test_a_bias_in_other_units_is_brought_to_those_of_the_accumulator(scale: float) -> None:
    net = Net()
    y = net.op("nn.dense", net.input((3, 8), X), net.stored(np.zeros((5, 8)), q(0.5)))
    y = net.op("nn.bias_add", y, net.stored(np.arange(5) * 300, q(scale, 0, "int32"), "b"))
    converted = QdqToQnnPass()(net.graph(net.quantized(y, q(1.0))))
    (bias,) = (node.inputs[1] for node in converted.nodes if node.op == "nn.bias_add")
    wanted = np.arange(5) * 300 if abs(scale - 0.25) < 2e-4 else np.rint(np.arange(5) * 300 * np.float32(scale) / 0.25)
    np.testing.assert_array_equal(converted.constants[bias].array, wanted)


def test_sums_that_may_leave_int32_are_wide() -> None:
    net = Net()
    weight = net.stored(np.full((2, 70000), 32767), q(0.5, 0, "int16"))
    y = net.op("nn.dense", net.input((1, 70000), q(0.5, 0, "int16")), weight)
    graph = QdqToQnnPass()(net.graph(net.quantized(y, q(64.0, 0, "int16"))))
    assert graph.types[graph.nodes[0].output].dtype == "int64"


REASONS: dict[str, tuple[Callable[[Net], str], str]] = {
    "relu": (lambda net: net.quantized(net.op("nn.relu", net.real((2, 3))), X), "its input 'r' is not quantized"),
    "add": (
        lambda net: net.quantized(net.op("add", net.input((2, 3), X), net.constant(np.ones(3))), X),
        "its constant 'c' is not quantized",
    ),
    "multiply": (
        lambda net: net.op("multiply", net.input((2, 3), X), net.input((2, 3), X, "y")),
        "its result 'n2.0' is read as real numbers",
    ),
    "pad": (
        lambda net: net.op("nn.pad", net.input((3,), X), pad_width=((1, 1),), pad_value=0.3),
        "no integer stands for",
    ),
    "tanh": (
        lambda net: net.quantized(net.op("tanh", net.input((3,), QParams((0.1, 0.2, 0.3), (0, 0, 0), "int8", 0))), X),
        "has a scale for each index of axis 0",
    ),
    "resize2d": (
        lambda net: net.quantized(
            net.op("image.resize2d", net.input((1, 1, 4, 4), X), size=(8, 8), method="linear"), X
        ),
        "linear interpolation has no integer form in onnx",
    ),
}


@pytest.mark.parametrize("op", REASONS)
def test_what_stays_float_says_why(op: str) -> None:
    make, why = REASONS[op]
    net = Net()
    graph = net.graph(make(net))
    converted = QdqToQnnPass()(graph)
    (node,) = (node for node in converted.nodes if node.op.endswith(op))
    assert why in node.reason
    assert_equal(graph, converted)


@pytest.mark.parametrize("semantics", ["tvm", "tflite"])
def test_other_arithmetic_is_a_matter_of_rounding(semantics: str) -> None:
    x, w = RNG.integers(-128, 128, (3, 8)).astype(np.int8), RNG.integers(-127, 128, (5, 8))
    out = q(13.7, 7)
    net = Net()
    net_out = net.quantized(net.op("nn.dense", net.input((3, 8), q(0.31, 3)), net.stored(w, q(0.77))), out)
    converted = QdqToQnnPass(semantics)(net.graph(net_out))  # pyright: ignore[reportArgumentType]
    sums = (x.astype(np.int64) - 3) @ w.T
    rounding = "tvm_upward" if semantics == "tvm" else "tflite_single"
    scale = float(np.float32(0.31)) * float(np.float32(0.77))
    wanted = requantize(sums, scale, out, rounding)
    np.testing.assert_array_equal(run(converted, {"x": x})[net_out], wanted)


@pytest.mark.parametrize("op", ["add", "subtract"])
def test_sums_in_tvm_are_two_requantizes(op: str) -> None:
    lhs, rhs, out = q(0.31, 3), q(0.77, -9), q(0.9, 11)
    net = Net()
    made = net.quantized(net.op(op, net.input((64,), lhs, "a"), net.input((64,), rhs, "b")), out)
    graph = net.graph(made)
    given = feeds(graph)
    wanted = {"add": add, "subtract": subtract}[op](given["a"], given["b"], lhs, rhs, out, "tvm_upward")
    np.testing.assert_array_equal(run(QdqToQnnPass("tvm")(graph), given)[made], wanted)


@pytest.mark.parametrize("after", ["", "nn.relu"])
def test_a_bias_on_its_own_is_added_in_finer_units_where_the_runtime_has_integers_for_it(after: str) -> None:
    net = Net()
    y = net.op("nn.bias_add", net.input((2, 5), q(0.31, 3)), net.constant(np.linspace(-9, 9, 5), "b"))
    made = net.quantized(net.op(after, y) if after else y, q(0.4, -11))
    graph = net.graph(made)
    converted, real = QdqToQnnPass("tvm")(graph), QdqToQnnPass()(graph)
    assert ops(converted) == {R: 2, "bias_add": 1} | ({"clip": 1} if after else {})
    given = feeds(graph)
    differences = run(converted, given)[made].astype(int) - run(graph, given)[made]
    assert np.abs(differences).max() <= 1
    assert "a bias on its own" in next(node for node in real.nodes if node.op == "nn.bias_add").reason


def test_scales_too_far_apart_for_float32_stay_float() -> None:
    graph = QdqToQnnPass()(conv(x=q(1e30), w=q(1e30), out=q(1e-30), bias="float"))
    (node,) = (node for node in graph.nodes if node.op == "nn.conv2d")
    assert node.reason == "unsupported: scales as far apart as a factor of 1e+90"
    assert graph.constants["b"].dtype == "float32"


def test_a_scale_near_the_largest_number_needs_no_bounds() -> None:
    assert ops(QdqToQnnPass()(conv(out=q(1e38)))) == {"conv2d": 1, R: 1}


def test_integers_are_not_guarded_against_nan() -> None:
    net = Net()
    x = net.input((3, 8), X)
    guarded = net.op("where", net.op("is_nan", x), net.constant(np.zeros(()), "n"), x)
    graph = net.graph(net.quantized(guarded, Y), guarded)
    found = QdqToQnnPass()(graph)
    assert ops(found) == {"dequantize": 1, R: 1}
    assert_equal(graph, found)


def test_a_guarded_softmax_is_one_between_integers_too() -> None:
    net = Net()
    mask = np.array([[0, -np.inf] * 4, [-np.inf, 0] * 4, [-np.inf] * 8])
    masked = net.op("add", net.input((3, 8), X), net.constant(mask, "mask"))
    s = net.op("nn.softmax", masked)
    safe = net.op("where", net.op("is_nan", s), net.constant(np.zeros(()), "n"), s)
    graph = net.graph(net.quantized(safe, q(1 / 256, -128)))
    found = QdqToQnnPass()(graph)
    assert ops(found) == {"dequantize": 1, "add": 1, "softmax": 1, "quantize": 1}
    assert_equal(graph, found)
    (made,) = run(found, feeds(graph)).values()
    assert (made[2] == -128).all()
