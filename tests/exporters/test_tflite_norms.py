"""Normalizations in TFLite files, as LiteRT computes them and as we read them back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from qbench.errors import ExportError
from qbench.exporters.tflite import tflite_model
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.passes.canonicalize import CanonicalizePass
from qbench.runtime.interpreter import run
from qbench.session.export import export_tflite
from qbench.session.session import Session
from tests.passes.quantizable import node
from tests.tflite_files import Resolver, litert

Array = np.ndarray

POOL = node("pool", "nn.max_pool2d", "x", "p", pool_size=(1, 1), strides=(1, 1))
"""Behind it the file has channels last."""


def reals(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(1, 2, size=shape).astype(np.float32)


def written(graph: Graph, x: Array, folder: Path, resolver: Resolver = "BUILTIN_REF") -> Graph:
    """The graph of the file that a graph makes, after the check that all three give the same."""
    path, wanted = export_tflite(graph, folder / "model.tflite"), run(graph, {"x": x})["y"]
    np.testing.assert_allclose(litert(path.read_bytes(), {"x": x}, resolver)["y"], wanted, rtol=1e-4, atol=1e-5)
    again = load(path)
    np.testing.assert_allclose(run(again, {"x": x})["y"], wanted, rtol=1e-4, atol=1e-5)
    return CanonicalizePass()(again)


@pytest.mark.parametrize(
    ("shape", "behind"), [((2, 3, 8), ""), ((2, 3, 4, 5), ""), ((2, 3, 4, 5), "pool"), ((2, 3, 2, 4, 5), "")]
)
@pytest.mark.parametrize("activation", [False, True])
def test_each_channel_by_its_own_mean(tmp_path: Path, shape: tuple[int, ...], behind: str, activation: bool) -> None:
    constants = {"gamma": Constant(reals(3, seed=1)), "beta": Constant(reals(3, seed=2))}
    data, made = "p" if behind else "x", "n" if activation else "y"
    nodes = [node("norm", "nn.instance_norm", f"{data} gamma beta", made, epsilon=1e-3)]
    nodes = [*([POOL] if behind else []), *nodes, *([node("relu", "nn.relu", "n", "y")] if activation else [])]
    graph = build("norm", {"x": TensorType(("N", *shape[1:]), "float32")}, ["y"], nodes, constants)
    again = written(graph, reals(*shape), tmp_path)
    found = next(node for node in again.nodes if node.op == "nn.instance_norm")
    assert found.attrs["epsilon"] == pytest.approx(1e-3)
    assert ("nn.relu" in [node.op for node in again.nodes]) == activation


def test_factors_that_are_computed(tmp_path: Path) -> None:
    nodes = [
        node("mean", "mean", "x", "m", axes=(0, 2), keepdims=False),
        node("double", "add", "m m", "g"),
        node("norm", "nn.instance_norm", "x g m", "n"),
        node("bias", "nn.bias_add", "n g", "y"),
    ]
    graph = build("computed", {"x": TensorType((2, 3, 8), "float32")}, ["y"], nodes, {})
    written(graph, reals(2, 3, 8), tmp_path)


def onnx_model(folder: Path, opset: int, spelled: bool) -> Path:
    """A convolution, group normalization as torch exports it for an opset, and a relu."""
    arrays = {"w": reals(8, 3, 3, 3), "first": np.array([0, 2, -1]), "last": np.array([-1, 8, 6, 5])}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1])]
    if spelled:
        arrays |= {"g": reals(8, 1, 1, seed=1), "b": reals(8, 1, 1, seed=2)}
        arrays |= {"ones": np.ones(2, np.float32), "zeros": np.zeros(2, np.float32)}
        steps = [
            ("Reshape", "c first", "r"),
            ("InstanceNormalization", "r ones zeros", "i"),
            ("Reshape", "i last", "s"),
            ("Mul", "s g", "m"),
            ("Add", "m b", "n"),
        ]
        nodes += [helper.make_node(op, inputs.split(), [made], name=op + made) for op, inputs, made in steps]
    else:
        count = 2 if opset < 21 else 8
        arrays |= {"g": reals(count, seed=1), "b": reals(count, seed=2)}
        nodes += [helper.make_node("GroupNormalization", ["c", "g", "b"], ["n"], name="group", num_groups=2)]
    nodes += [helper.make_node("Relu", ["n"], ["y"], name="relu")]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "group",
        [helper.make_tensor_value_info("x", kind, ["N", 3, 6, 5])],
        [helper.make_tensor_value_info("y", kind, ["N", 8, 6, 5])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize(("opset", "spelled"), [(17, True), (18, False), (21, False)])
def test_groups_of_channels(tmp_path: Path, opset: int, spelled: bool) -> None:
    graph = load(onnx_model(tmp_path, opset, spelled))
    x = reals(3, 3, 6, 5)
    again = written(graph, x, tmp_path)
    assert "nn.layer_norm" in [node.op for node in again.nodes]  # of the rows that the groups are


@pytest.mark.parametrize("preset", ["default", "int8"])
def test_groups_of_channels_are_real_numbers_among_integers(tmp_path: Path, preset: str) -> None:
    graph, x = load(onnx_model(tmp_path, 18, spelled=False)), reals(4, 3, 6, 5)
    session = Session(graph, x, preset=preset)
    path = export_tflite(session, tmp_path / "model.tflite")
    wanted = run(session.quantized(session.config.with_value("semantics", "tflite")).qnn, {"x": x})["y"]
    theirs, again = litert(path.read_bytes(), {"x": x}), load(path)
    np.testing.assert_allclose(theirs["y"], run(again, {"x": x})["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(theirs["y"], wanted, atol=2e-3)  # what the layer makes has 16 bits in the file
    assert np.abs(wanted - run(graph, {"x": x})["y"]).max() < np.abs(wanted).max() / 10
    assert any(node.op == "qnn.conv2d" for node in again.nodes)


@pytest.mark.parametrize(("shape", "behind"), [((2, 3), ""), ((2, 3, 4, 5), ""), ((2, 3, 4, 5), "pool")])
def test_batch_normalization_that_no_layer_has_taken_in(tmp_path: Path, shape: tuple[int, ...], behind: str) -> None:
    constants = {name: Constant(np.abs(reals(3, seed=i))) for i, name in enumerate(("g", "b", "m", "v"))}
    data = "p" if behind else "x"
    nodes = [node("norm", "nn.batch_norm", f"{data} g b m v", "n", epsilon=0.1), node("relu", "nn.relu", "n", "y")]
    graph = build("norm", {"x": TensorType(shape, "float32")}, ["y"], [*([POOL] if behind else []), *nodes], constants)
    written(graph, reals(*shape), tmp_path)


def test_batch_normalization_by_what_is_computed_is_refused() -> None:
    types = {name: TensorType((3,), "float32") for name in "gbmv"}
    nodes = [node("norm", "nn.batch_norm", "x g b m v", "y")]
    graph = build("norm", {"x": TensorType((2, 3), "float32"), **types}, ["y"], nodes, {})
    with pytest.raises(ExportError, match="parameters are not constant"):
        tflite_model(graph)


def test_neighbouring_channels(tmp_path: Path) -> None:
    nodes = [node("norm", "nn.lrn", "x", "y", size=3, alpha=0.5, beta=0.6, bias=1.5)]
    graph = build("norm", {"x": TensorType((2, 7, 4, 5), "float32")}, ["y"], nodes, {})
    resolver = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"  # its reference kernel leaves out a neighbour
    again = written(graph, reals(2, 7, 4, 5), tmp_path, resolver)
    (found,) = [node for node in again.nodes if node.op == "nn.lrn"]
    assert (found.attrs["size"], found.attrs["alpha"]) == (3, pytest.approx(0.5))


@pytest.mark.parametrize(("size", "shape"), [(4, (2, 7, 4, 5)), (3, (2, 7, 4))])
def test_neighbours_that_tflite_has_not(size: int, shape: tuple[int, ...]) -> None:
    nodes = [node("norm", "nn.lrn", "x", "y", size=size)]
    graph = build("norm", {"x": TensorType(shape, "float32")}, ["y"], nodes, {})
    with pytest.raises(ExportError, match="more neighbours on one side, or of other data than images"):
        tflite_model(graph)
