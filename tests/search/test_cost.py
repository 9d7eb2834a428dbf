"""What a graph takes: counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import DType, TensorType
from qbench.search.cost import MACS_PER_BYTE, SLOWER, effort


def layer(dtype: DType, groups: int = 1) -> Graph:
    """A convolution of a 4 x 4 image, and what brings its sums back to the type that it reads."""
    weights = Constant(np.ones((8, 8 // groups, 1, 1), np.int8 if dtype != "float32" else np.float32))
    if dtype == "float32":
        nodes, more = [Node("y", "nn.conv2d", ("x", "w"), ("y",))], {}
    else:
        of_all = FrozenMap({"rounding": "tflite_single", "dtype": dtype})
        made = FrozenMap({"groups": groups})
        nodes = [Node("sums", "integer.conv2d", ("x", "w"), ("sums",), made)]
        nodes += [Node("y", "integer.requantize", ("sums", "mantissa", "shift"), ("y",), of_all)]
        more = {"mantissa": Constant(np.array([1 << 30], np.int32)), "shift": Constant(np.array([0], np.int32))}
    return build("net", {"x": TensorType((1, 8, 4, 4), dtype)}, ("y",), nodes, {"w": weights, **more})


@pytest.mark.parametrize(("dtype", "of_a_result"), [("uint8", 1.0), ("int16", 1.5), ("float32", 2.5)])
def test_products_by_their_type_and_results_once(dtype: DType, of_a_result: float) -> None:
    products, results = 8 * 8 * 16, 8 * 16
    assert effort(layer(dtype), {}) == products * SLOWER.get(dtype, 1) / MACS_PER_BYTE + of_a_result * results


def test_channels_with_windows_of_their_own_take_longer_for_each_product() -> None:
    results = 8 * 16.0
    whole, grouped = (effort(layer("uint8", groups), {}) - results for groups in (1, 8))
    assert whole / 8 < grouped < whole


def test_looking_up_one_of_65536_takes_longer_than_one_of_256() -> None:
    def table(dtype: DType, entries: int) -> float:
        found = Constant(np.zeros(entries, np.int16))
        nodes = [Node("y", "integer.table", ("x", "table"), ("y",))]
        return effort(build("net", {"x": TensorType((1, 100), dtype)}, ("y",), nodes, {"table": found}), {})

    assert table("uint8", 256) == 150.0
    assert table("int16", 65536) > 3 * 150.0
