from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench.ir.graph import Attr, Graph, Node
from qbench.passes.canonicalize import CanonicalizePass
from qbench.runtime.interpreter import run
from tests.ops.test_pool import pools
from tests.passes.graphs import array, checked, feeds, graph, node, ops

INF = math.inf


def c(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def canonical(g: Graph) -> Graph:
    return checked(CanonicalizePass(), g)


def last(g: Graph) -> tuple[str, dict[str, Attr]]:
    n = g.nodes[-1]
    assert (n.name, n.outputs) == ("y", ("y",))
    return n.op, dict(n.attrs)


IDENTITIES: list[tuple[str, dict[str, Attr]]] = [
    ("reshape", {"newshape": (2, 4, 6, 6)}),
    ("reshape", {"newshape": (2, -1, 6, 6)}),
    ("transpose", {"axes": (0, 1, 2, 3)}),
    ("nn.pad", {"pad_width": ((0, 0),) * 4}),
    ("cast", {"dtype": "float32"}),
    ("concatenate", {"axis": 1}),
    ("image.resize2d", {"size": (6, 6), "method": "linear"}),
    ("clip", {"a_min": -INF, "a_max": INF}),
    ("strided_slice", {"begin": (0,), "end": (6,), "strides": (1,), "axes": (2,)}),
    ("nn.max_pool2d", {"pool_size": (1, 1), "strides": (1, 1)}),
    ("nn.avg_pool2d", {"pool_size": (1, 1), "strides": (1, 1)}),
    ("squeeze", {"axes": ()}),
]


@pytest.mark.parametrize(("op", "attrs"), IDENTITIES, ids=lambda v: v if isinstance(v, str) else "")
def test_identities(op: str, attrs: dict[str, Attr]) -> None:
    inside = canonical(graph(node("a", "tanh", "x"), node("i", op, "a", **attrs), node("y", "tanh", "i")))
    assert ops(inside) == ["tanh", "tanh"] and inside.node("a").sources == ("a", "i")
    at_the_end = canonical(graph(node("a", "tanh", "x"), node("y", op, "a", **attrs)))
    assert [(n.name, n.outputs) for n in at_the_end.nodes] == [("a", ("y",))]
    assert len(canonical(graph(node("y", op, "x", **attrs))).nodes) == 1


WIDE = node("b", "broadcast_to", "x", shape=(2, 4, 6, 6))
BROADCASTS: dict[str, tuple[list[Node], bool]] = {
    "beside what is wide": ([WIDE, node("y", "divide", "z", "b")], True),
    "beside what is wide, twice": ([WIDE, node("m", "add", "b", "z"), node("y", "where", "k", "m", "b")], True),
    "beside another": ([WIDE, node("y", "add", "b", "x")], False),
    "in an op of one operand": ([WIDE, node("y", "tanh", "b")], False),
    "in a sum over it": ([WIDE, node("m", "sum", "b", axes=(2,)), node("y", "multiply", "m", "z")], False),
    "in two, of which one needs it": ([WIDE, node("m", "add", "b", "z"), node("y", "multiply", "b", "x")], False),
}


@pytest.mark.parametrize("name", BROADCASTS)
def test_broadcasts_that_their_readers_do_anyway(name: str) -> None:
    nodes, goes = BROADCASTS[name]
    outputs = tuple(n.output for n in nodes if n.output in ("m", "y"))
    k = np.arange(288).reshape(2, 4, 6, 6) % 3 == 0
    g = graph(*nodes, x=(2, 4, 1, 6), outputs=outputs, z=array(2, 4, 6, 6), k=k)
    assert ("broadcast_to" in ops(canonical(g))) != goes


@pytest.mark.parametrize("op", ["nn.max_pool2d", "nn.avg_pool2d"])
@pytest.mark.parametrize("counted", [False, True])
def test_pools_that_round_up_have_padding(op: str, counted: bool) -> None:
    own = {"count_include_pad": True} if counted and op == "nn.avg_pool2d" else {}
    window: dict[str, Attr] = {"pool_size": (3, 3), "strides": (2, 2), "ceil_mode": True, **own}
    found = last(canonical(graph(node("y", op, "x", padding=(1, 0, 0, 0), **window))))[1]
    assert found["ceil_mode"] == bool(own)  # a mean of what is beyond counts less
    assert found["padding"] == ((1, 0, 0, 0) if own else (1, 0, 0, 1))


@given(pools(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_pools_stay_what_they_are(case: tuple, counted: bool) -> None:
    shape, attrs = case
    pool = graph(node("y", "nn.avg_pool2d", "x", count_include_pad=counted, **attrs), x=shape)
    assume(np.isfinite(run(pool, feeds(pool))["y"]).all())  # a dilated window may see nothing but padding
    canonical(pool)


def guarded(number: float = 0, read: str = "s", axis: int = 1) -> Graph:
    """A softmax whose NaN are replaced, as PyTorch exports attention with a mask."""
    nodes = [node("s", "nn.softmax", "x", axis=axis), node("m", "is_nan", read), node("y", "where", "m", "n", "s")]
    return graph(*nodes, n=c(number))


def test_a_guarded_softmax_is_a_safe_one() -> None:
    assert last(canonical(guarded())) == ("nn.softmax", {"axis": 1, "safe": True})
    assert len(canonical(guarded(number=1)).nodes) == len(canonical(guarded(read="x")).nodes) == 3


@pytest.mark.parametrize(
    ("op", "number"), [("add", 0), ("subtract", 0), ("multiply", 1), ("divide", 1), ("power", 1), ("add", -0.0)]
)
def test_neutral_numbers(op: str, number: float) -> None:
    assert ops(canonical(graph(node("a", "tanh", "x"), node("y", op, "a", "n"), n=c(number)))) == ["tanh"]


SHIFTED = "tf_half_pixel_for_nn"


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("strided_slice", {"begin": (5,), "end": (-7,), "strides": (-1,), "axes": (2,)}),
        ("image.resize2d", {"size": (6, 6), "coordinate_transformation_mode": SHIFTED, "method": "linear"}),
        ("nn.max_pool2d", {"pool_size": (3, 3), "strides": (1, 1), "padding": (1, 1, 1, 1)}),
        ("transpose", {"axes": (0, 1, 3, 2)}),
    ],
)  # fmt: skip
def test_same_type_is_not_same_values(op: str, attrs: dict[str, Attr]) -> None:
    g = graph(node("a", "tanh", "x"), node("y", op, "a", **attrs))
    assert canonical(g) is g


def test_a_squeeze_that_only_the_run_can_check_stays() -> None:
    """The size is 1 for some lengths only: no reshape says so."""
    quotient = "(T + 3)//4"
    nodes = [node("s", "squeeze", "x", axes=(2,)), node("y", "expand_dims", "s", axes=(0,))]
    assert ops(CanonicalizePass()(graph(*nodes, x=("N", 8, quotient)))) == ["squeeze", "expand_dims"]


def test_neutral_number_that_broadcasts_stays() -> None:
    g = graph(node("y", "add", "x", "n"), n=np.zeros((3, 1, 4, 6, 6), np.float32), x=(1, 4, 6, 6))
    assert ops(canonical(g)) == ["add"]


def scalars(**more: float) -> dict[str, np.ndarray]:
    numbers = {
        "half": 0.5,
        "one": 1,
        "three": 3,
        "six": 6,
        "zero": 0,
        "root2": math.sqrt(2),
        "inv_root2": math.sqrt(0.5),
    }
    return {k: c(v) for k, v in (numbers | more).items()}


def erf(*rest: Node, scale: str = "divide") -> list[Node]:
    number = "root2" if scale == "divide" else "inv_root2"
    return [node("s", scale, "x", number), node("e", "erf", "s"), node("p", "add", "e", "one"), *rest]


TANH = [node("u", "multiply", "root2_pi", "poly"), node("t", "tanh", "u"), node("p", "add", "one", "t")]
GELU = {
    "pytorch": erf(node("m", "multiply", "x", "p"), node("y", "multiply", "m", "half")),
    "half_first": erf(node("h", "multiply", "x", "half"), node("y", "multiply", "h", "p")),
    "half_left": erf(node("h", "multiply", "half", "x"), node("y", "multiply", "p", "h"), scale="multiply"),
    "half_inner": erf(node("h", "multiply", "half", "p"), node("y", "multiply", "x", "h")),
    "halved": erf(node("m", "multiply", "x", "p"), node("y", "divide", "m", "two")),
}
GELU_TANH = {
    "pow": [
        node("q", "power", "x", "three"), node("k", "multiply", "q", "coeff"), node("poly", "add", "x", "k"), *TANH,
        node("h", "multiply", "x", "half"), node("y", "multiply", "h", "p"),
    ],
    "cube": [
        node("q", "multiply", "x", "x"), node("q3", "multiply", "x", "q"), node("k", "multiply", "coeff", "q3"),
        node("poly", "add", "x", "k"), *TANH, node("m", "multiply", "x", "p"), node("y", "multiply", "half", "m"),
    ],
    "factored": [
        node("q", "multiply", "x", "x"), node("k", "multiply", "q", "coeff"), node("k1", "add", "k", "one"),
        node("poly", "multiply", "k1", "x"), *TANH, node("h", "multiply", "half", "p"), node("y", "multiply", "x", "h"),
    ],
}  # fmt: skip
SILU = {
    "mul": [node("s", "sigmoid", "x"), node("y", "multiply", "x", "s")],
    "lum": [node("s", "sigmoid", "x"), node("y", "multiply", "s", "x")],
}
RELU6 = [node("a", "add", "x", "three"), node("r", "clip", "a", a_min=0.0, a_max=6.0)]
HARD_SWISH = {
    "sigmoid": [node("s", "nn.hard_sigmoid", "x", alpha=1 / 6), node("y", "multiply", "x", "s")],
    "div_last": [*RELU6, node("m", "multiply", "x", "r"), node("y", "divide", "m", "six")],
    "div_first": [*RELU6, node("d", "divide", "r", "six"), node("y", "multiply", "d", "x")],
    "mul_first": [*RELU6, node("d", "multiply", "r", "sixth"), node("y", "multiply", "x", "d")],
    "min_max": [
        node("a", "add", "three", "x"), node("r", "nn.relu", "a"), node("r6", "minimum", "r", "six"),
        node("d", "multiply", "r6", "sixth"), node("y", "multiply", "x", "d"),
    ],
}  # fmt: skip
HARD_SIGMOID: list[tuple[dict[str, Attr], list[Node]]] = [
    ({"alpha": 1 / 6}, [*RELU6, node("y", "divide", "r", "six")]),
    (
        {},
        [
            node("m", "multiply", "x", "fifth"),
            node("a", "add", "m", "half"),
            node("y", "clip", "a", a_min=0.0, a_max=1.0),
        ],
    ),
]
FUNCTIONS = (
    [("nn.gelu", {}, nodes) for nodes in GELU.values()]
    + [("nn.gelu", {"approximate": "tanh"}, nodes) for nodes in GELU_TANH.values()]
    + [("nn.silu", {}, nodes) for nodes in SILU.values()]
    + [("nn.hard_swish", {}, nodes) for nodes in HARD_SWISH.values()]
    + [("nn.hard_sigmoid", attrs, nodes) for attrs, nodes in HARD_SIGMOID]
)


@pytest.mark.parametrize("behind_an_add", [False, True])
@pytest.mark.parametrize(("op", "attrs", "nodes"), FUNCTIONS)
def test_activation_functions(op: str, attrs: dict[str, Attr], nodes: list[Node], behind_an_add: bool) -> None:
    numbers = scalars(coeff=0.044715, root2_pi=math.sqrt(2 / math.pi), sixth=1 / 6, fifth=0.2, two=2)
    if behind_an_add:  # the function's own variable is a sum too
        nodes = [node("x", "add", "v", "w"), *nodes]
        g = graph(*nodes, inputs={"v": (2, 8), "w": (2, 8)}, **numbers)
    else:
        g = graph(*nodes, x=(2, 8), **numbers)
    result = canonical(g)
    assert last(result) == (op, attrs)
    assert ops(result) == (["add"] if behind_an_add else []) + [op]
    assert set(result.nodes[-1].sources) == {n.name for n in nodes} - {"x"}


@pytest.mark.parametrize("outputs", [("y", "s"), ("y", "other")])
def test_an_activation_whose_inside_is_read_stays(outputs: tuple[str, ...]) -> None:
    g = graph(*SILU["mul"], node("other", "negative", "s"), outputs=outputs)
    assert "nn.silu" not in ops(canonical(g))


def test_scaled_sigmoid_is_not_silu() -> None:
    g = graph(node("k", "multiply", "x", "n"), node("s", "sigmoid", "k"), node("y", "multiply", "x", "s"), n=c(1.702))
    assert "nn.silu" not in ops(canonical(g))


@pytest.mark.parametrize("sides", [("x", "k"), ("k", "x")])
def test_bounds(sides: tuple[str, str]) -> None:
    def one(op: str, number: float) -> tuple[str, dict[str, Attr]]:
        return last(canonical(graph(node("y", op, *sides), k=c(number))))

    assert one("maximum", 0) == ("nn.relu", {})
    assert one("maximum", -2) == ("clip", {"a_min": -2.0, "a_max": INF})
    assert one("minimum", 6) == ("clip", {"a_min": -INF, "a_max": 6.0})


def test_chains_of_bounds() -> None:
    def chain(*nodes: Node) -> tuple[str, dict[str, Attr]]:
        result = canonical(graph(*nodes, **scalars()))
        assert len(result.nodes) == 1 and len(result.nodes[0].sources) == 2
        return last(result)

    assert chain(node("a", "nn.relu", "x"), node("y", "minimum", "a", "six")) == ("clip", {"a_min": 0.0, "a_max": 6.0})
    assert chain(node("a", "nn.relu", "x"), node("y", "nn.relu", "a")) == ("nn.relu", {})
    assert chain(node("a", "minimum", "x", "one"), node("y", "maximum", "six", "a")) == (
        "clip",
        {"a_min": 6.0, "a_max": 6.0},
    )
    assert last(canonical(graph(node("y", "clip", "x", a_min=0.0, a_max=3.4028234663852886e38)))) == ("nn.relu", {})


def test_leaky_relu() -> None:
    g = graph(node("a", "multiply", "x", "k"), node("y", "maximum", "a", "x"), k=c(0.25))
    assert last(canonical(g)) == ("nn.leaky_relu", {"alpha": 0.25})


def test_division_and_subtraction_of_constants() -> None:
    k = array(4, 1, 1, low=1, high=3)
    assert ops(canonical(graph(node("y", "divide", "x", "k"), k=k))) == ["multiply"]
    assert ops(canonical(graph(node("y", "subtract", "x", "k"), k=k))) == ["add"]
    assert ops(
        canonical(
            graph(node("y", "divide", "one", "x"), **scalars()),
        )
    ) == ["reciprocal"]
    for stays in (
        node("y", "divide", "x", "zero"),
        node("y", "subtract", "three", "x"),
        node("y", "divide", "three", "x"),
    ):
        g = graph(stays, **scalars())
        assert CanonicalizePass()(g) is g


def test_powers() -> None:
    assert ops(canonical(graph(node("a", "abs", "x"), node("y", "power", "a", "half"), **scalars()))) == ["abs", "sqrt"]
    assert canonical(graph(node("y", "power", "x", "k"), k=c(2))).node("y").inputs == ("x", "x")


CONV = node("l", "nn.conv2d", "x", "w")
BIASES = [
    (CONV, (4, 4, 1, 1), (4, 1, 1), {}),
    (CONV, (4, 4, 1, 1), (1, 4, 1, 1), {}),
    (CONV, (4, 4, 1, 1), (1,), {}),
    (CONV, (4, 4, 1, 1), (), {}),
    (node("l", "nn.dense", "x", "w"), (5, 6), (5,), {"axis": 3}),
    (node("l", "nn.batch_matmul", "x", "w"), (6, 5), (5,), {"axis": 3}),
    (node("l", "multiply", "x", "w"), (4, 1, 1), (4, 1, 1), {}),
    (node("l", "multiply", "x", "w"), (4, 1, 1), (6,), {"axis": 3}),
]


@pytest.mark.parametrize(("layer", "weight", "bias", "attrs"), BIASES)
@pytest.mark.parametrize("op", ["add", "subtract", "left"])
def test_sums_after_layers_are_biases(
    layer: Node, weight: tuple[int, ...], bias: tuple[int, ...], attrs: dict[str, Attr], op: str
) -> None:
    total = node("y", "add", "k", "l") if op == "left" else node("y", op, "l", "k")
    result = canonical(graph(layer, total, w=array(*weight), k=array(*bias, seed=1)))
    assert last(result) == ("nn.bias_add", attrs)
    assert result.node("y").inputs[0] == "l"


@pytest.mark.parametrize(("head", "op"), [("integer.batch_matmul", "nn.bias_add"), ("maximum", "add")])
def test_a_sum_after_integers_that_are_cast_and_scaled_is_a_bias_if_they_are_a_layers(head: str, op: str) -> None:
    g = graph(
        node("i", "cast", "x", dtype="int8"),
        node("l", head, "i", "w"),
        node("c", "cast", "l", dtype="float32"),
        node("s", "sum", "x", axes=(0, 1, 2, 3), keepdims=False),
        node("m", "multiply", "c", "s"),
        node("y", "add", "m", "k"),
        w=np.eye(6, dtype=np.int8),
        k=array(6),
    )
    assert last(canonical(g))[0] == op


@pytest.mark.parametrize("bias", [(6,), (4, 6, 6), (1, 1, 6, 1), (3, 1, 4, 1, 1)])
def test_other_sums_after_layers_stay(bias: tuple[int, ...]) -> None:
    g = graph(CONV, node("y", "add", "l", "k"), w=array(4, 4, 1, 1), k=array(*bias), x=(1, 4, 6, 6))
    assert canonical(g) is g


def test_two_biases_become_one() -> None:
    g = graph(
        CONV,
        node("b", "nn.bias_add", "l", "k"),
        node("y", "add", "b", "j"),
        w=array(4, 4, 1, 1),
        k=array(4),
        j=array(4, 1, 1),
    )
    result = canonical(graph(*g.nodes[:2], node("y", "nn.bias_add", "b", "k"), w=array(4, 4, 1, 1), k=array(4)))
    assert ops(result) == ["nn.conv2d", "nn.bias_add"] and result.node("y").sources == ("b", "y")


PADDED = ((0, 0), (0, 0), (1, 0), (2, 1))


def test_pad_into_convolution() -> None:
    g = graph(
        node("p", "nn.pad", "x", pad_width=PADDED),
        node("y", "nn.conv2d", "p", "w", padding=(0, 1, 2, 3)),
        w=array(4, 4, 3, 3),
    )
    result = canonical(g)
    assert last(result) == ("nn.conv2d", {"padding": (1, 3, 2, 4)}) and result.node("y").sources == ("p", "y")


@pytest.mark.parametrize(
    "attrs",
    [
        {"pad_width": PADDED, "pad_value": 1.0},
        {"pad_width": PADDED, "mode": "reflect"},
        {"pad_width": ((0, 0), (1, 1), (1, 1), (1, 1))},
    ],
)
def test_other_pads_stay(attrs: dict[str, Attr]) -> None:
    channels = 6 if attrs["pad_width"] != PADDED else 4
    g = graph(node("p", "nn.pad", "x", **attrs), node("y", "nn.conv2d", "p", "w"), w=array(4, channels, 3, 3))
    assert canonical(g) is g


def test_pad_into_average_pool() -> None:
    pad = node("p", "nn.pad", "x", pad_width=PADDED)
    plain = canonical(graph(pad, node("y", "nn.avg_pool2d", "p", pool_size=(3, 3), strides=(2, 2))))
    assert ops(plain) == ["nn.avg_pool2d"] and plain.node("y").attrs["count_include_pad"] is True
    g = graph(pad, node("y", "nn.avg_pool2d", "p", pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1)))
    assert canonical(g) is g


@pytest.mark.parametrize(("before", "merged"), [("nn.relu", True), ("sigmoid", True), ("tanh", False)])
def test_zero_pad_into_max_pool_only_where_data_is_not_negative(before: str, merged: bool) -> None:
    pool = node("y", "nn.max_pool2d", "p", pool_size=(3, 3), strides=(2, 2))
    g = graph(node("a", before, "x"), node("p", "nn.pad", "a", pad_width=PADDED), pool)
    assert ("nn.pad" not in ops(canonical(g))) == merged


def test_max_pool_merges_a_pad_of_minus_infinity() -> None:
    pool = node("y", "nn.max_pool2d", "p", pool_size=(3, 3), strides=(2, 2))
    assert ops(canonical(graph(node("p", "nn.pad", "x", pad_width=PADDED, pad_value=-INF), pool))) == ["nn.max_pool2d"]


def test_a_window_of_padding_alone_keeps_its_zero() -> None:
    pool = node("y", "nn.max_pool2d", "p", pool_size=(2, 2), strides=(2, 2))
    g = graph(node("a", "nn.relu", "x"), node("p", "nn.pad", "a", pad_width=((0, 0), (0, 0), (2, 2), (2, 2))), pool)
    assert canonical(g) is g


def test_a_pad_that_is_also_the_weight() -> None:
    pad = node("p", "nn.pad", "x", pad_width=PADDED)
    g = graph(pad, node("y", "nn.conv2d", "p", "p"), x=(4, 4, 6, 6))
    assert canonical(g) is g


def test_transposes_in_a_row() -> None:
    there = node("a", "transpose", "x", axes=(0, 2, 3, 1))
    result = canonical(graph(there, node("y", "transpose", "a", axes=(0, 2, 3, 1))))
    assert last(result) == ("transpose", {"axes": (0, 3, 1, 2)})
    back = canonical(
        graph(
            node("r", "nn.relu", "x"), there, node("b", "transpose", "a", axes=(0, 3, 1, 2)), node("y", "nn.relu", "b")
        )
    )
    assert "transpose" not in ops(back)


def test_reshapes_in_a_row() -> None:
    first = node("a", "reshape", "x", newshape=("N", 4, 36))
    assert last(canonical(graph(first, node("y", "reshape", "a", newshape=(-1, 144)), x=("N", 4, 6, 6)))) == (
        "nn.batch_flatten",
        {},
    )
    assert last(canonical(graph(first, node("y", "expand_dims", "a", axes=(3,)), x=("N", 4, 6, 6)))) == (
        "reshape",
        {"newshape": ("N", 4, 36, 1)},
    )
    there = node("a", "reshape", "r", newshape=("N", 4, 36))
    back = [node("r", "tanh", "x"), there, node("y", "reshape", "a", newshape=("N", 4, 6, 6))]
    assert ops(canonical(graph(*back, x=("N", 4, 6, 6)))) == ["tanh"]


def test_averages_of_whole_images() -> None:
    assert ops(canonical(graph(node("y", "mean", "x", axes=(2, 3))))) == ["nn.global_avg_pool2d"]
    assert ops(canonical(graph(node("y", "mean", "x", axes=(-1, -2))))) == ["nn.global_avg_pool2d"]
    assert ops(canonical(graph(node("y", "mean", "x", axes=(2, 3), keepdims=False)))) == ["mean"]
    assert ops(canonical(graph(node("y", "nn.avg_pool2d", "x", pool_size=(6, 6), strides=(1, 1))))) == [
        "nn.global_avg_pool2d"
    ]
    assert ops(canonical(graph(node("y", "nn.avg_pool2d", "x", pool_size=(6, 5), strides=(1, 1))))) == ["nn.avg_pool2d"]
    larger: dict[str, Attr] = {"pool_size": (9, 8), "strides": (9, 8), "ceil_mode": True, "count_include_pad": True}
    assert ops(canonical(graph(node("y", "nn.avg_pool2d", "x", **larger)))) == ["nn.global_avg_pool2d"]
    assert ops(canonical(graph(node("y", "nn.avg_pool2d", "x", padding=(0, 0, 2, 2), **larger)))) == ["nn.avg_pool2d"]
