"""Float graphs as programs, against the interpreter: each op, fused layers, layouts that meet, whole models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.frontends import load
from qbench.ir.op import OPS
from qbench.ir.types import dim_factors
from qbench.kernels.levels import Level
from qbench.ops.float.recurrent import Recurrent
from qbench.passes.prepare import prepare
from qbench.runtime.lowerings.lowering import LOWERINGS
from qbench.runtime.programs import plan
from tests.graphs import graph_of, masked_softmax
from tests.ops.samples import SAMPLES
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.layers import node

MODELS = (
    "imagenet/efficientnet_lite0_bn.onnx",
    "imagenet/squeezenet1.1_fp32_opset13.onnx",
    "mlperf_tiny/ic_resnet8_fp32.onnx",
    "mlperf_tiny/kws_dscnn_fp32_bn.onnx",
    "mlperf_tiny/vww_mobilenetv1_025_fp32.onnx",
    "mlperf_tiny/ad_autoencoder_fp32.onnx",
    "cifar/resnet20_cifar10_bn.onnx",
    "zoo/mtcnn_onet.onnx",
    "zoo/ort_mnist.onnx",
    "zoo/ort_superresolution_core_op18.onnx",
    "zoo/ort_ultraface_rfb320.onnx",
    "zoo/rapidocr_cls.onnx",
)
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))

SEVERAL = {"split", "topk", *(op for op, declared in OPS.items() if issubclass(declared, Recurrent))}
"""Ops with several results, which have tests of their own."""
HALVES = ("nn.dense", "add", "sigmoid", "mean", "nn.softmax", "nn.max_pool2d", "image.resize2d", "nn.bias_add")


@pytest.mark.parametrize(
    "op, dtype",
    [
        *((op, "float32") for op in sorted(SAMPLES.keys() & LOWERINGS.keys() - SEVERAL)),
        *((op, "float16") for op in HALVES),
    ],
)
def test_each_op(op, dtype):
    operands, attrs, _ = SAMPLES[op]
    arrays = {f"x{i}": a.astype(dtype) if a.dtype == np.float32 else a for i, a in enumerate(operands)}
    if len(arrays) > 1 and op.startswith("nn.") and op != "nn.batch_matmul":
        constants = {name: arrays.pop(name) for name in [*arrays][1:]}
    else:
        constants = {}
    names = " ".join([*arrays, *constants])
    graph = graph_of(arrays, [node(op, names, "y", **attrs)], "y", **constants)
    assert_agree(graph, arrays, threads=2)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("laid", [True, False])
@pytest.mark.parametrize(("axis", "shape"), [(1, (6,)), (1, (6, 1, 1)), (1, (1, 6, 1, 1)), (3, (5,)), (2, (1, 4, 1))])
def test_slopes_of_one_dimension_and_such_as_broadcast(axis, shape, laid, constant):
    """Behind a convolution, data have their channels last."""
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 6, 4, 5)).astype(np.float32)}
    held = {"w": rng.normal(size=(6, 6, 1, 1)).astype(np.float32)} if laid else {}
    (held if constant else feeds)["a"] = rng.normal(size=shape).astype(np.float32)
    nodes = [node("nn.conv2d", "x w", "c")] if laid else []
    nodes.append(node("nn.prelu", "c a" if laid else "x a", "y", axis=axis))
    assert_agree(graph_of(feeds, nodes, "y", **held), feeds, threads=2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(2, 35, 6, 5), (1, 16, 40), (3, 1, 2, 3)])
def test_instance_norm(shape, dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 3 + rng.normal(size=(1, shape[1], *(1 for _ in shape[2:])))).astype(dtype)
    vectors = {name: rng.normal(size=shape[1]).astype(dtype) for name in ("gamma", "beta")}
    graph = graph_of({"x": x}, [node("nn.instance_norm", "x gamma beta", "y", epsilon=1e-3)], "y", **vectors)
    assert_agree(graph, {"x": x}, threads=2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(2, 7, 5, 4), (1, 40), (3, 2, 9), (1, 1, 2, 2)])
@pytest.mark.parametrize("size, beta", [(5, 0.75), (4, 0.5), (1, 2.0)])
def test_local_response_norm(shape, size, beta, dtype):
    x = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    factors = {"alpha": 0.5, "beta": beta, "bias": 1.5}
    assert_agree(graph_of({"x": x}, [node("nn.lrn", "x", "y", size=size, **factors)], "y"), {"x": x}, threads=2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape, groups", [((2, 35, 6, 5), 5), ((1, 16, 40), 1), ((3, 4, 2, 3), 4)])
def test_group_norm(shape, groups, dtype):
    """A reshape makes groups of channels, whose numbers follow each other in memory."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 3 + rng.normal(size=(1, shape[1], *(1 for _ in shape[2:])))).astype(dtype)
    vectors = {name: rng.normal(size=groups).astype(dtype) for name in ("gamma", "beta")}
    nodes = [
        node("reshape", "x", "r", newshape=(shape[0], groups, -1)),
        node("nn.instance_norm", "r gamma beta", "n", epsilon=1e-3),
        node("reshape", "n", "y", newshape=shape),
    ]
    graph = graph_of({"x": x}, nodes, "y", **vectors)
    assert_agree(graph, {"x": x}, threads=2)
    assert "row_norm" in {step.kernel.split(".")[1] for step in plan(graph).profile({"x": x}) if "." in step.kernel}


@pytest.mark.parametrize("laid", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("op, axis", [("nn.layer_norm", 1), ("nn.layer_norm", -2), ("nn.rms_norm", 0)])
def test_norm_of_several_axes(op, axis, dtype, laid):
    """Behind a convolution, data have their channels last, which are then no rows."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2, 6, 4, 5)) * 3 + 1).astype(dtype)
    known = {name: rng.normal(size=x.shape[axis:]).astype(dtype) for name in ("gamma", "beta")[: 2 - ("rms" in op)]}
    nodes = [node(op, " ".join(["c" if laid else "x", *known]), "y", axis=axis)]
    if laid:
        known["w"] = rng.normal(size=(6, 6, 1, 1)).astype(dtype)
        nodes.insert(0, node("nn.conv2d", "x w", "c"))
    assert_agree(graph_of({"x": x}, nodes, "y", **known), {"x": x}, threads=2)


@pytest.mark.parametrize("laid", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_l2_normalize(axis, dtype, laid):
    """Vectors of length 0 and shorter than epsilon too; behind a convolution, data have their channels last."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 6, 4, 5)).astype(dtype)
    x[:, :, 1, :2] = 0
    x[:, :, 2] *= 1e-3
    known = {"w": rng.normal(size=(6, 6, 1, 1)).astype(dtype)} if laid else {}
    nodes = [node("nn.conv2d", "x w", "c")] if laid else []
    nodes.append(node("nn.l2_normalize", "c" if laid else "x", "y", axis=axis, epsilon=1e-2))
    assert_agree(graph_of({"x": x}, nodes, "y", **known), {"x": x}, threads=2)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 2.5])
def test_powers_of_a_constant(exponent):
    x = np.random.default_rng(0).normal(size=(2, 3, 40)).astype(np.float32)
    x = x if exponent % 1 == 0 else np.abs(x)
    graph = graph_of({"x": x}, [node("power", "x e", "y")], "y", e=np.float32(exponent).reshape(1))
    assert_agree(graph, {"x": x}, threads=2)


@settings(max_examples=60)
@given(
    channels=st.tuples(st.sampled_from([1, 2, 3, 8, 20]), st.sampled_from([1, 7, 16, 33, 70])),
    depthwise=st.sampled_from([0, 0, 1, 1, 2, 3]),
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    kernel=PAIRS,
    strides=PAIRS,
    far=st.sampled_from([0, 0, 7]),
    padding=st.tuples(*[st.integers(0, 2)] * 4),
    clamp=st.sampled_from(["nn.relu", "clip", ""]),
    dtype=st.sampled_from(["float32", "float32", "float16"]),
    level=st.sampled_from([None, Level.PORTABLE]),
)
def test_convolution_bias_and_clamp(channels, depthwise, size, kernel, strides, far, padding, clamp, dtype, level):
    """`depthwise` windows for each channel, or common ones; `far` dilated ones stick far out of the image."""
    rng = np.random.default_rng(0)
    inner, out = channels
    groups = inner if depthwise else 1
    x = rng.normal(size=(2, inner, *size)).astype(dtype)
    weight = rng.normal(size=(inner * depthwise or out, inner // groups, *kernel)).astype(dtype)
    attrs = {"strides": strides, "padding": padding, "groups": groups}
    if far:
        attrs |= {"dilation": (far, far + 2), "padding": tuple(far * (kernel[axis] - 1) + 1 for axis in (0, 1, 0, 1))}
        attrs["padding"] = tuple(size + more for size, more in zip(attrs["padding"], padding, strict=True))
    nodes = [node("nn.conv2d", "x w", "c", **attrs), node("nn.bias_add", "c b", "y")]
    if clamp:
        nodes.append(node(clamp, "y", "z", **({"a_min": -0.5, "a_max": 6.0} if clamp == "clip" else {})))
    bias = rng.normal(size=len(weight)).astype(dtype)
    graph = graph_of({"x": x}, nodes, nodes[-1].output, w=weight, b=bias)
    assert_agree(graph, {"x": x}, level=level, threads=2, magnitude=float(np.abs(bias).max()))


@settings(max_examples=40)
@given(
    channels=st.tuples(st.sampled_from([1, 3, 8, 20]), st.sampled_from([1, 7, 16, 33, 70])),
    kind=st.sampled_from(["dense", "conv", "depthwise"]),
    first=st.booleans(),
    clamp=st.booleans(),
    joined=st.booleans(),
    dtype=st.sampled_from(["float32", "float32", "float16"]),
    level=st.sampled_from([None, Level.PORTABLE]),
)
def test_a_product_to_which_another_value_is_added(channels, kind, first, clamp, joined, dtype, level):
    rng = np.random.default_rng(0)
    inner, out = channels
    out = inner if kind == "depthwise" else out
    shape = {"dense": (2, 3, 5, inner)}.get(kind, (2, inner, 3, 5))
    weight = {"dense": (out, inner), "conv": (out, inner, 1, 1), "depthwise": (out, 1, 1, 1)}[kind]
    axis = 3 if kind == "dense" else 1
    inputs = {"x": rng.normal(size=shape).astype(dtype)}
    inputs["z"] = rng.normal(size=[out if i == axis else size for i, size in enumerate(shape)]).astype(dtype)
    head = node("nn.dense", "x w", "p") if kind == "dense" else node(
        "nn.conv2d", "x w", "p", groups=inner if kind == "depthwise" else 1
    )  # fmt: skip
    nodes = [head, node("nn.bias_add", "p b", "c", axis=axis), node("add", "z c" if first else "c z", "y")]
    if clamp:
        nodes.append(node("clip", "y", "v", a_min=-0.5, a_max=1.5))
    if joined:  # results and what is added to them lie differently then
        nodes.append(node("concatenate", f"{nodes[-1].output} z", "all", axis=axis))
    constants = {"w": rng.normal(size=weight).astype(dtype), "b": rng.normal(size=out).astype(dtype)}
    graph = graph_of(inputs, nodes, nodes[-1].output, **constants)
    assert_agree(graph, inputs, level=level, threads=2, magnitude=8.0)
    if dtype == "float32" and kind != "depthwise":
        steps = {step.name: step.nodes for step in plan(graph, level=level).steps}
        assert len(steps[head.name]) == 3 + clamp


@settings(max_examples=40)
@given(
    batches=st.sampled_from(
        [
            ((), ()),
            ((2, 3), (2, 3)),
            ((2,), ()),
            ((1,), (3,)),
            ((), (2,)),
            ((2, 1), (2, 3)),
            ((1, 3), (2, 1)),
            ((1, 2, 1), (1, 1, 3)),
        ]
    ),
    columns=st.sampled_from([2, 33]),
    turned=st.tuples(st.booleans(), st.booleans()),
    constant=st.booleans(),
    dtype=st.sampled_from(["float32", "float16"]),
)
def test_matrix_products(batches, columns, turned, constant, dtype):
    rng = np.random.default_rng(0)
    shapes = [(4, 5)[::-1] if turned[0] else (4, 5), (5, columns)[::-1] if turned[1] else (5, columns)]
    a, b = (rng.normal(size=batch + shape).astype(dtype) for batch, shape in zip(batches, shapes, strict=True))
    nodes = [node("nn.batch_matmul", "a b", "y", transpose_lhs=turned[0], transpose_rhs=turned[1])]
    inputs, constants = ({"a": a}, {"b": b}) if constant else ({"a": a, "b": b}, {})
    assert_agree(graph_of(inputs, nodes, "y", **constants), inputs, threads=2)


@settings(max_examples=60)
@given(
    op=st.sampled_from(["add", "multiply", "divide", "subtract"]),
    shape=st.lists(st.integers(1, 5), min_size=4, max_size=4).map(tuple),
    ones=st.tuples(*[st.booleans()] * 4),
    rank=st.integers(0, 4),
    constant=st.booleans(),
    left=st.booleans(),
)
def test_broadcasting_of_images(op, shape, ones, rank, constant, left):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(np.float32)
    small = tuple(1 if one else size for size, one in zip(shape, ones, strict=True))[4 - rank :]
    y = rng.uniform(1, 2, size=small).astype(np.float32)
    pool = node("nn.max_pool2d", "x", "p", pool_size=(1, 1), strides=(1, 1))
    inputs, constants = ({"x": x}, {"y": y}) if constant else ({"x": x, "y": y}, {})
    assert_agree(
        graph_of(inputs, [pool, node(op, "y p" if left else "p y", "s"), node("nn.relu", "s", "z")], "z", **constants),
        inputs,
    )


@given(
    op=st.sampled_from(["mean", "sum", "max"]),
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    axes=st.sets(st.integers(0, 3), min_size=1),
    keepdims=st.booleans(),
)
def test_reductions_along_any_axes(op, shape, axes, keepdims):
    axes = tuple(sorted(axis for axis in axes if axis < len(shape))) or (0,)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    graph = graph_of({"x": x}, [node(op, "x", "y", axes=axes, keepdims=keepdims), node("exp", "y", "z")], "z")
    assert_agree(graph, {"x": x})


def test_parts_of_a_concatenation_are_made_in_place():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 8, 5, 6)).astype(np.float32)
    weights = {f"w{i}": rng.normal(size=(n, 8, k, k)).astype(np.float32) for i, (n, k) in enumerate(((7, 1), (20, 3)))}
    weights["w2"] = rng.normal(size=(8, 1, 3, 3)).astype(np.float32)
    one = (1, 1, 1, 1)
    nodes = [
        node("nn.conv2d", "x w0", "a"),
        node("nn.conv2d", "x w1", "b", padding=one),
        node("nn.conv2d", "x w2", "c", padding=one, groups=8),
        node("nn.avg_pool2d", "x", "d", pool_size=(3, 3), strides=(1, 1), padding=one),
        node("sigmoid", "x", "e"),
        node("add", "x x", "f"),
        node("nn.softmax", "x", "g", axis=1),
        node("concatenate", "a b c d e f g", "y", axis=1),
    ]
    assert_agree(graph_of({"x": x}, nodes, "y", **weights), {"x": x}, threads=2)


def test_a_first_convolution_behind_a_step_of_the_interpreter():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 9, 9)).astype(np.float32), rng.normal(size=(8, 3, 5, 5)).astype(np.float32)
    pad = node("nn.pad", "x", "p", pad_width=((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")
    nodes = [pad, node("nn.conv2d", "p w", "y", padding=(2, 2, 2, 2))]
    assert_agree(graph_of({"x": x}, nodes, "y", w=w), {"x": x})


@pytest.mark.parametrize("axis", [0, 2, 3])
def test_parts_that_lie_apart(axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 8, 5, 6)).astype(np.float32)
    w, d = rng.normal(size=(8, 8, 1, 1)).astype(np.float32), rng.normal(size=(8, 1, 3, 3)).astype(np.float32)
    nodes = [
        node("nn.conv2d", "x w", "a"),
        node("nn.conv2d", "x d", "b", padding=(1, 1, 1, 1), groups=8),
        node("nn.softmax", "x", "c", axis=1),
        node("concatenate", "a b c", "y", axis=axis),
        node("mean", "y", "z", axes=(2, 3)),
    ]
    assert_agree(graph_of({"x": x}, nodes, "z", w=w, d=d), {"x": x}, keep=["y"])


@pytest.mark.parametrize("prepared", [False, True])
def test_rows_that_are_masked_altogether(prepared):
    graph = masked_softmax((2, 3, 9, 17))
    graph = prepare(graph).graph if prepared else graph
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 17)).astype(np.float32)
    assert_agree(graph, {"x": x}, threads=2)


def feeds_of(graph, sizes, seed=0):
    rng = np.random.default_rng(seed)
    feeds = {}
    for name in graph.inputs:
        kind = graph.types[name]
        shape = [math.prod((number, sizes[symbol] if symbol else 1)) for number, symbol in map(dim_factors, kind.shape)]
        feeds[name] = rng.normal(size=shape).astype(kind.dtype)
    return feeds


@pytest.mark.parametrize("file", MODELS)
def test_models(shared_data, file):
    graph = prepare(load(shared_data / "models" / file)).graph
    dims = [(axis, dim_factors(dim)[1]) for name in graph.inputs for axis, dim in enumerate(graph.types[name].shape)]
    sizes = {symbol: 64 if axis else 1 for axis, symbol in dims if symbol}
    assert_agree(graph, feeds_of(graph, sizes), sizes=sizes, threads=2)
