"""Integer convolutions and dense layers: programs give the interpreter's bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.build import build
from qbench.ir.graph import Constant
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.kernels.levels import Level
from qbench.runtime.programs import plan
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import UP_TO_16_BITS, conv_graphs, dense_graphs, node, requantize


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(case=conv_graphs(), threads=st.integers(1, 3))
def test_convolutions(level, case, threads):
    assert_agree(*case, level=level, threads=threads, exact=True)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(case=dense_graphs(), threads=st.integers(1, 3))
def test_dense_layers(level, case, threads):
    assert_agree(*case, level=level, threads=threads, exact=True)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(case=conv_graphs(depthwise=True), threads=st.integers(1, 3))
def test_depthwise_convolutions(level, case, threads):
    assert_agree(*case, level=level, threads=threads, exact=True)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25)
@given(case=st.one_of(conv_graphs(dtypes=UP_TO_16_BITS), dense_graphs(UP_TO_16_BITS)), threads=st.integers(1, 3))
def test_layers_of_16_bits_and_between_them_and_8(level, case, threads):
    assert_agree(*case, level=level, threads=threads, exact=True)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25)
@given(case=conv_graphs(depthwise=True, dtypes=UP_TO_16_BITS), threads=st.integers(1, 3))
def test_depthwise_convolutions_of_16_bits_and_between_them_and_8(level, case, threads):
    assert_agree(*case, level=level, threads=threads, exact=True)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25)
@given(case=st.booleans().flatmap(conv_graphs), more=st.integers(1, 30))
def test_layers_of_several_sizes_share_what_is_packed(level, case, more):
    """Small images meet fewer taps of the window, which changes biases and bounds."""
    graph, fed = case
    (x,) = fed.values()
    shape = (*x.shape[:2], x.shape[2] + more, x.shape[3] + more)
    larger = build("g", {"x": TensorType(shape, graph.types["x"].dtype)}, graph.outputs, graph.nodes, graph.constants,
                   graph.qparams)  # fmt: skip
    alive = plan(graph, level=level), plan(larger, level=level), plan(graph, level=level)
    assert_agree(graph, fed, level=level, exact=True)
    assert_agree(larger, {"x": np.resize(x, shape)}, level=level, exact=True)
    del alive


@pytest.mark.parametrize("depthwise", [True, False])
def test_constants_are_packed_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch, depthwise: bool) -> None:
    constants = {"w": Constant(np.ones((64, 1 if depthwise else 64, 3, 3), np.int8))}
    attrs = {"padding": (1, 1, 1, 1), "groups": 64 if depthwise else 1}
    scaled, parameters = requantize("sums", "y", np.full((1, 64, 1, 1), 1e-3), "tflite_double", "uint8", 3)
    nodes = [node("integer.conv2d", "x w", "sums", **attrs), scaled]
    graph = build("g", {"x": TensorType((1, 64, "H", "H"), "uint8")}, "y", nodes, constants | parameters)
    first = plan(graph, sizes={"H": 40})
    for name in ("pack_depthwise", "pack_scales"):
        for module in ("conv", "depthwise"):
            where = f"qbench.runtime.lowerings.{module}.{name}"
            monkeypatch.setattr(where, lambda *_: pytest.fail("packed again"), raising=False)
    fed = {"x": np.random.default_rng(0).integers(0, 256, (1, 64, 48, 48)).astype(np.uint8)}
    assert_agree(graph, fed, sizes={"H": 48}, exact=True)
    del first


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("narrow", [True, False])
def test_real_numbers_are_made_in_the_layer_s_own_step(level, narrow):
    """Where there are vectors; else the layer still ends in its requantize, and what makes them real stands alone."""
    rng = np.random.default_rng(0)
    constants = {"w": Constant(rng.integers(-127, 128, (24, 32)).astype(np.int8))}
    dense = node("integer.dense", "x w", "sums", data_zero_point=7)
    nodes, parameters, q = [dense], {}, QParams((0.25,) * 24, (0,) * 24, "int32", 1)
    if narrow:
        made, parameters = requantize("sums", "y", np.full((1, 24), 2.0**-12), "tflite_single", "int16", 3)
        nodes, q = [dense, made], QParams(0.25, 3, "int16")
    nodes.append(node("qnn.dequantize", nodes[-1].outputs[0], "real"))
    constants, qparams = constants | parameters, {nodes[-1].inputs[0]: q}
    graph = build("g", {"x": TensorType((9, 32), "uint8")}, ["real"], nodes, constants, qparams)
    feeds = {"x": rng.integers(0, 256, (9, 32)).astype(np.uint8)}
    assert_agree(graph, feeds, level=level, threads=2, exact=True)
    whole = [[node.name for node in nodes]]
    parts = [[node.name for node in nodes[:-1]], ["real"]]
    steps = [list(step.nodes) for step in plan(graph, level=level).steps if step.nodes]
    assert steps == (parts if level is Level.PORTABLE else whole)


@pytest.mark.parametrize("level", LEVELS)
def test_images_of_one_row_that_are_cut_out_of_others_do_not_lie_evenly(level):
    rng = np.random.default_rng(0)
    weights = {"w": Constant(rng.integers(-128, 128, (5, 3, 1, 1)).astype(np.int8))}
    conv = node("integer.conv2d", "x w", "sums", data_zero_point=7)
    graph = build("g", {"x": TensorType((3, 3, 1, 2), "uint8")}, ["sums"], [conv], weights)
    feeds = {"x": rng.integers(0, 256, (3, 3, 1, 2)).astype(np.uint8)}
    assert_agree(graph, feeds, level=level, threads=2)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_a_window_of_one_tap_for_each_channel_is_a_table(level, strides):
    """A batch norm behind an activation, as TFLite files have it; not where pixels are left out."""
    rng = np.random.default_rng(0)
    weights = Constant(rng.integers(-128, 128, (24, 1, 1, 1)).astype(np.int8))
    bias = Constant(rng.integers(-3000, 3000, 24).astype(np.int32))
    ends, scales = requantize("biased", "y", rng.uniform(0.001, 0.02, (1, 24, 1, 1)), "tflite_double", "int8", 3)
    conv = node("integer.conv2d", "x w", "sums", data_zero_point=7, groups=24, strides=strides)
    nodes, constants = (
        [conv, node("nn.bias_add", "sums b", "biased", axis=1), ends],
        {"w": weights, "b": bias, **scales},
    )
    graph = build("g", {"x": TensorType((1, 24, 9, 8), "uint8")}, ["y"], nodes, constants)
    feeds = {"x": rng.integers(0, 256, (1, 24, 9, 8)).astype(np.uint8)}
    assert_agree(graph, feeds, level=level, threads=2)
    kernels = {timing.kernel.split(".")[0] for timing in plan(graph, level=level).profile(feeds)}
    assert ("table" in kernels, "depthwise" in kernels) == (strides == (1, 1), strides != (1, 1))


def test_a_depthwise_window_of_more_taps_than_the_stack_holds_runs_in_another_kernel():
    rng = np.random.default_rng(0)
    weights = Constant(rng.integers(-128, 128, (3, 1, 65, 65)).astype(np.int8))
    ends, scales = requantize("sums", "y", np.full((1, 3, 1, 1), 2.0**-12), "tflite_double", "uint8", 3)
    conv = node("integer.conv2d", "x w", "sums", data_zero_point=7, groups=3, padding=(1, 0, 1, 2))
    shape = (1, 3, 66, 64)
    graph = build("g", {"x": TensorType(shape, "uint8")}, ["y"], [conv, ends], {"w": weights, **scales})
    assert_agree(graph, {"x": rng.integers(0, 256, shape).astype(np.uint8)}, level=LEVELS[0], threads=2)


@pytest.mark.parametrize("window", ["wide", "row by row", "one", "strided", "rows of a dense layer"])
@pytest.mark.parametrize("threads", [1, 3])
def test_large_layers_are_products_of_matrices_where_the_processor_has_them(window, threads):
    """Codes that lie side by side already, and those that are brought there; wherever blocks of pixels end."""
    if Level.AMX not in LEVELS:
        pytest.skip("this processor has no products of matrices (AMX)")
    rng = np.random.default_rng(0)
    shapes = {
        "wide": ((2, 70, 13, 11), (80, 70, 3, 3), {"padding": (1, 1, 1, 1)}),
        "row by row": ((1, 3, 24, 24), (48, 3, 7, 7), {"padding": (3, 3, 3, 3), "strides": (2, 2)}),
        "one": ((1, 128, 9, 9), (72, 128, 1, 1), {}),
        "strided": ((1, 128, 17, 17), (72, 128, 1, 1), {"strides": (2, 2)}),
        "rows of a dense layer": ((3, 50, 192), (100, 192), {}),
    }
    shape, weights, attrs = shapes[window]
    op, axis = ("integer.dense", -1) if len(weights) == 2 else ("integer.conv2d", 1)
    many = [1] * len(shape)
    many[axis] = weights[0]
    ends, scales = requantize("sums", "y", 2.0 ** rng.uniform(-16, -12, many), "tflite_double", "int8", 5)
    nodes = [node(op, "x w", "sums", data_zero_point=7, **attrs), ends]
    constants = {"w": Constant(rng.integers(-128, 128, weights).astype(np.int8)), **scales}
    graph = build("g", {"x": TensorType(shape, "uint8")}, ["y"], nodes, constants)
    feeds = {"x": rng.integers(0, 256, shape).astype(np.uint8)}
    assert_agree(graph, feeds, level=Level.AMX, threads=threads)
    assert any(timing.kernel.startswith("conv.amx") for timing in plan(graph, level=Level.AMX).profile(feeds))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_largest_products_are_exact_where_codes_are_widened_for_them(level, window, threads):
    """What multiplies pairs of bytes on ``avx2`` saturates from 32,767 on; these reach 64,770."""
    shape = (24, 32, window, window)
    constants = {"w": Constant(np.full(shape, 127, np.int8)), "v": Constant(np.full(shape, -128, np.int8))}
    padding = ((window - 1) // 2,) * 4
    nodes = [
        node("integer.conv2d", f"x {weight}", f"{weight}.sums", padding=padding, data_zero_point=zero)
        for weight, zero in (("w", 0), ("v", 200))
    ]
    graph = build("g", {"x": TensorType((1, 32, 7, 9), "uint8")}, ["w.sums", "v.sums"], nodes, constants)
    x = np.random.default_rng(0).choice(np.array([0, 254, 255], np.uint8), (1, 32, 7, 9))
    assert_agree(graph, {"x": x}, level=level, threads=threads, exact=True)
    program = plan(graph, level=level)
    program.run({"x": x})
    widened = ["widen" in timing.kernel for timing in program.profile({"x": x}, repeat=1)]
    assert any(widened) == (level is Level.AVX2)
