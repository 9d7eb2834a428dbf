"""What peers run in int8: any float file comes to an opset that has scales per channel."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from qbench.bench.engines.onnxruntime import quantize

runtime = pytest.importorskip("onnxruntime")


@pytest.mark.usefixtures("exact_onnxruntime")
def test_files_of_old_opsets_are_quantized_per_channel(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items())
    graph = helper.make_graph(nodes, "old", [x], [y], [numpy_helper.from_array(weight, "w")])
    model, target, sample = tmp_path / "old.onnx", tmp_path / "int8.onnx", tmp_path / "x.npz"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7), model)
    given = rng.normal(size=SHAPES["x"]).astype(np.float32)
    np.savez(sample, x=given)

    quantize(model, [sample], target)

    exact, rounded = (runtime.InferenceSession(str(path)).run(None, {"x": given})[0] for path in (model, target))
    scales = [tensor for tensor in onnx.load(target).graph.initializer if tensor.name == "w_scale"]
    assert [list(scale.dims) for scale in scales] == [[4]]
    np.testing.assert_allclose(rounded, exact, atol=0.05 * np.abs(exact).max())


SHAPES = {"x": (1, 3, 6, 6), "y": (1, 4, 4, 4)}
