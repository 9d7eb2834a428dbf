"""Variables become inputs and outputs, and both branches of an IF run: as LiteRT computes, step by step."""

import re
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers

from qbench.errors import ModelError, UnsupportedOpsError
from qbench.frontends import load
from qbench.runtime.interpreter import run
from tests.frontends.tflite.checking import check, save
from tests.frontends.tflite.loops import STEPS, UNITS, looping, recurrent
from tests.tflite_files import Function, Operator, Tensor, constant, model, operator

RNG = np.random.default_rng(5)
ROWS, FIRST = 4, -7


def handle(name: str, of: str) -> Operator:
    return operator("VAR_HANDLE", [], [name], shared_name=of)


def rows(name: str, count: int) -> Tensor:
    return Tensor(name, (1, count, 3), "int8", scale=0.5)


def streaming(*, assigned: bool = True, handled: bool = True) -> bytes:
    """The last rows of all runs beside the new one, and a row that is the same in each run added to them."""
    tensors = [
        *(rows("x", 1), rows("old", ROWS), rows("all", ROWS + 1), rows("left", ROWS), rows("again", ROWS)),
        *(rows("same", 1), Tensor("y", (1, ROWS, 3), "int8", scale=1.0)),
        *(Tensor("h", (), "resource"), Tensor("k", (), "resource")),
        *(constant("begin", np.int32([0, 1, 0])), constant("size", np.int32([1, ROWS, 3]))),
    ]
    operators = [
        Operator("CALL_ONCE", [], [], {"init_subgraph_index": 1}),
        *([handle("h", "rows")] if handled else []),
        handle("k", "row"),
        operator("READ_VARIABLE", ["h"], ["old"]),
        operator("READ_VARIABLE", ["k"], ["same"]),
        operator("CONCATENATION", ["old", "x"], ["all"], axis=1),
        operator("SLICE", ["all", "begin", "size"], ["left"]),
        *([operator("ASSIGN_VARIABLE", ["h", "left"], [])] if assigned else []),
        operator("READ_VARIABLE", ["h"], ["again"]),
        operator("ADD", ["again", "same"]),
    ]
    values = [
        constant("rows.first", np.full((1, ROWS, 3), FIRST, np.int8), scale=0.5),
        constant("row.first", np.full((1, 1, 3), 9, np.int8), scale=0.5),
    ]
    begin = [handle("a", "rows"), handle("b", "row")]
    begin += [operator("ASSIGN_VARIABLE", [to, value], []) for to, value in (("a", "rows.first"), ("b", "row.first"))]
    handles = [Tensor("a", (), "resource"), Tensor("b", (), "resource")]
    return model(tensors, operators, functions=[Function([*handles, *values], begin)])


def test_a_streaming_model_leaves_its_state_in_an_output(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lite = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert has no wheel here")
    data = streaming()
    graph = load(save(data, tmp_path))
    assert (list(graph.inputs), list(graph.outputs)) == (["x", "old"], ["y", "left"])
    assert "variable 'rows' comes in as input 'old' and goes out as output 'left'" in caplog.text
    theirs = lite.Interpreter(model_content=data, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    theirs.allocate_tensors()
    state = np.full((1, ROWS, 3), FIRST, np.int8)
    for _ in range(6):
        x = RNG.integers(-128, 128, (1, 1, 3), np.int8)
        theirs.set_tensor(theirs.get_input_details()[0]["index"], x)
        theirs.invoke()
        found = run(graph, {"x": x, "old": state})
        np.testing.assert_array_equal(found["y"], theirs.get_tensor(theirs.get_output_details()[0]["index"]))
        state = found["left"]


def test_a_variable_that_nothing_assigns_is_a_constant(tmp_path: Path) -> None:
    graph = load(save(streaming(assigned=False), tmp_path))
    assert (list(graph.inputs), list(graph.outputs)) == (["x"], ["y"])
    expected = np.rint((FIRST * 0.5 + 9 * 0.5) / 1.0)
    np.testing.assert_array_equal(run(graph, {"x": np.zeros((1, 1, 3), np.int8)})["y"], np.full((1, ROWS, 3), expected))


def deciding(**more: object) -> bytes:
    """``w @ x + b`` where the sum of x is larger than 0, the data itself elsewhere."""
    tensors = [
        *(Tensor("x", (1, 2)), Tensor("sum", (1,)), constant("zero", np.float32([0])), Tensor("is", (1,), "bool")),
        *(
            Tensor("if", (), "bool"),
            Tensor("y", (1, 2)),
            constant("axes", np.int32([1])),
            constant("none", np.int32([])),
        ),
        constant("w", RNG.normal(size=(2, 2)).astype(np.float32)),
    ]
    operators = [
        operator("SUM", ["x", "axes"], ["sum"], keep_dims=False),
        operator("GREATER", ["sum", "zero"], ["is"]),
        operator("RESHAPE", ["is", "none"], ["if"]),
        operator("IF", ["if", "x", "w"], then_subgraph_index=1, else_subgraph_index=2, **more),
    ]
    bias, names = constant("b", np.float32([1, 2])), ["x", "w"]
    given = [Tensor("x", (1, 2)), Tensor("w", (2, 2))]
    then = Function(
        [*given, bias, Tensor("made", (1, 2))],
        [operator("FULLY_CONNECTED", ["x", "w", "b"], ["made"])],
        names,
        ["made"],
    )
    return model(tensors, operators, functions=[then, Function(given, [], names, ["x"])])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_branch_that_data_decides(tmp_path: Path, sign: int) -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert has no wheel here")
    x = sign * np.float32([[1.5, 0.5]])
    graph = check(save(deciding(), tmp_path), {"x": x})
    found = run(graph, {"x": x})["y"]
    assert np.array_equal(found, x) == (sign < 0)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (streaming(handled=False), "no VAR_HANDLE names"),
        (
            model([Tensor("x", (2,)), Tensor("y", (2,))], [operator("RELU", ["x"])], subgraphs=2),
            "2 subgraphs, 1 of which",
        ),
        (
            model([Tensor("x", (2,)), Tensor("y", (2,))], [operator("IF", ["x"], then_subgraph_index=3)]),
            "subgraph 3 of 1",
        ),
        (model([Tensor("x", (2,)), Tensor("y", (2,))], [operator("IF", ["x"])]), "in use already"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, data: bytes, told: str) -> None:
    with pytest.raises(ModelError, match=re.escape(told)):
        load(save(data, tmp_path))


def test_a_loop_is_written_out(tmp_path: Path) -> None:
    x = RNG.normal(size=(STEPS, 2)).astype(np.float32)
    graph = check(save(looping(), tmp_path), {"x": x})
    assert [node.op for node in graph.nodes].count("nn.dense") == STEPS


@pytest.mark.parametrize(
    ("data", "told"),
    [(looping("whole"), "it ends when its data say so"), (looping(step=0), "turns more than 1000 times")],
)
def test_loops_whose_turns_cannot_be_counted(tmp_path: Path, data: bytes, told: str) -> None:
    with pytest.raises(UnsupportedOpsError, match=f"WHILE.*{told}"):
        load(save(data, tmp_path))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_loop_that_is_a_recurrent_layer(tmp_path: Path, kind: str, whole: bool) -> None:
    graph = check(
        save(recurrent(kind, whole=whole), tmp_path), {"x": RNG.normal(size=(STEPS, 1, 3)).astype(np.float32)}
    )
    assert [node.op for node in graph.nodes].count(f"nn.{kind}") == 1
    assert "nn.dense" not in [node.op for node in graph.nodes]


def test_a_loop_with_gates_of_its_own_is_written_out(tmp_path: Path) -> None:
    x = RNG.normal(size=(STEPS, 1, 3)).astype(np.float32)
    graph = check(save(recurrent("lstm", gates="LOGISTIC LOGISTIC RELU LOGISTIC"), tmp_path), {"x": x})
    assert [node.op for node in graph.nodes].count("relu") + [node.op for node in graph.nodes].count("nn.relu") == STEPS


def test_a_composite_is_what_it_is_made_of(tmp_path: Path) -> None:
    inner = Function([Tensor("x", (2, 3)), Tensor("r", (2, 3)), Tensor("n", (2, 3))],
                     [operator("RELU", ["x"], ["r"]), operator("NEG", ["r"], ["n"])], ["x"], ["n"])  # fmt: skip
    tensors = [Tensor("x", (2, 3)), Tensor("c", (2, 3)), Tensor("y", (2, 3))]
    named = {"name": "odml.part", "composite_attributes": bytes(flexbuffers.Dumps({}))}
    both = [
        operator("STABLEHLO_COMPOSITE", ["x"], ["c"], **named, decomposition_subgraph_index=1),
        operator("ABS", ["c"]),
    ]
    graph = check(
        save(model(tensors, both, functions=[inner]), tmp_path), {"x": RNG.normal(size=(2, 3)).astype(np.float32)}
    )
    assert [node.op for node in graph.nodes] == ["nn.relu", "negative", "abs"]


@pytest.mark.parametrize("kind", ["plain", "time major", "no input gate", "peepholes"])
def test_an_lstm_starts_at_zero(tmp_path: Path, kind: str) -> None:
    shape = (STEPS, 2, 5) if kind == "time major" else (2, STEPS, 5)
    sizes = {f"w{gate}": (UNITS, 5) for gate in "ifco"} | {f"r{gate}": (UNITS, UNITS) for gate in "ifco"}
    sizes |= {f"p{gate}": (UNITS,) for gate in "ifo"} | {f"b{gate}": (UNITS,) for gate in "ifco"}
    absent = set() if kind == "peepholes" else {"pi", "pf", "po"}
    absent |= {"wi", "ri", "bi"} if kind == "no input gate" else set()
    names = [name if name not in absent else "" for name in sizes]
    weights = [constant(name, RNG.normal(size=sizes[name]).astype(np.float32) / 2) for name in names if name]
    states = [Tensor(name, (2, UNITS), variable=True) for name in ("hidden", "cell")]
    tensors = [Tensor("x", shape), *weights, *states, Tensor("y", (*shape[:2], UNITS))]
    given = ["x", *names, "", "", "hidden", "cell", "", "", "", ""]
    options = {"fused_activation_function": "TANH", "cell_clip": 10.0, "time_major": kind == "time major"}
    one = operator("UNIDIRECTIONAL_SEQUENCE_LSTM", given, **options)
    x = RNG.normal(size=shape).astype(np.float32)
    graph = check(save(model(tensors, [one]), tmp_path), {"x": x})
    assert [node.op for node in graph.nodes].count("nn.lstm") == 1
