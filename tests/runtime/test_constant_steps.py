"""Steps that read nothing but constants, such as the dequantized parameters of an imported model."""

from __future__ import annotations

import numpy as np

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.runtime import interpreter
from qbench.runtime.programs import plan


def test_parameters_dequantized_along_an_axis_are_planned():
    rng = np.random.default_rng(0)
    codes = {"w": rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), "b": rng.integers(-9, 9, 4).astype(np.int8)}
    scales = (0.01, 0.02, 0.03, 0.04)
    qparams = {name: QParams(scales, (0,) * 4, "int8", 0) for name in codes}
    nodes = [
        Node("w.dequantize", "qnn.dequantize", ("w",), ("w.real",)),
        Node("b.dequantize", "qnn.dequantize", ("b",), ("b.real",)),
        Node("conv", "nn.conv2d", ("x", "w.real"), ("conv",)),
        Node("bias", "nn.bias_add", ("conv", "b.real"), ("y",)),
    ]
    inputs = {"x": TensorType(("N", 3, 6, 6), "float32")}
    constants = {name: Constant(array) for name, array in codes.items()}
    graph = build("small", inputs, ["y"], nodes, constants, qparams)
    x = rng.normal(size=(3, 3, 6, 6)).astype(np.float32)
    found, expected = plan(graph).run(x), interpreter.run(graph, {"x": x})
    assert np.allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-5)


def test_what_every_sample_has_alike_is_a_constant():
    """The first states of a recurrent layer, repeated for an open batch; the interpreter reads them too."""
    rng = np.random.default_rng(1)
    shapes = {"k": (1, 12, 4), "r": (1, 12, 3), "o": (1, 24), "zero": (1, 1, 1)}
    constants = {name: Constant(rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()}
    nodes = [
        Node("steps", "transpose", ("x",), ("steps",), FrozenMap({"axes": (1, 0, 2)})),
        Node("states", "broadcast_to", ("zero",), ("h",), FrozenMap({"shape": (1, "N", 3)})),
        Node("layer", "nn.lstm", ("steps", "k", "r", "o", "h", "h"), ("made", "last", "cell")),
        Node("whole", "cast", ("made",), ("whole",), FrozenMap({"dtype": "int16"})),
        Node("back", "transpose", ("whole",), ("y",), FrozenMap({"axes": (2, 0, 1, 3)})),
        Node("half", "cast", ("h",), ("half",), FrozenMap({"dtype": "int16"})),
        Node("half back", "transpose", ("half",), ("z",), FrozenMap({"axes": (1, 0, 2)})),
    ]
    graph = build("small", {"x": TensorType(("N", 5, 4), "float32")}, ["y", "z"], nodes, constants)
    program, x = plan(graph), rng.normal(size=(3, 5, 4)).astype(np.float32) * 9
    assert "states" not in program.fallbacks
    assert set(program.fallbacks) <= {"whole", "half", "half back"}
    for name, array in interpreter.run(graph, {"x": x}).items():
        np.testing.assert_array_equal(program.run(x)[name], array)
    kept = plan(graph, keep=["h"]).run(x, keep=["h"])
    np.testing.assert_array_equal(kept["h"], np.broadcast_to(constants["zero"].array, (1, 3, 3)))


def test_an_output_of_constants_alone_is_one():
    nodes = [
        Node("double", "add", ("c", "c"), ("doubled",)),
        Node("size", "sizes", (), ("length",), FrozenMap({"values": ("L",)})),
        Node("act", "nn.relu", ("x",), ("y",)),
    ]
    constants = {"c": Constant(np.float32([1, 2]))}
    graph = build("small", {"x": TensorType((1, "L"), "float32")}, ["y", "doubled", "length"], nodes, constants)
    program, x = plan(graph, sizes={"L": 4}), np.float32([[-1, 2, 3, 4]])
    assert not program.fallbacks
    for name, array in interpreter.run(graph, {"x": x}).items():
        np.testing.assert_array_equal(program.run(x)[name], array)
