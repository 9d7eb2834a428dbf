"""Files with a loop: one that is a recurrent layer, as Keras and TensorFlow's converter write it, and another one."""

from __future__ import annotations

import numpy as np

from tests.tflite_files import Function, Tensor, constant, model, operator

RNG = np.random.default_rng(5)
STEPS, UNITS = 3, 4


def looping(compared: str = "i", *, bound: int = STEPS, step: int = 1) -> bytes:
    """``h = relu(w @ x[i] + h)`` for each row of x, as Keras writes recurrent layers."""
    state = [Tensor("i", (), "int32"), Tensor("h", (1, UNITS)), Tensor("x", (STEPS, 2))]
    names = [tensor.name for tensor in state]
    condition = Function(
        [*state, constant("axes", np.int32([0, 1])), Tensor("sum", ()), Tensor("whole", (), "int32"),
         constant("bound", np.int32(bound)), Tensor("on", (), "bool")],
        [operator("SUM", ["x", "axes"], ["sum"], keep_dims=False), operator("CAST", ["sum"], ["whole"]),
         operator("LESS", [compared, "bound"], ["on"])],
        names, ["on"],
    )  # fmt: skip
    body = Function(
        [*state, constant("step", np.int32(step)), Tensor("next", (), "int32"), Tensor("row", (2,)),
         constant("flat", np.int32([1, 2])), Tensor("column", (1, 2)), Tensor("made", (1, UNITS)),
         constant("w", RNG.normal(size=(UNITS, 2)).astype(np.float32)), Tensor("sum", (1, UNITS)),
         Tensor("new", (1, UNITS))],
        [operator("ADD", ["i", "step"], ["next"]), operator("GATHER", ["x", "i"], ["row"]),
         operator("RESHAPE", ["row", "flat"], ["column"]), operator("FULLY_CONNECTED", ["column", "w"], ["made"]),
         operator("ADD", ["made", "h"], ["sum"]), operator("RELU", ["sum"], ["new"])],
        names, ["next", "new", "x"],
    )  # fmt: skip
    tensors = [
        *(Tensor("x", (STEPS, 2)), constant("first", np.int32(0)), constant("zero", np.zeros((1, UNITS), np.float32))),
        *(Tensor("last", (), "int32"), Tensor("y", (1, UNITS)), Tensor("same", (STEPS, 2))),
    ]
    loop = operator(
        "WHILE", ["first", "zero", "x"], ["last", "y", "same"], cond_subgraph_index=1, body_subgraph_index=2
    )
    return model(tensors, [loop], functions=[condition, body])


def recurrent(kind: str, *, whole: bool = True, gates: str = "LOGISTIC LOGISTIC TANH LOGISTIC") -> bytes:
    """A layer of Keras 3, as TensorFlow's converter writes it: LSTM, GRU (whose reset gate is last) or plain."""
    rows = UNITS * {"lstm": 4, "gru": 3, "rnn": 1}[kind]
    h, states = (1, UNITS), ["h", "c"] if kind == "lstm" else ["h"]
    length = STEPS if whole else 1

    def tensor(name: str, columns: int = UNITS) -> Tensor:
        return Tensor(name, (1, columns))

    def weights(name: str, *shape: int) -> Tensor:
        return constant(name, RNG.normal(size=shape).astype(np.float32))

    def ints(name: str, *numbers: int) -> Tensor:
        return constant(name, np.int32(numbers))

    def scalar(name: str, dtype: str = "int32") -> Tensor:
        return Tensor(name, (), dtype)

    loop = [
        scalar("i"),
        scalar("t"),
        Tensor("all", (length, 1, UNITS)),
        *map(tensor, states),
        Tensor("x", (STEPS, 1, 3)),
    ]
    names = [one.name for one in loop]
    condition = Function(
        [*loop, constant("bound", np.int32(STEPS)), *(scalar(name, "bool") for name in ("on", "of", "both"))],
        [operator("LESS", ["i", "bound"], ["on"]), operator("LESS", ["t", "bound"], ["of"]),
         operator("LOGICAL_AND", ["on", "of"], ["both"])],
        names, ["both"],
    )  # fmt: skip
    tensors = [
        *loop, constant("one", np.int32(1)), scalar("i1"), scalar("t1"), Tensor("row", (1, 3)), ints("flat", rows),
        weights("w", rows, 3), weights("r", rows, UNITS), weights("b", rows), weights("rb", rows),
        tensor("wx", rows), tensor("rh", rows), Tensor("rhf", (rows,)), tensor("sum", rows), tensor("gates", rows),
        ints("shape", 1, 1, UNITS), tensor("new"), Tensor("put", (1, 1, UNITS)),
    ]  # fmt: skip
    steps = [
        operator("ADD", ["i", "one"], ["i1"]), operator("ADD", ["t", "one"], ["t1"]),
        operator("GATHER", ["x", "t"], ["row"]), operator("FULLY_CONNECTED", ["h", "r", "rb"], ["rh"]),
        operator("FULLY_CONNECTED", ["row", "w"] if kind == "lstm" else ["row", "w", "b"], ["wx"]),
    ]  # fmt: skip
    if kind == "gru":
        tensors += [
            *(ints(f"at{n}", 0, n * UNITS) for n in range(3)),
            ints("size", 1, UNITS),
            constant("axis", np.int32(1)),
        ]
        tensors += [
            tensor(name) for name in ("a0", "a1", "a2", "g0", "g1", "g2", "zs", "z", "rs", "rr", "rg", "ns", "n")
        ]
        tensors += [tensor("zh"), tensor("left"), tensor("zn"), constant("unit", np.float32(1))]
        steps += [operator("SPLIT", ["axis", "wx"], ["a0", "a1", "a2"], num_splits=3)]
        steps += [operator("SLICE", ["rh", f"at{n}", "size"], [f"g{n}"]) for n in range(3)]
        steps += [
            operator("ADD", ["a0", "g0"], ["zs"]), operator("LOGISTIC", ["zs"], ["z"]),
            operator("ADD", ["a1", "g1"], ["rs"]), operator("LOGISTIC", ["rs"], ["rr"]),
            operator("MUL", ["rr", "g2"], ["rg"]), operator("ADD", ["a2", "rg"], ["ns"]),
            operator("TANH", ["ns"], ["n"]), operator("MUL", ["z", "h"], ["zh"]),
            operator("SUB", ["unit", "z"], ["left"]), operator("MUL", ["left", "n"], ["zn"]),
            operator("ADD", ["zh", "zn"], ["new"]),
        ]  # fmt: skip
    else:
        steps += [operator("RESHAPE", ["rh", "flat"], ["rhf"]), operator("ADD", ["wx", "rhf"], ["sum"])]
    if kind == "rnn":
        steps += [operator("TANH", ["sum"], ["new"])]
    if kind == "lstm":
        tensors += [
            tensor(name) for name in ("s0", "s1", "s2", "s3", "g0", "g1", "g2", "g3", "kept", "put in", "cell", "bent")
        ]
        tensors += [constant("axis", np.int32(1))]
        steps += [operator("ADD", ["sum", "b"], ["gates"])]
        steps += [operator("SPLIT", ["axis", "gates"], [f"s{n}" for n in range(4)], num_splits=4)]
        steps += [operator(op, [f"s{n}"], [f"g{n}"]) for n, op in enumerate(gates.split())]
        steps += [
            operator("MUL", ["g1", "c"], ["kept"]), operator("MUL", ["g0", "g2"], ["put in"]),
            operator("ADD", ["kept", "put in"], ["cell"]), operator("TANH", ["cell"], ["bent"]),
            operator("MUL", ["g3", "bent"], ["new"]),
        ]  # fmt: skip
    steps += [operator("RESHAPE", ["new", "shape"], ["put"])]
    ends = ["i1", "t1", "put", "new", *(["cell"] if kind == "lstm" else []), "x"]
    if whole:
        ends[2] = "list"
        tensors += [
            ints("none", 0, 0, 0),
            ints("rest", -1, -1, -1),
            ints("columns", 1, UNITS),
            ints("first", 0, 0),
            ints("n1", 1),
        ]
        tensors += [Tensor("i0", (1,), "int32"), Tensor("to", (3,), "int32"), Tensor("i2", (1,), "int32")]
        tensors += [
            Tensor("from", (3,), "int32"),
            Tensor("before", (1, 1, UNITS), signature=(-1, 1, UNITS)),
            Tensor("after", (1, 1, UNITS), signature=(-1, 1, UNITS)),
        ]
        tensors += [Tensor("list", (STEPS, 1, UNITS))]
        steps += [
            operator("RESHAPE", ["i", "n1"], ["i0"]), operator("CONCATENATION", ["i0", "columns"], ["to"]),
            operator("SLICE", ["all", "none", "to"], ["before"]), operator("RESHAPE", ["i1", "n1"], ["i2"]),
            operator("CONCATENATION", ["i2", "first"], ["from"]), operator("SLICE", ["all", "from", "rest"], ["after"]),
            operator("CONCATENATION", ["before", "put", "after"], ["list"], axis=0),
        ]  # fmt: skip
    main = [
        Tensor("x", (STEPS, 1, 3)), constant("start", np.int32(0)),
        constant("blank", np.zeros((length, 1, UNITS), np.float32)), constant("zero", np.zeros(h, np.float32)),
        scalar("i end"), scalar("t end"), Tensor("y", (length, 1, UNITS)),
        *(tensor(f"{name} end") for name in states), Tensor("x end", (STEPS, 1, 3)),
    ]  # fmt: skip
    given = ["start", "start", "blank", *["zero" for _ in states], "x"]
    made = ["i end", "t end", "y", *(f"{name} end" for name in states), "x end"]
    turning = operator("WHILE", given, made, cond_subgraph_index=1, body_subgraph_index=2)
    return model(main, [turning], outputs=("y",), functions=[condition, Function(tensors, steps, names, ends)])
