"""A network that has every quantizable op, and the way from it to integers, for the tests of the passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.ir.build import build, rebuild
from qbench.ir.dtypes import DType
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.annotate import points
from qbench.quant.choose import from_range, per_axis
from qbench.runtime.interpreter import run


def node(name: str, op: str, inputs: str, output: str, **attrs: Attr) -> Node:
    return Node(name, op, tuple(inputs.split()), (output,), FrozenMap[str, Attr](attrs), (name,))


def every_op(seed: int = 0) -> Graph:
    """Residual, depthwise, tables, averages, concat, resize, dense, batch matmul; softmax stays in float."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> Constant:
        return Constant((rng.normal(size=shape) * 0.4).astype(np.float32))

    nodes = [
        node("conv1", "nn.conv2d", "x w1", "c1", padding=(1, 1, 1, 1)),
        node("conv1.bias_add", "nn.bias_add", "c1 b1", "c1b"),
        node("relu1", "nn.relu", "c1b", "r1"),
        node("depthwise", "nn.conv2d", "r1 w2", "d1", padding=(0, 1, 2, 1), groups=8),
        node("relu6", "clip", "d1", "k1", a_min=0.0, a_max=6.0),
        node("add", "add", "k1 r1", "a1"),
        node("sigmoid", "sigmoid", "a1", "s1"),
        node("gate", "multiply", "a1 s1", "m1"),
        node("scale", "multiply", "m1 g", "m2"),
        node("shift", "nn.bias_add", "m2 bb", "m3"),
        node("pool", "nn.max_pool2d", "m3", "p1", pool_size=(2, 2), strides=(2, 2)),
        node("average", "nn.avg_pool2d", "m3", "p2", pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 0, 0)),
        node("concat", "concatenate", "p1 p2", "cc", axis=1),
        node("prelu", "nn.prelu", "cc slopes", "pr"),
        node("resize", "image.resize2d", "pr", "rz", size=(9, 7), method="linear"),
        node("dilated", "nn.conv2d", "rz w4", "dc", dilation=(2, 2), strides=(2, 1), groups=4),
        node("pad", "nn.pad", "dc", "pd", pad_width=((0, 0), (0, 0), (1, 0), (0, 2)), pad_value=0.5),
        node("tanh", "tanh", "pd", "th"),
        node("difference", "subtract", "th pd", "df"),
        node("lone_relu", "nn.relu", "df", "lr"),
        node("lone_bias", "nn.bias_add", "lr b5", "lb"),
        node("rows", "reshape", "lb", "rw", newshape=(-1, 8, 20)),
        node("turned", "transpose", "rw", "tr", axes=(0, 2, 1)),
        node("matmul", "nn.batch_matmul", "rw tr", "mm"),
        node("mean", "mean", "mm", "me", axes=(2,), keepdims=False),
        node("fc", "nn.dense", "me w3", "f1"),
        node("fc.bias_add", "nn.bias_add", "f1 b3", "f2"),
        node("softmax", "nn.softmax", "f2", "y"),
    ]
    constants = {
        "w1": weights(8, 3, 3, 3), "b1": weights(8), "w2": weights(8, 1, 3, 3), "g": weights(8, 1, 1), "bb": weights(8),
        "slopes": weights(16), "w4": weights(8, 4, 3, 3), "b5": weights(8), "w3": weights(10, 8), "b3": weights(10),
    }  # fmt: skip
    return build("every_op", {"x": TensorType(("N", 3, 8, 8), "float32")}, ["y", "f2"], nodes, constants)


def sample(graph: Graph, count: int = 4, seed: int = 1) -> NDArray[np.float32]:
    shape = graph.types[graph.inputs[0]].shape
    return np.random.default_rng(seed).normal(size=(count, *(int(d) for d in shape[1:]))).astype(np.float32)


def every_value(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    kept = [value for node in graph.nodes for value in node.outputs]
    constants = {name: constant.array for name, constant in graph.constants.items()}
    return {**feeds, **constants, **run(graph, feeds, kept)}


def all_values(graph: Graph, x: Array) -> dict[str, Array]:
    return every_value(graph, {graph.inputs[0]: x})


def min_max_qparams(
    annotated: Graph,
    values: Mapping[str, NDArray[np.generic]],
    dtype: DType = "uint8",
    per_channel: bool = True,
    weights: DType = "int8",
    symmetric: tuple[bool, bool] | None = None,
) -> dict[str, QParams]:
    """The plainest calibration: the range that the values have. `symmetric` is of activations and of weights."""
    for_activations, for_weights = symmetric or (dtype == "int16", True)
    found: dict[str, QParams] = {}
    for tensor, point in points(annotated).items():
        if point.kind == "activation":
            found[tensor] = from_range(values[tensor].min(), values[tensor].max(), dtype, for_activations)
            continue
        array = annotated.constants[tensor].array
        if point.channel_axis is None or not per_channel:
            found[tensor] = from_range(array.min(), array.max(), weights, for_weights, True)
        else:
            rows = np.moveaxis(array, point.channel_axis, 0).reshape(array.shape[point.channel_axis], -1)
            low, high = rows.min(axis=1), rows.max(axis=1)
            found[tensor] = per_axis(low, high, weights, point.channel_axis, for_weights, True)
    return found


def sqnr(reference: NDArray[np.generic], other: NDArray[np.generic]) -> float:
    signal, noise = np.square(reference, dtype=np.float64), np.square(reference - other, dtype=np.float64)
    return float(10 * np.log10(signal.sum() / noise.sum()))


def bind_qparams(annotated: Graph, qparams: Mapping[str, QParams]) -> Graph:
    """The annotated graph with the qparams of each point filled in, by float tensor: it now runs fake-quantized."""
    values = {point.value: qparams[tensor] for tensor, point in points(annotated).items() if tensor in qparams}
    return rebuild(annotated, qparams=dict(annotated.qparams) | values)
