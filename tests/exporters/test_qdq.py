"""Annotated graphs as QDQ models: what runtimes make of them, and that their integers are ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from qbench.errors import ExportError
from qbench.exporters import onnx_model, onnx_qdq, write_onnx
from qbench.exporters.onnx.writer import Writer
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.annotate import AnnotatePass
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import run
from tests.exporters.parity import fused_ops, layer_by_layer, quantized, runtime_integers, session
from tests.frontends.architectures import ARCHITECTURES, feeds
from tests.frontends.models import save
from tests.frontends.test_real_models import images
from tests.passes.quantizable import bind_qparams, every_op, node, sample


@pytest.fixture(scope="module")
def digits(data_dir: Path) -> np.ndarray:
    return np.load(data_dir / "mnist_evaluation.npz")["x"][:100]


def mismatches(differences: dict[str, np.ndarray]) -> tuple[float, int]:
    """The share of elements that differ, and by how much at most."""
    elements = np.concatenate([array.ravel() for array in differences.values()])
    return float((elements != 0).mean()), int(np.abs(elements).max())


def test_every_layer_of_the_mlp_runs_in_integer_kernels(data_dir: Path, digits: np.ndarray, tmp_path: Path) -> None:
    model = quantized(load(data_dir / "mnist_mlp.onnx"), digits)
    path = write_onnx(model.annotated, tmp_path / "mlp.qdq.onnx")
    assert fused_ops(path) == {"QuantizeLinear": 1, "QGemm": 3, "DequantizeLinear": 1, "Softmax": 1}
    assert mismatches(layer_by_layer(model, digits)) == (0, 0)


def test_every_layer_of_the_cnn_runs_in_integer_kernels(data_dir: Path, digits: np.ndarray, tmp_path: Path) -> None:
    model = quantized(load(data_dir / "mnist_cnn.onnx"), digits)
    path = write_onnx(model.annotated, tmp_path / "cnn.qdq.onnx")
    fused = fused_ops(path)
    assert (fused["QLinearConv"], fused["QGemm"], fused["QLinearAdd"], fused["QLinearConcat"]) == (7, 1, 1, 1)
    assert not {"Conv", "Gemm", "Add", "Concat", "Relu"} & set(fused)
    assert mismatches(layer_by_layer(model, digits)) == (0, 0)
    (theirs,) = session(path).run(None, {"x": digits})
    ours = run(model.graph, {"x": digits})["probabilities"]
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.995


def test_every_quantizable_op() -> None:
    graph = every_op()
    x = sample(graph)
    differences = layer_by_layer(quantized(graph, x), x)
    rate, largest = mismatches({"rz": differences.pop("rz")})
    assert rate < 0.03 and largest <= 1  # ties: its size is no simple ratio, and onnxruntime interpolates in float32
    assert mismatches(differences) == (0, 0)


def test_a_clipped_softmax_saturates_and_does_not_wrap_around(tmp_path: Path) -> None:
    nodes = [
        node("product", "nn.batch_matmul", "x k", "p"),
        node("softmax", "nn.softmax", "p", "s"),
        node("mix", "nn.batch_matmul", "s x", "y"),
    ]
    constants = {"k": Constant(np.eye(3, 4, dtype=np.float32))}
    graph = build("attention", {"x": TensorType(("N", 4, 3), "float32")}, ["y"], nodes, constants)
    x = sample(graph) * 3
    config = QuantConfig(rounding="fp32_rne").override_tensor(
        "s", threshold=0.3
    )  # at 0.5, 1.0 would wrap to nearly itself
    model = quantized(graph, x, config)
    path = write_onnx(model.annotated, tmp_path / "attention.qdq.onnx")
    assert (runtime_integers(model.annotated, x)["s"] == 255).any()
    (theirs,) = session(path).run(None, {"x": x})
    np.testing.assert_allclose(run(model.graph, {"x": x})["y"], theirs, atol=2 * model.encodings["y"].qparams.scales[0])


def test_real_networks_layer_by_layer(shared_data: Path, tmp_path: Path) -> None:
    models = shared_data / "models"
    cases = {
        "mlperf_tiny/vww_mobilenetv1_025_fp32.onnx": images(shared_data, 4, (96, 96)) / np.float32(255),
        "cifar/resnet20_cifar10_bn.onnx": images(shared_data, 4, (32, 32)) / np.float32(127.5) - 1,
        "zoo/rapidocr_cls.onnx": images(shared_data, 2, (192, 48)) / np.float32(127.5) - 1,
        "imagenet/efficientnet_lite0_bn.onnx": (images(shared_data, 1) - 127) / np.float32(128),
    }
    for name, x in cases.items():
        model = quantized(load(models / name), x)
        share, largest = mismatches(layer_by_layer(model, x))
        assert share <= 1e-4, name
        assert largest <= 1, name
        fused = fused_ops(write_onnx(model.annotated, tmp_path / "model.onnx"))
        assert not {"Conv", "Gemm", "MatMul"} & set(fused), name


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_networks_as_exporters_write_them(tmp_path: Path, name: str) -> None:
    proto = ARCHITECTURES[name]()
    ((given, x),) = feeds(proto, 4).items()
    model = quantized(load(save(proto, tmp_path)), x)
    differences = layer_by_layer(model, x)
    # onnxruntime rounds these from other numbers: its integer softmax has a table, its interpolation is in reals.
    loose = {tensor for tensor in differences if "Softmax" in tensor or "Resize" in tensor}
    assert mismatches({tensor: array for tensor, array in differences.items() if tensor not in loose}) == (0, 0)
    assert mismatches(differences)[1] <= 1
    (theirs,) = session(write_onnx(model.annotated, tmp_path / "q.onnx")).run(None, {given: x})
    ours = run(model.graph, {given: x})["output"]
    assert np.abs(ours - theirs).max() <= 0.03 * np.abs(ours).max()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_integers_stand_right_before_layers_of_more_than_two_axes(tmp_path: Path, dtype: str) -> None:
    """Elsewhere onnxruntime puts them there itself, and its file of int8 is one that it refuses without VNNI."""
    proto = ARCHITECTURES["text classifier"]()
    ((given, x),) = feeds(proto, 4).items()
    config = QuantConfig.from_data({"activations": {"dtype": dtype}, "rounding": "fp32_rne"})
    model = quantized(load(save(proto, tmp_path)), x, config)
    path = write_onnx(model.annotated, tmp_path / "q.onnx")
    nodes = onnx.load(path).graph.node
    made = {output: node.op_type for node in nodes for output in node.output}
    gemms = [node for node in nodes if node.op_type == "Gemm"]
    assert len(gemms) > 2 and {made[gemm.input[0]] for gemm in gemms} == {"DequantizeLinear"}
    (theirs,) = session(path).run(None, {given: x})
    ours = run(model.graph, {given: x})["output"]
    assert np.abs(ours - theirs).max() <= 0.03 * np.abs(ours).max()
    again = load(path)
    np.testing.assert_array_equal(run(again, {given: x})["output"], ours)


@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn"])
def test_openvino_reads_it(data_dir: Path, digits: np.ndarray, tmp_path: Path, name: str) -> None:
    model = quantized(load(data_dir / f"{name}.onnx"), digits)
    path = write_onnx(model.annotated, tmp_path / "model.onnx")
    compiled = openvino.Core().compile_model(path, "CPU")
    theirs = compiled({"x": digits})["probabilities"]
    ours = run(model.graph, {"x": digits})["probabilities"]
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.98


CONFIGS = {
    "int8": {"activations": {"dtype": "int8"}},
    "symmetric int8": {"activations": {"dtype": "int8", "symmetric": True}},
    "int16": {"activations": {"dtype": "int16", "symmetric": True}},
    "int4 weights": {"weights": {"dtype": "int4"}},
    "per tensor": {"weights": {"axis": None}},
    "wide weights": {"weights": {"narrow": False}},
}


@pytest.mark.parametrize("what", CONFIGS)
def test_other_dtypes(tmp_path: Path, what: str) -> None:
    graph = every_op()
    x = sample(graph)
    model = quantized(graph, x, QuantConfig.model_validate({"rounding": "fp32_rne"} | CONFIGS[what]))
    path = write_onnx(model.annotated, tmp_path / "model.onnx")
    theirs = session(path, default=False).run(["f2"], {"x": x})[0]
    ours = run(model.annotated, {"x": x})["f2"]
    assert np.abs(ours - theirs).max() <= 0.025 * np.abs(ours).max()  # two steps, in a wide range of few samples
    assert session(path).run(["f2"], {"x": x})[0].shape == ours.shape


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("axis", ["channel", "tensor"])
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_data_of_16_bits_keep_them_in_runtimes(tmp_path: Path, rank: int, axis: str, dtype: str) -> None:
    """Where onnxruntime sees a product with dequantized weights, it rounds the data to 8 bits: of some numbers far
    larger than the others little would be left of those."""
    rng = np.random.default_rng(0)
    constants = {f"w{i}": rng.normal(size=(24, 32)) for i in (1, 2)} | {"b": rng.normal(size=24)}
    nodes = [node("fc1", "nn.dense", "x w1", "fc1"), node("y1", "nn.bias_add", "fc1 b", "y1", axis=rank - 1)]
    nodes.append(node("y2", "nn.dense", "x w2", "y2"))
    kept = {name: Constant(array.astype(np.float32)) for name, array in constants.items()}
    shape = ("N", 32) if rank == 2 else ("N", 5, 32)
    graph = build("wide", {"x": TensorType(shape, "float32")}, ["y1", "y2"], nodes, kept)
    x = rng.normal(size=(6, *shape[1:])).astype(np.float32)
    x[..., 0] *= 300
    activations = {"dtype": dtype, "symmetric": dtype == "int16"}
    weights = {"axis": None if axis == "tensor" else axis}
    model = quantized(graph, x, QuantConfig.model_validate({"activations": activations, "weights": weights}))
    path = write_onnx(model.annotated, tmp_path / "wide.onnx")
    ours, again = run(model.annotated, {"x": x}), run(load(path), {"x": x})
    read = openvino.Core().compile_model(path, "CPU")({"x": x})
    for name, theirs in zip(ours, session(path).run(None, {"x": x}), strict=True):
        for made in (theirs, again[name], read[name]):
            assert np.abs(made - ours[name]).max() < 2e-4 * np.abs(ours[name]).max()
    for name, array in run(model.graph, {"x": x}).items():
        np.testing.assert_array_equal(again[name], array)


def test_what_stays_in_float_may_do_so_in_half_precision(data_dir: Path, digits: np.ndarray, tmp_path: Path) -> None:
    model = quantized(load(data_dir / "mnist_mlp.onnx"), digits)
    path = write_onnx(model.annotated, tmp_path / "half.onnx", float16=True)
    casts = [n for n in onnx.load(path).graph.node if n.op_type == "Cast"]
    assert len(casts) == 2
    (theirs,) = session(path).run(None, {"x": digits})
    assert theirs.dtype == np.float32
    assert np.abs(theirs - run(model.annotated, {"x": digits})["probabilities"]).max() < 2e-3


@pytest.mark.parametrize("mode", ["static", "dynamic", "weight_only"])
@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_weights_that_are_cut_off_are_those_of_the_session(tmp_path: Path, mode: str, dtype: str) -> None:
    """The least integer is left out of weights; a threshold of somebody's own cuts many off at it."""
    rng = np.random.default_rng(0)
    weight = Constant(rng.normal(size=(24, 32)).astype(np.float32))
    nodes = [node("y", "nn.dense", "x w", "y")]
    graph = build("cut", {"x": TensorType(("N", 32), "float32")}, ["y"], nodes, {"w": weight})
    config = QuantConfig.model_validate({"mode": mode, "activations": {"dtype": dtype, "symmetric": dtype == "int16"}})
    model = quantized(graph, rng.normal(size=(6, 32)).astype(np.float32), config.override_tensor("w", threshold=0.5))
    stored = model.graph.constants["w"].array if mode != "weight_only" else model.qnn.constants["w"].array
    for nbits in (False, True):
        proto = onnx.load(write_onnx(model.annotated, tmp_path / "cut.onnx", nbits=nbits))
        found = {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer}
        if "w" in found:
            made = found["w"] if found["w"].shape == stored.shape else found["w"].T
            np.testing.assert_array_equal(made, stored)
            assert made.min() == -127
        else:
            assert found["w.packed"].min() == 1, "less by 128"


def test_names_types_and_scales(data_dir: Path, digits: np.ndarray) -> None:
    model = quantized(load(data_dir / "mnist_mlp.onnx"), digits)
    proto = onnx_model(model.annotated)
    assert (proto.ir_version, proto.opset_import[0].version) == (10, 21)
    constants = {i.name: i for i in proto.graph.initializer}
    assert constants["dense_1.weight"].data_type == TensorProto.INT8
    assert constants["dense_1.bias"].data_type == TensorProto.INT32
    scale = {name: numpy_helper.to_array(i) for name, i in constants.items() if name.endswith(".scale")}
    assert scale["dense_1.weight.scale"].shape == (512,)
    encoding = model.encodings["dense_1.weight"].qparams
    assert tuple(scale["dense_1.weight.scale"].tolist()) == encoding.scale
    np.testing.assert_array_equal(scale["dense_1.bias.scale"], scale["x.scale"] * scale["dense_1.weight.scale"])
    names = [n.name for n in proto.graph.node if n.op_type in ("Gemm", "Relu", "Softmax")]
    assert names == ["dense_1", "relu_1", "dense_2", "relu_2", "dense_3", "softmax"]
    assert [i.name for i in proto.graph.input] == ["x"]
    assert [o.name for o in proto.graph.output] == ["probabilities"]


def test_the_weights_of_large_models_lie_beside_them(
    data_dir: Path, digits: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = quantized(load(data_dir / "mnist_mlp.onnx"), digits)
    whole = onnx.load(write_onnx(model.annotated, tmp_path / "whole.onnx"))
    monkeypatch.setattr(onnx_qdq, "_LARGE", 1 << 16)
    path = write_onnx(model.annotated, tmp_path / "large.onnx")
    assert {file.name for file in tmp_path.iterdir()} == {"whole.onnx", "large.onnx", "large.onnx.data"}
    assert path.stat().st_size < 1 << 16 < (tmp_path / "large.onnx.data").stat().st_size
    assert onnx.load(path).graph.node == whole.graph.node
    for ours, theirs in zip(onnx.load(path).graph.initializer, whole.graph.initializer, strict=True):
        assert ours.name == theirs.name
        np.testing.assert_array_equal(numpy_helper.to_array(ours), numpy_helper.to_array(theirs))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Writer, "_outside", full)
    with pytest.raises(ExportError, match=r"cannot write .*other\.onnx'?: No space left on device"):
        write_onnx(model.annotated, tmp_path / "other.onnx")
    assert len([*tmp_path.iterdir()]) == 3  # nothing is left behind


def test_a_graph_without_qparams_is_exported_in_float(data_dir: Path, digits: np.ndarray, tmp_path: Path) -> None:
    graph = load(data_dir / "mnist_mlp.onnx")
    path = write_onnx(AnnotatePass()(graph), tmp_path / "float.onnx")
    assert not any("Quantize" in n.op_type for n in onnx.load(path).graph.node)
    (theirs,) = session(path).run(None, {"x": digits})
    np.testing.assert_allclose(theirs, run(graph, {"x": digits})["probabilities"], atol=1e-6)


def test_integer_graphs_are_refused(data_dir: Path, digits: np.ndarray) -> None:
    model = quantized(load(data_dir / "mnist_mlp.onnx"), digits)
    with pytest.raises(ExportError, match=r"'dense_1' \(integer.dense\).*annotated graph"):
        onnx_model(model.graph)


def test_a_bias_beyond_int32_is_refused(data_dir: Path) -> None:
    marked = AnnotatePass()(load(data_dir / "mnist_mlp.onnx"))
    fine = QParams(1e-9, 0, "int8")
    with pytest.raises(ExportError, match="node 'bias_add_1': the bias of channel"):
        onnx_model(bind_qparams(marked, {"x": fine, "dense_1.weight": fine}))


def small(data_dir: Path) -> Graph:
    return load(data_dir / "mnist_mlp.onnx")


def test_a_file_is_written_whole_or_not_at_all(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(ExportError, match="No space left"):
            write_onnx(small(data_dir), path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    assert write_onnx(small(data_dir), str(path)) == path
    assert load(path) == small(data_dir) or load(path).outputs == ("probabilities",)


def test_places_that_cannot_be_written(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="absent"):
        write_onnx(small(data_dir), tmp_path / "absent" / "model.onnx")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="file"):
        write_onnx(small(data_dir), tmp_path / "file" / "model.onnx")
    with pytest.raises(ExportError):
        write_onnx(small(data_dir), tmp_path)


def test_resizes_whose_scales_float32_cannot_hold_are_exported_by_size() -> None:
    nodes = [node(f"r{size}", "image.resize2d", "x", f"r{size}", size=(size, 3)) for size in range(1, 9)]
    outputs = [n.output for n in nodes]
    graph = build("sizes", {"x": TensorType(("N", 1, 3, 3), "float32")}, outputs, nodes)
    model = onnx.shape_inference.infer_shapes(onnx_model(graph), strict_mode=True, data_prop=True)
    made = session(model.SerializeToString()).run(outputs, {"x": sample(graph)})
    assert [array.shape[2] for array in made] == list(range(1, 9))


def test_a_weight_that_is_also_an_output_keeps_its_name_and_layout(tmp_path: Path) -> None:
    x = {"x": TensorType(("N", 2, 3), "float32")}
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    graph = build("g", x, ["y", "w"], [node("y", "nn.dense", "x w", "y")], {"w": Constant(weight)})
    path = write_onnx(graph, tmp_path / "g.onnx")
    np.testing.assert_array_equal(session(path).run(["w"], {"x": sample(graph)})[0], weight)
    np.testing.assert_array_equal(run(load(path), {"x": sample(graph)})["w"], weight)


def test_int8_products_of_transposed_activations_load_in_onnxruntime() -> None:
    scores = node("y", "nn.batch_matmul", "x x", "y", transpose_rhs=True)
    graph = build("g", {"x": TensorType(("N", 4, 3), "float32")}, ["y"], [scores])
    q = {name: QParams(0.05, 3, "int8") for name in ("x", "y")}
    model = onnx_model(bind_qparams(AnnotatePass()(graph), q))
    assert session(model.SerializeToString()).run(["y"], {"x": sample(graph)})[0].shape == (4, 4, 4)


def test_constants_that_several_nodes_read_load_in_onnxruntime_asked_for_exact_sums() -> None:
    """Boxes of detectors are sums and differences of the same places."""
    nodes = [node("a", "subtract", "k x", "a"), node("b", "add", "k x", "b")]
    graph = _of_rows(nodes, k=np.linspace(-1, 1, 5))
    x = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    done = quantized(graph, x)
    found = session(onnx_model(done.annotated).SerializeToString()).run(["a", "b"], {"x": x})
    wanted = run(done.graph, {"x": x})
    assert all(np.array_equal(found[at], wanted[name]) for at, name in enumerate(("a", "b")))


def test_a_weight_with_a_scale_per_channel_that_is_moved_in_float_is_not_quantized_again() -> None:
    weight = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    moved = replace(node("t", "transpose", "wq", "t", axes=(1, 0)), reason="kept in float")
    nodes = [node("q", "qnn.fake_quantize", "w", "wq", tensor="w"), moved, node("a", "nn.dense", "x t", "a")]
    graph = build("g", {"x": TensorType(("N", 4), "float32")}, ["a"], nodes, {"w": Constant(weight)})
    q = QParams((0.01, 0.02, 0.03, 0.04, 0.05), (0,) * 5, "int8", axis=1)
    done, x = bind_qparams(graph, {"w": q}), sample(graph)
    (found,) = ReferenceEvaluator(onnx_model(done)).run(["a"], {"x": x})
    np.testing.assert_allclose(found, x @ dequantize(quantize(weight, q), q), rtol=1e-5, atol=1e-6)


def test_a_weight_is_stored_once_however_often_it_is_read() -> None:
    graph = _of_rows([node("c", "nn.dense", "x w", "c"), node("a", "nn.dense", "c w", "a")], w=np.eye(5))
    model = onnx_model(quantized(graph, np.ones((2, 5), np.float32)).annotated)
    assert [list(one.dims) for one in model.graph.initializer if one.dims == [5, 5]] == [[5, 5]]


def _of_rows(nodes: list[Node], **known: np.ndarray) -> Graph:
    constants = {name: Constant(array.astype(np.float32)) for name, array in known.items()}
    outputs = [n.output for n in nodes if n.name in "ab"]
    return build("g", {"x": TensorType(("N", 5), "float32")}, outputs, nodes, constants)
