"""Programs of onnxruntime's sums, products and softmax against the interpreter, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.build import build
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.legalize import LegalizePass
from qbench.passes.rewrite import attrs
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan

scales = st.floats(2**-10, 2**4, width=32)
SHAPES = [((2, 3, 5, 4), (2, 3, 5, 4)), ((2, 8, 3, 3), (2, 8, 1, 1)), ((1, 7), (4, 7)), ((6, 1), (6, 9)), ((), (3, 70))]


def network(op: str, dtype: str, shapes: tuple[tuple[int, ...], ...], q: list[QParams]):
    inputs = {name: TensorType(shape, dtype) for name, shape in zip("ab", shapes, strict=True)}
    qparams = dict(zip("aby", q, strict=True))
    if op == "qnn.add":
        nodes = [Node("n", op, ("a", "b"), ("y",), attrs(rounding="fp32_rne", semantics="onnx"))]
    else:
        qparams["sums"] = QParams(q[0].scale * q[1].scale, 0, "int32")
        nodes = [
            Node("n", op, ("a", "b"), ("sums",)),
            Node("r", "qnn.requantize", ("sums",), ("y",), attrs(rounding="fp32_rne", zero_point_first=True)),
        ]
    return LegalizePass()(build("net", inputs, ("y",), nodes, qparams=qparams))


@pytest.mark.parametrize("op", ["qnn.add", "qnn.multiply"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@settings(max_examples=30)
@given(data=st.data(), shapes=st.sampled_from(SHAPES), seed=st.integers(0, 2**32))
def test_a_program_computes_what_the_interpreter_does(op, dtype, data, shapes, seed) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    q = [QParams(data.draw(scales), data.draw(st.integers(int(info.min), int(info.max))), dtype) for _ in range(3)]
    graph = network(op, dtype, shapes, q)
    program = plan(graph)
    assert not program.fallbacks
    given = {
        name: rng.integers(info.min, info.max + 1, shape).astype(dtype)
        for name, shape in zip("ab", shapes, strict=True)
    }
    np.testing.assert_array_equal(program.run(given)["y"], run(graph, given)["y"])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@settings(max_examples=30)
@given(
    data=st.data(), scale=st.floats(2**-6, 2**4, width=32), steps=st.floats(2**-9, 2**-6, width=32),
    shape=st.sampled_from([(3, 10), (1, 1001), (2, 4, 5), (6, 1), (7,), (5, 3, 2, 70)]), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_a_softmax_is_the_one_of_the_interpreter(dtype, data, scale, steps, shape, seed) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    zero_point = data.draw(st.sampled_from([int(info.min), int(info.min) + 1, 0, int(info.max)]))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    spread = data.draw(st.sampled_from([3, 40, 256]))
    qparams = {"x": QParams(scale, 0, dtype), "y": QParams(steps, zero_point, dtype)}
    node = Node("n", "qnn.softmax", ("x",), ("y",), attrs(semantics="onnx", axis=axis))
    opened = tuple(f"S{i}" for i in range(len(shape))) if data.draw(st.booleans()) else shape
    graph = LegalizePass()(build("net", {"x": TensorType(opened, dtype)}, ("y",), [node], qparams=qparams))
    program = plan(graph, sizes=dict(zip(opened, shape, strict=True)) if opened != shape else {})
    assert not program.fallbacks
    x = rng.integers(max(info.min, -spread), min(info.max, spread) + 1, shape).astype(dtype)
    np.testing.assert_array_equal(program.run({"x": x})["y"], run(graph, {"x": x})["y"])
