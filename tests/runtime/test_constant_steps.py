"""Steps that read nothing but constants, such as the dequantized parameters of an imported model."""

from __future__ import annotations

import numpy as np

from qbench.ir.build import build
from qbench.ir.frozen import Constant
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
