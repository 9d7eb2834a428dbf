"""Elements that need not be floats as programs, against the interpreter."""

import numpy as np
import pytest

import qbench
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.layers import node

RNG = np.random.default_rng(0)
WHOLE = RNG.integers(-9, 9, (2, 3, 5, 4))
REAL = RNG.normal(size=(2, 3, 5, 4)).astype(np.float32) * 3
REAL[0, 0] = REAL[0, 0].round()


@pytest.mark.parametrize(
    "op, dtype",
    [("equal", "int64"), ("less", "int32"), ("greater_equal", "float32"), ("maximum", "int64"), ("multiply", "int32")],
)
def test_of_two(op: str, dtype: str) -> None:
    x, y = WHOLE.astype(dtype), np.roll(WHOLE, 7)[:1, :, :1].astype(dtype)
    assert_agree(graph_of({"x": x, "y": y}, [node(op, "x y", "z")], "z"), {"x": x, "y": y}, threads=2)
    assert_agree(graph_of({"x": x}, [node(op, "k x", "z")], "z", k=y[0, 0, 0, 2]), {"x": x})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("constant", [False, True])
def test_one_of_narrow_integers(dtype: str, constant: bool) -> None:
    """They lie with their sign bit flipped, or not."""
    limits = np.iinfo(dtype)
    x, y = (RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True) for shape in ((2, 3, 5, 4), (3, 1, 4)))
    feeds, known = ({"x": x}, {"y": y}) if constant else ({"x": x, "y": y}, {})
    assert_agree(graph_of(feeds, [node("maximum", "x y", "m"), node("minimum", "x m", "z")], "z", **known), feeds)
    chosen = {**feeds, "c": x > np.mean(limits.max)}
    assert_agree(graph_of(chosen, [node("where", "c x y", "z")], "z", **known), chosen, threads=2)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_quotients_of_integers_are_rounded_towards_zero(dtype: str) -> None:
    """Zero where something is divided by zero; the least number over -1 is itself, and no processor's error."""
    least = np.iinfo(dtype).min
    x, y = WHOLE.astype(dtype), np.roll(WHOLE, 7).astype(dtype)
    x[0, 0, 0], y[0, 0, 0] = (least, least, least, 7), (-1, 1, 0, least)
    graph = graph_of({"x": x, "y": y}, [node("divide", "x y", "z")], "z")
    with np.errstate(all="ignore"):
        assert_agree(graph, {"x": x, "y": y}, threads=2)
        assert qbench.run(graph, {"x": x, "y": y})[0, 0, 0].tolist() == [least, least, 0, 0]


@pytest.mark.parametrize("fmod", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_what_is_left_of_integers_has_either_sign(dtype: str, fmod: bool) -> None:
    """Nothing where something is divided by zero."""
    least = np.iinfo(dtype).min
    x, y = WHOLE.astype(dtype), np.roll(WHOLE, 7).astype(dtype)
    x[0, 0, 0], y[0, 0, 0] = (least, -7, 5, 7), (-1, 4, 0, least)
    graph = graph_of({"x": x, "y": y}, [node("mod", "x y", "z", fmod=fmod)], "z")
    with np.errstate(all="ignore"):
        assert_agree(graph, {"x": x, "y": y}, threads=2)
        assert qbench.run(graph, {"x": x, "y": y})[0, 0, 0].tolist() == [
            0,
            -3 if fmod else 1,
            0,
            7 if fmod else 7 + least,
        ]


@pytest.mark.parametrize("given", [WHOLE, WHOLE > 0, REAL], ids=["int64", "bool", "float32"])
@pytest.mark.parametrize("wanted", ["bool", "int32", "float32"])
def test_cast(given: np.ndarray, wanted: str) -> None:
    assert_agree(graph_of({"x": given}, [node("cast", "x", "z", dtype=wanted)], "z"), {"x": given})


@pytest.mark.parametrize("given", ["uint8", "int16", "uint16"])
@pytest.mark.parametrize("wanted", ["bool", "int32", "float32"])
def test_cast_of_images_and_sounds(given: str, wanted: str) -> None:
    limits = np.iinfo(given)
    x = RNG.integers(limits.min, limits.max, (2, 3, 5, 4), given, endpoint=True)
    x[0, 0, 0] = limits.min, limits.max, 0, 1
    assert_agree(graph_of({"x": x}, [node("cast", "x", "z", dtype=wanted)], "z"), {"x": x}, threads=2)


def test_sums_wrap_around_as_numpy_has_it() -> None:
    x, bias = WHOLE.astype(np.int32), np.array([2**31 - 1, 5, -(2**31)], np.int32)
    graph = graph_of({"x": x}, [node("nn.bias_add", "x b", "y"), node("add", "y x", "z")], "z", b=bias)
    assert_agree(graph, {"x": x}, keep=["y"], threads=2)


def test_what_is_not_a_number_is_replaced() -> None:
    nodes = [
        node("sqrt", "x", "y"),
        node("is_nan", "y", "n"),
        node("logical_not", "n", "m"),
        node("where", "m y k", "z"),
    ]
    assert_agree(graph_of({"x": REAL}, nodes, "z", k=np.float32(-7)), {"x": REAL}, keep=["n", "m"])
