"""LSTM, GRU and RNN as exporters write them give onnxruntime's outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from qbench.errors import UnsupportedOpsError
from qbench.exporters.onnx_qdq import write_onnx
from qbench.frontends import load
from qbench.runtime.interpreter import run
from qbench.runtime.programs import Programs
from tests.frontends.models import check, model, node, random, reference, save

UNITS, ENTERING = 5, 4


def weights(op: str, count: int) -> dict[str, np.ndarray]:
    rows = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * UNITS
    shapes = {"w": (count, rows, ENTERING), "r": (count, rows, UNITS), "b": (count, 2 * rows)}
    return {name: random(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("states", ["given", "none"])
@pytest.mark.parametrize(("op", "linear"), [("LSTM", 0), ("GRU", 0), ("GRU", 1), ("RNN", 0)])
def test_layers(tmp_path: Path, op: str, direction: str, states: str, linear: int) -> None:
    count = 2 if direction == "bidirectional" else 1
    names = ["h", "c"][: 2 if op == "LSTM" else 1]
    given = names if states == "given" else []
    attrs = {"linear_before_reset": linear} if op == "GRU" else {}
    made = ["y", *(f"{name}.last" for name in names)]
    layer = node(op, ["x", "w", "r", "b", "", *given], made, "layer", direction=direction, hidden_size=UNITS, **attrs)
    inputs = {"x": ["T", "N", ENTERING], **{name: [count, "N", UNITS] for name in given}}
    feeds = {"x": random(6, 2, ENTERING), **{name: random(count, 2, UNITS, seed=9) for name in given}}
    graph = check(save(model([layer], inputs, made, weights(op, count)), tmp_path), feeds)
    written = write_onnx(graph, tmp_path / "again.onnx")
    for name, array in reference(written, feeds).items():
        np.testing.assert_allclose(array, run(graph, feeds)[name], atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "states"), [("LSTM", "h c p"), ("LSTM", ""), ("GRU", "h"), ("GRU", ""), ("RNN", "")])
def test_each_sequence_ends_where_its_length_says(tmp_path: Path, op: str, direction: str, states: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    given = states.split()
    layer = node(op, ["x", "w", "r", "b", "n", *given], ["y", "last"], "layer", direction=direction, hidden_size=UNITS)
    inputs = {"x": ["T", "N", ENTERING], "n": ["N"], **{name: [count, "N", UNITS] for name in given if name != "p"}}
    constants = weights(op, count) | ({"p": random(count, 3 * UNITS, seed=4)} if "p" in given else {})
    proto = model([layer], inputs, ["y", "last"], constants, dtypes={"n": TensorProto.INT32})
    feeds = {"x": random(6, 3, ENTERING), "n": np.array([6, 1, 4], np.int32)}
    feeds |= {name: random(count, 3, UNITS, seed=9) for name in inputs if name in "hc"}
    graph = check(save(proto, tmp_path), feeds)
    program = Programs(graph).of(feeds)
    for name, array in program.run(feeds).items():
        np.testing.assert_allclose(array, run(graph, feeds)[name], atol=1e-6)


def test_last_cells_of_sequences_of_different_lengths_are_refused(tmp_path: Path) -> None:
    layer = node("LSTM", ["x", "w", "r", "b", "n"], ["y", "h", "c"], "layer", hidden_size=UNITS)
    kinds = {"x": ["T", "N", ENTERING], "n": ["N"]}
    proto = model([layer], kinds, ["y", "h", "c"], weights("LSTM", 1), dtypes={"n": TensorProto.INT32})
    with pytest.raises(UnsupportedOpsError, match="different lengths"):
        load(save(proto, tmp_path))


@pytest.mark.parametrize("one_gate", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_gates_that_see_the_cell(tmp_path: Path, direction: str, one_gate: int) -> None:
    """Peepholes, with a forget gate of its own or with 1 less the input gate in place of it."""
    count = 2 if direction == "bidirectional" else 1
    inputs, made = ["x", "w", "r", "b", "", "h", "c", "p"], ["y", "h.last", "c.last"]
    attrs = {"direction": direction, "hidden_size": UNITS, "input_forget": one_gate}
    given = {"x": ["T", "N", ENTERING], **{name: [count, "N", UNITS] for name in "hc"}}
    constants = weights("LSTM", count) | {"p": random(count, 3 * UNITS, seed=4)}
    proto = model([node("LSTM", inputs, made, "layer", **attrs)], given, made, constants)
    for steps, n in ((6, 2), (1, 1)):
        feeds = {"x": random(steps, n, ENTERING), **{name: random(count, n, UNITS, seed=9) for name in "hc"}}
        graph = check(save(proto, tmp_path), feeds, 1e-5)
        check(write_onnx(graph, tmp_path / "again.onnx"), feeds, 1e-5)
        program = Programs(graph).of(feeds)
        assert not [step for step in program.steps if step.reason]
        for name, array in program.run(feeds).items():
            np.testing.assert_allclose(array, run(graph, feeds)[name], atol=1e-6)


def test_peepholes_that_are_all_0_are_left_out(tmp_path: Path) -> None:
    layer = node("LSTM", ["x", "w", "r", "b", "", "", "", "p"], ["y"], hidden_size=UNITS)
    constants = weights("LSTM", 1) | {"p": np.zeros((1, 3 * UNITS), np.float32)}
    graph = check(
        save(model([layer], {"x": ["T", "N", ENTERING]}, constants=constants), tmp_path), {"x": random(3, 2, ENTERING)}
    )
    assert "p" not in graph.constants


def test_a_denoiser_runs_sample_by_sample_with_its_state(tmp_path: Path) -> None:
    """Batch first, as networks have it; the state goes in and out."""
    nodes = [
        node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        node("GRU", ["steps", "w", "r", "b", "", "h"], ["made", "last"], hidden_size=UNITS, linear_before_reset=1),
        node("Squeeze", ["made", "one"], ["flat"]),
        node("Transpose", ["flat"], ["back"], perm=[1, 0, 2]),
        node("Sigmoid", ["back"], ["y"]),
    ]
    constants = weights("GRU", 1) | {"one": np.array([1])}
    proto = model(nodes, {"x": ["N", "T", ENTERING], "h": [1, "N", UNITS]}, ["y", "last"], constants)
    for n, t in ((1, 1), (2, 7)):
        feeds = {"x": random(n, t, ENTERING), "h": random(1, n, UNITS)}
        graph = check(save(proto, tmp_path), feeds)
        made = Programs(graph).of(feeds).run(feeds)
        for name, array in run(graph, feeds).items():
            np.testing.assert_allclose(made[name], array, atol=1e-6)


@pytest.mark.usefixtures("exact_onnxruntime")
@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("peepholes", ["", "p"])
def test_weights_of_8_bits_multiply_rounded_data(tmp_path: Path, peepholes: str, per_row: bool) -> None:
    """What onnxruntime gives of one sequence; the file that is written again holds the same integers."""
    real = weights("LSTM", 2)
    scales = {name: np.abs(real[name]).max(axis=2 if per_row else (1, 2)) / np.float32(127) for name in "wr"}
    turned = {
        name: np.rint(real[name].transpose(0, 2, 1) / scales[name].reshape(2, 1, -1)).astype(np.int8) for name in "wr"
    }
    zeros = {f"{name}.zero": np.zeros(scales[name].shape, np.int8) for name in "wr"}
    constants = turned | {f"{name}.scale": array for name, array in scales.items()} | zeros
    inputs = ["x", "w", "r", "b", "", "", "", peepholes, "w.scale", "w.zero", "r.scale", "r.zero"]
    attrs = {"domain": "com.microsoft", "hidden_size": UNITS, "direction": "bidirectional"}
    layer = helper.make_node("DynamicQuantizeLSTM", inputs, ["y"], **attrs)
    proto = model(
        [layer], {"x": ["T", "N", ENTERING]}, constants=constants | {"b": real["b"], "p": random(2, 3 * UNITS)}
    )
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for count in (1, 2, 7):
        feeds = {"x": random(6, count, ENTERING)}
        graph = check(save(proto, tmp_path), feeds, 1e-5)
        check(write_onnx(graph, tmp_path / "again.onnx"), feeds, 1e-5)


def test_the_usual_activations_may_be_written_out_as_for_two_directions(tmp_path: Path) -> None:
    layer = node("RNN", ["x", "w", "r", "b"], ["y"], hidden_size=UNITS, activations=["Tanh", "Tanh"])
    proto = model([layer], {"x": ["T", "N", ENTERING]}, constants=weights("RNN", 1))
    check(save(proto, tmp_path), {"x": random(6, 2, ENTERING)})  # as onnxruntime does in the files that it optimized


def test_other_activations_are_refused(tmp_path: Path) -> None:
    layer = node("GRU", ["x", "w", "r"], ["y"], hidden_size=UNITS, activations=["HardSigmoid", "Tanh"])
    proto = model([layer], {"x": ["T", "N", ENTERING]}, constants=weights("GRU", 1))
    with pytest.raises(UnsupportedOpsError, match="activations"):
        load(save(proto, tmp_path))
