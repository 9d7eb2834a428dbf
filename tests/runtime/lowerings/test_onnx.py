"""Programs of what onnxruntime alone has, against the interpreter, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.legalize import LegalizePass
from qbench.passes.rewrite import attrs
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan

scales = st.floats(2**-10, 2**4, width=32)
SHAPES = [
    ((2, 3, 5, 4), (2, 3, 5, 4)),
    ((2, 8, 3, 3), (2, 8, 1, 1)),
    ((2, 1, 4, 1, 3, 2), (2, 3, 4, 5, 3, 1)),
    ((1, 7), (4, 7)),
    ((6, 1), (6, 9)),
    ((), (3, 70)),
]


def network(op: str, dtype: str, shapes: tuple[tuple[int, ...], ...], q: list[QParams]):
    inputs = {name: TensorType(shape, dtype) for name, shape in zip("ab", shapes, strict=True)}
    qparams = dict(zip("aby", q, strict=True))
    if op == "qnn.add":
        nodes = [Node("n", op, ("a", "b"), ("y",), attrs(rounding="fp32_rne", semantics="onnx"))]
    elif op == "qnn.binary":
        nodes = [Node("n", op, ("a", "b"), ("y",), attrs(function="divide"))]
    else:
        qparams["sums"] = QParams(q[0].scale * q[1].scale, 0, "int32")
        nodes = [
            Node("n", op, ("a", "b"), ("sums",)),
            Node("r", "qnn.requantize", ("sums",), ("y",), attrs(rounding="fp32_rne", zero_point_first=True)),
        ]
    return LegalizePass()(build("net", inputs, ("y",), nodes, qparams=qparams))


@pytest.mark.parametrize("op", ["qnn.add", "qnn.multiply", "qnn.binary"])
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
@pytest.mark.parametrize("names", ["xk", "kx"])
@settings(max_examples=20)
@given(data=st.data(), shape=st.sampled_from([(), (1,), (1, 1, 1), (1, 3, 1)]), seed=st.integers(0, 2**32))
def test_a_sum_with_a_number_is_a_table(dtype, names, data, shape, seed) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    q = {name: QParams(data.draw(scales), int(rng.integers(info.min, info.max + 1)), dtype) for name in "xky"}
    node = Node("n", "qnn.add", tuple(names), ("y",), attrs(rounding="fp32_rne", semantics="onnx"))
    constants = {"k": Constant(rng.integers(info.min, info.max + 1, shape).astype(dtype))}
    kinds = {"x": TensorType((2, 3, 40), dtype)}
    graph = LegalizePass()(build("net", kinds, ("y",), [node], constants, qparams=q))
    program = plan(graph)
    made = {type(lowering).__name__ for lowering in program.lowerings}
    assert made == {"AddLowering" if 3 in shape else "SumWithNumberLowering"}
    x = rng.integers(info.min, info.max + 1, (2, 3, 40)).astype(dtype)
    np.testing.assert_array_equal(program.run({"x": x})["y"], run(graph, {"x": x})["y"])


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


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@settings(max_examples=30)
@given(
    data=st.data(), window=st.tuples(*[st.integers(1, 3)] * 4), counts=st.booleans(),
    channels=st.sampled_from([1, 5, 130]), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_an_average_pool_is_the_one_of_the_interpreter(dtype, data, window, counts, channels, seed) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    q = [QParams(data.draw(scales), data.draw(st.integers(int(info.min), int(info.max))), dtype) for _ in range(2)]
    padding = (window[0] // 2, 0, window[0] // 2, window[1] // 2)
    pool = {"pool_size": window[:2], "strides": window[2:], "padding": padding, "count_include_pad": counts}
    node = Node("n", "qnn.avg_pool2d", ("x",), ("y",), attrs(**pool, semantics="onnx"))
    kinds = {"x": TensorType((2, channels, 6, 5), dtype)}
    graph = LegalizePass()(build("net", kinds, ("y",), [node], qparams=dict(zip("xy", q, strict=True))))
    assert [node.op for node in graph.nodes] == ["integer.avg_pool2d_float32"]
    program = plan(graph)
    assert not program.fallbacks
    x = rng.integers(info.min, info.max + 1, (2, channels, 6, 5)).astype(dtype)
    np.testing.assert_array_equal(program.run({"x": x})["y"], run(graph, {"x": x})["y"])
