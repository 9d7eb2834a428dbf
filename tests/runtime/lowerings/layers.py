"""Small integer layers of all kinds, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.numeric.windows import Window
from qbench.quant.fixed_point import power_of_two_shift, quantized_multiplier
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS

EIGHT_BITS = st.sampled_from(["uint8", "int8"])
UP_TO_16_BITS = st.sampled_from(["int16", "uint16", "uint8", "int8"])
MODES = st.sampled_from(ROUNDINGS)
SEEDS = st.integers(0, 2**32).map(np.random.default_rng)


def node(op: str, inputs: str, output: str, **attrs: Any) -> Node:
    """A node called as what it makes."""
    return Node(output, op, tuple(inputs.split()), (output,), FrozenMap(attrs))


def requantize(
    source: str, output: str, real: NDArray[np.float64], rounding: str, dtype: str, zero_point: int, **attrs: Any
) -> tuple[Node, dict[str, Constant]]:
    """A requantize by real multipliers, in any mode; under power-of-two modes by the powers below them."""
    attrs |= {"dtype": dtype, "zero_point": zero_point, "rounding": rounding}
    if rounding == "fp32_rne":
        op, constants = "integer.requantize_float32", {"multiplier": real.astype(np.float32)}
    elif rounding == "fp64_away":
        significand, exponent = np.frexp(real)
        parts = {"mantissa": np.ldexp(significand, 53).astype(np.int64), "shift": exponent.astype(np.int32)}
        op, constants = "integer.requantize_float64", parts
    elif rounding in POWER_OF_TWO:
        op, constants = "integer.rounding_shift", {"shift": power_of_two_shift(2.0 ** np.floor(np.log2(real)))}
    else:
        mantissa, shift = quantized_multiplier(real)
        op, constants = "integer.requantize", {"mantissa": mantissa, "shift": shift}
    named = {f"{output}.{name}": Constant(array) for name, array in constants.items()}
    return node(op, " ".join((source, *named)), output, **attrs), named


@st.composite
def conv_graphs(
    draw: st.DrawFn, depthwise: bool = False, dtypes: st.SearchStrategy[str] = EIGHT_BITS
) -> tuple[Graph, dict[str, NDArray[np.generic]]]:
    """x -> conv2d -> bias_add -> requantize -> clip -> dequantize, any of the last four missing."""
    rng, dtype, rounding = draw(SEEDS), draw(dtypes), draw(MODES)
    kernel, strides = draw(st.sampled_from([(1, 1), (3, 3), (5, 5), (2, 3), (3, 1)])), draw(_pairs(1, 3))
    far = draw(st.sampled_from([2, 2, 9]))  # windows that stick far out have taps that are not needed
    dilation, padding = draw(_pairs(1, far)), draw(st.tuples(*[st.integers(0, far)] * 4))
    if kernel == (1, 1) and draw(st.booleans()):
        strides, padding = (1, 1), (0, 0, 0, 0)
    groups = draw(st.integers(1, 70)) if depthwise else draw(st.sampled_from([1, 1, 2, 3, 8]))
    inner = 1 if depthwise else draw(st.integers(1, 20))
    out = groups * draw(st.sampled_from([1, 1, 1, 2, 3]) if depthwise else st.integers(1, 6 if groups > 3 else 40))
    window = Window(kernel, strides, padding, dilation)
    least = [max(1, window.reach[axis] - padding[axis] - padding[axis + 2]) for axis in (0, 1)]
    n, *size = draw(st.integers(1, 2)), *(low + draw(st.integers(0, 6)) for low in least)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    attrs |= {"data_zero_point": draw(st.integers(low, high)), "accumulator": "int64" if "16" in dtype else "int32"}
    constants, zero_point = draw(_weights(rng, (out, inner, *kernel)))
    nodes = [node("integer.conv2d", "x w", "sums", weight_zero_point=zero_point, **attrs)]
    constants, nodes, qparams = _ending(draw, rng, constants, nodes, out, (1, out, 1, 1), 1, rounding, dtypes)
    shape = (n, groups * inner, *size)
    graph = build("g", {"x": TensorType(shape, dtype)}, nodes[-1].outputs, nodes, constants, qparams)
    return graph, {"x": rng.integers(low, high + 1, shape).astype(dtype)}


@st.composite
def dense_graphs(
    draw: st.DrawFn, dtypes: st.SearchStrategy[str] = EIGHT_BITS
) -> tuple[Graph, dict[str, NDArray[np.generic]]]:
    """x -> dense -> bias_add -> requantize -> clip -> dequantize, any of the last four missing."""
    rng, dtype, rounding = draw(SEEDS), draw(dtypes), draw(MODES)
    rows, depth, units = draw(st.integers(1, 20)), draw(st.integers(1, 70)), draw(st.integers(1, 140))
    shape = draw(st.sampled_from([(rows, depth), (2, rows, depth)]))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    constants, zero_point = draw(_weights(rng, (units, depth)))
    attrs = {"data_zero_point": draw(st.integers(low, high)), "accumulator": "int64" if "16" in dtype else "int32"}
    nodes = [node("integer.dense", "x w", "sums", weight_zero_point=zero_point, **attrs)]
    axis = len(shape) - 1
    per_unit = (*(1,) * axis, units)
    constants, nodes, qparams = _ending(draw, rng, constants, nodes, units, per_unit, axis, rounding, dtypes)
    graph = build("g", {"x": TensorType(shape, dtype)}, nodes[-1].outputs, nodes, constants, qparams)
    return graph, {"x": rng.integers(low, high + 1, shape).astype(dtype)}


@st.composite
def _weights(draw: st.DrawFn, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[dict[str, Constant], int]:
    """And their zero point: less that, some need 9 bits."""
    dtype, zero_point = draw(st.sampled_from([("int8", 0)] * 3 + [("uint8", z) for z in (0, 118, 128, 200)]))
    low = int(np.iinfo(dtype).min)
    return {"w": Constant(rng.integers(low, low + 256, shape).astype(dtype))}, zero_point


def _pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


def _ending(
    draw: st.DrawFn,
    rng: np.random.Generator,
    constants: dict[str, Constant],
    nodes: list[Node],
    channels: int,
    shape: tuple[int, ...],
    axis: int,
    rounding: str,
    dtypes: st.SearchStrategy[str],
) -> tuple[dict[str, Constant], list[Node], dict[str, QParams]]:
    last, dtype, zero_point = "sums", nodes[0].attrs["accumulator"], 0
    if draw(st.booleans()):
        constants |= {"b": Constant(rng.integers(-30000, 30000, channels).astype(nodes[0].attrs["accumulator"]))}
        nodes = [*nodes, node("nn.bias_add", "sums b", "biased", axis=axis)]
        last = "biased"
    if draw(st.integers(0, 3)):
        dtype = draw(dtypes)
        real = 2.0 ** rng.uniform(-18, draw(st.sampled_from([-6, -1, 2])), shape if draw(st.booleans()) else 1)
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        zero_point = draw(st.integers(low, high))
        made, parameters = requantize(last, "narrow", real, rounding, dtype, zero_point)
        nodes, constants, last = [*nodes, made], constants | parameters, "narrow"
        if draw(st.booleans()):
            nodes, last = [*nodes, node("clip", last, "y", a_min=low + 7.0, a_max=low + 200.0)], "y"
    qparams = dict[str, QParams]()
    if dtype != "int64" and draw(st.booleans()):
        scales = np.exp(rng.normal(-5, 3, channels)).astype(np.float32).tolist()
        per_channel = draw(st.integers(0, 3)) == 0
        q = QParams(tuple(scales), (zero_point,) * channels, dtype, axis) if per_channel else None
        qparams[last] = q or QParams(scales[0], draw(st.sampled_from([zero_point] * 4 + [0])), dtype)
        nodes = [*nodes, node("qnn.dequantize", last, "real")]
    return constants, nodes, qparams
