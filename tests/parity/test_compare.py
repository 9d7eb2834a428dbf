from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import qbench as qb
from qbench import lab
from qbench.errors import Cancelled, DataError
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant
from qbench.runtime import interpreter

ROUNDINGS = ("tflite_double", "tflite_single")


@pytest.fixture(scope="module")
def digits(data_dir):
    return np.load(data_dir / "mnist_evaluation.npz")["x"][:48]


@pytest.fixture(scope="module")
def network(data_dir):
    return qb.load(data_dir / "mnist_cnn.onnx")


@pytest.fixture(scope="module")
def graphs(network, digits):
    """The same integers, requantized in two ways."""

    def made(rounding):
        return qb.Session(network, calibration=digits, config=qb.QuantConfig(rounding=rounding)).quantized().graph

    return [made(rounding) for rounding in ROUNDINGS]


@pytest.fixture(scope="module")
def found(graphs, digits):
    return qb.compare(*graphs, digits)


def test_end_to_end_is_what_two_runs_give(found, graphs, digits):
    names = [layer.tensor for layer in found.layers]
    left, right = (interpreter.run(graph, {graph.inputs[0]: digits}, keep=names) for graph in graphs)
    for layer in found.layers:
        if layer.dtype != "float32":
            distance = left[layer.tensor].astype(int) - right[layer.tensor]
            assert layer.end_to_end.different == np.count_nonzero(distance), layer.tensor
            assert layer.end_to_end.max_lsb == abs(distance).max()
    assert found.samples == 48 and found.missing == ()


def test_each_op_alone_is_fed_with_the_integers_of_the_other_side(found, graphs, digits):
    left, right = graphs
    given = interpreter.run(right, {right.inputs[0]: digits}, keep=list(right.activations())) | {
        name: constant.array for name, constant in left.constants.items()
    }
    for node in left.nodes:
        (alone,) = interpreter.step(left, node, [given[value] for value in node.inputs])
        layer = next(layer for layer in found.layers if layer.tensor == node.output)
        if layer.dtype != "float32":
            assert layer.different == np.count_nonzero(alone != given[node.output]), node.name
        assert (layer.name, layer.op) == (node.name, node.op)


def test_only_what_rounds_differs_and_about_as_often_as_predicted(found):
    rounding = [layer for layer in found.layers if layer.op == "integer.requantize"]
    assert all(layer.roundings == ROUNDINGS for layer in rounding)
    assert {layer.op for layer in found.layers if layer.different} == {"integer.requantize"}
    assert all(layer.predicted is None for layer in found.layers if layer not in rounding)
    predicted = sum((layer.predicted or 0.0) * layer.elements for layer in rounding)
    assert 0.4 * predicted < found.different < 2 * predicted  # digits are mostly black: not all integers occur
    assert found.first is not None and found.first.name == next(x.name for x in rounding if x.different)


def test_a_graph_does_not_differ_from_itself(graphs, digits):
    same = qb.compare(graphs[0], qb.plan(graphs[0]), digits)
    assert (same.different, same.different_end_to_end, same.first) == (0, 0, None)
    assert "no difference" in str(same)


def test_the_program_is_compared_with_the_interpreter(graphs, digits):
    oracle = lab.Ours(graphs[0], "interpreter", name="interpreter")
    found = qb.compare(graphs[0], oracle, digits[:8])
    assert (found.different, found.right) == (0, "interpreter")


def test_a_changed_weight_is_found_where_it_is(graphs, digits):
    graph = graphs[0]
    conv = [node for node in graph.nodes if node.op == "integer.conv2d"][2]
    weight = graph.constants[conv.inputs[1]].array.copy()
    weight[3] += 1
    spoiled = rebuild(graph, constants={**graph.constants, conv.inputs[1]: Constant(weight)})
    found = qb.compare(spoiled, graph, digits[:8])
    assert [layer.name for layer in found.layers if layer.different] == [conv.name]
    assert found.first is not None and found.first.name == conv.name
    assert np.flatnonzero(found.first.found.channels).tolist() == [3]
    assert found.different_end_to_end > found.different


def test_float_models_are_compared_by_relative_error(network, digits):
    weight = next(iter(network.constants))
    other = {**network.constants, weight: Constant(network.constants[weight].array * np.float32(1.01))}
    found = qb.compare(network, rebuild(network, constants=other), digits[:4])
    first = found.first
    assert first is not None and first.max_lsb is None and 0.005 < first.found.max_relative < 0.02
    assert qb.compare(network, network, digits[:4]).different == 0


def test_json_has_what_a_script_needs(found):
    content = json.loads(found.to_json())
    assert content["different"] == sum(layer["different"] for layer in content["layers"]) == found.different > 0
    assert {"name", "op", "elements", "different", "max_lsb"} <= content["layers"][0].keys()
    assert content["first_divergent"] == found.first.name
    table = found.table()
    assert list(table["different"]) == [layer.different for layer in found.layers]
    assert found.layer(table["name"][3]) == found.layers[3] and found.layer("nothing") is None


def test_the_text_names_the_first_divergent_op_and_both_roundings(found):
    assert f"first divergent op: {found.first.name} (integer.requantize): tflite_double against tflite_single" in str(
        found
    )


def test_what_cannot_be_compared_is_said(network, graphs, digits):
    mixed = qb.compare(network, graphs[0], digits[:4])
    assert ("conv_1_relu", "float32 and uint8") in mixed.missing
    assert "not compared" in str(mixed)
    with pytest.raises(DataError, match="cannot compare a str"):
        qb.compare("model.onnx", network, digits)
    other = qb.Graph("other", ("x",), ("x",), (), graphs[0].constants, graphs[0].types)
    with pytest.raises(DataError, match="no value in common"):
        qb.compare(network, other, digits)
    with pytest.raises(DataError, match="input data"):
        qb.compare(network, network, digits[:, :5])


def test_a_comparison_can_be_cancelled_and_tells_how_far_it_is(graphs, digits):
    told, stop = [], threading.Event()

    def progress(done, total):
        told.append((done, total))
        stop.set()

    many = np.concatenate([digits] * 2)
    with pytest.raises(Cancelled):
        qb.compare(*graphs, many, progress=progress, cancel=stop)
    assert len(told) == 1 and told[0][1] == 96
