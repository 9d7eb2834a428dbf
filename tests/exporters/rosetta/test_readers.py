"""Files of other tools as those tools' own readers take them; skipped where a tool is not installed.

``pip install aimet-onnx nncf ai-edge-quantizer torch`` into an environment of its own (they are large, and want other
versions of things), and there ``python -m pytest --noconftest -o addopts= -o filterwarnings= FILE`` with this file.
README says which versions were asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.exporters.rosetta import FORMATS, Facts
from qbench.quant.specs import TensorOverride

SCALES = 0.125, 0.25, 0.5, 1.0
FACTS = Facts(
    {
        "x": TensorOverride(dtype="uint8", scale=0.5, zero_point=3),
        "h": TensorOverride(dtype="uint8", scale=0.25, zero_point=0),
    },
    {"w0": TensorOverride(dtype="int8", scale=SCALES, zero_point=(0,) * 4)},
    float_tensors=("y",),
    float_layers=("conv_1",),
)
RNG = np.random.default_rng(0)


def onnx_model() -> Any:
    """conv_0, relu_0 and conv_1, which make c, h and y of x."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = [RNG.normal(size=(out, into, 1, 1)).astype(np.float32) for out, into in ((4, 3), (5, 4))]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], name="conv_0"),
        helper.make_node("Relu", ["c"], ["h"], name="relu_0"),
        helper.make_node("Conv", ["h", "w1"], ["y"], name="conv_1"),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, many, 8, 8])] for name, many in (("x", 3), ("y", 5))
    ]
    constants = [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "g", *ends, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize("name", ["aimet", "aimet-0.6.1"])
def test_aimet_takes_scales_offsets_and_floats(name: str, tmp_path: Path):
    quantsim = pytest.importorskip("aimet_onnx.quantsim", reason="aimet-onnx is not installed")
    (tmp_path / "file").write_bytes(FORMATS[name].write(FACTS))
    simulated = quantsim.QuantizationSimModel(onnx_model())
    quantsim.load_encodings_to_sim(simulated, str(tmp_path / "file"), strict=False)
    found = simulated.qc_quantize_op_dict
    said = {key: [(e.delta, e.offset, e.bw) for e in found[key].get_encodings()] for key in ("x", "h", "w0")}
    assert said == {"x": [(0.5, -3, 8)], "h": [(0.25, 0, 8)], "w0": [(scale, -128, 8) for scale in SCALES]}
    assert (found["y"].data_type.name, found["y"].bitwidth, found["w1"].enabled) == ("float", 16, False)


def test_nncf_leaves_the_layers_of_the_scope_alone():
    nncf = pytest.importorskip("nncf", reason="nncf is not installed")
    data = nncf.Dataset([{"x": RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)} for _ in range(3)])
    scope = nncf.IgnoredScope(**json.loads(FORMATS["nncf"].write(FACTS)))
    graph = nncf.quantize(onnx_model(), data, ignored_scope=scope).graph
    makers = {output: node.op_type for node in graph.node for output in node.output}
    read = {node.name: {makers.get(name) for name in node.input} for node in graph.node if node.op_type == "Conv"}
    assert read["conv_0"] == {"DequantizeLinear"}
    assert "DequantizeLinear" not in read["conv_1"]


def test_ai_edge_quantizer_leaves_the_recipes_layers_in_float(tmp_path: Path):
    quantizer = pytest.importorskip("ai_edge_quantizer.quantizer", reason="ai-edge-quantizer is not installed")
    import tflite

    from tests.tflite_files import Tensor, constant, model, operator

    weights = [constant(f"w{i}", RNG.normal(size=shape).astype(np.float32)) for i, shape in enumerate(((6, 8), (5, 6)))]
    tensors = [Tensor("x", (1, 8)), weights[0], Tensor("h", (1, 6)), weights[1], Tensor("y", (1, 5))]
    dense = [operator("FULLY_CONNECTED", (a, b), (c,)) for a, b, c in (("x", "w0", "h"), ("h", "w1", "y"))]
    (tmp_path / "model.tflite").write_bytes(model(tensors, dense))
    tool = quantizer.Quantizer(str(tmp_path / "model.tflite"))
    tool.load_quantization_recipe(json.loads(FORMATS["ai-edge"].write(Facts(float_tensors=("h",)))))
    ranges = {"min": np.array([[-2.0]], np.float32), "max": np.array([[3.0]], np.float32)}
    made = tflite.Model.GetRootAs(bytes(tool.quantize(dict.fromkeys("xhy", ranges)).quantized_model), 0).Subgraphs(0)
    types = {made.Tensors(i).Name().decode(): made.Tensors(i).Type() for i in range(made.TensorsLength())}
    assert {types["w0"], types["h"]} == {tflite.TensorType.FLOAT32}
    assert {types["x"], types["w1"], types["y"]} == {tflite.TensorType.INT8}


def test_torch_loads_scales_that_round_as_qbench_does():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import load

    from qbench.ir.qparams import QParams
    from qbench.quant.arithmetic import dequantize, quantize

    state = load(FORMATS["safetensors"].write(FACTS))
    module = torch.nn.Module()
    for part in ("scale", "zero_point", "bits"):
        module.register_buffer(part, torch.zeros_like(state[f"w0.{part}"]))
    module.load_state_dict({part: state[f"w0.{part}"] for part in ("scale", "zero_point", "bits")})
    values = (RNG.normal(size=(4, 5)) * 40).astype(np.float32)
    low, high = -(2 ** (int(module.bits) - 1)), 2 ** (int(module.bits) - 1) - 1
    rounded = torch.fake_quantize_per_channel_affine(
        torch.from_numpy(values), module.scale, module.zero_point, 0, low, high
    )
    q = QParams(SCALES, (0,) * 4, "int8", 0)
    assert np.array_equal(rounded.numpy(), dequantize(quantize(values, q), q))
