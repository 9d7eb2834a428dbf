"""Ops that move, cut, join and reduce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench.errors import DataError, GraphError
from qbench.ir.types import TensorType
from tests.ops.oracle import bound, draw, evaluate, infer, one, onnx_run

RESHAPES = [
    (("N", 3, 4), (-1,), ("12*N",)),
    (("N", 3, 4), (-1, 12), ("N", 12)),
    (("N", 3, 4), ("N", 12), ("N", 12)),
    (("N", 3, 4), ("N", 4, 3), ("N", 4, 3)),
    (("N", 3, 4), (-1, 6), ("2*N", 6)),
    (("12*N",), (-1, 3, 4), ("N", 3, 4)),
    (("4*N", 3), ("2*N", 6), ("2*N", 6)),
    ((2, 3, 4), (4, -1), (4, 6)),
    ((2, 3, 4), (24,), (24,)),
    ((0, 3), (0, 5), (0, 5)),
    ((), (1, 1), (1, 1)),
    ((1, 1), (), ()),
]


@pytest.mark.parametrize("shape, newshape, expected", RESHAPES)
def test_reshape(shape: tuple, newshape: tuple, expected: tuple) -> None:
    assert infer("reshape", shape, newshape=newshape)[0].shape == expected
    concrete = tuple(int(str(d).replace("N", "5").replace("*5", "")) * (5 if "*N" in str(d) else 1) for d in shape)
    result = bound("reshape", 1, newshape=newshape).compute_all((draw(concrete),))[0]
    np.testing.assert_array_equal(result.ravel(), draw(concrete).ravel())
    sizes = [int(str(d).replace("N", "5").replace("*5", "")) * (5 if "*N" in str(d) else 1) for d in expected]
    assert list(result.shape) == sizes


BAD_RESHAPES = [
    (("N", 3, 4), (12,), r"has 12\*N elements, newshape=\(12,\) 12"),
    (("N", 3, 4), (-1, 5), "do not fill"),
    (("N", 3), ("M", -1), "do not fill"),
    ((2, 3), ("N", 2), r"has 6 elements, newshape=\('N', 2\) 2\*N"),
    ((2, 3), (-1, -1), "more than one -1"),
    ((2, 3), (7,), "has 6 elements"),
    ((2, 3), (0, -1), "do not fill"),
    ((2, 3), (-2, -3), "negative"),
]


@pytest.mark.parametrize("shape, newshape, message", BAD_RESHAPES)
def test_bad_reshapes(shape: tuple, newshape: tuple, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        infer("reshape", shape, newshape=newshape)


@pytest.mark.parametrize("axis", range(4))
def test_flatten(axis: int) -> None:
    data = draw((2, 3, 4))
    np.testing.assert_array_equal(one("nn.batch_flatten", data, axis=axis), onnx_run("Flatten", data, axis=axis))
    assert (
        infer("nn.batch_flatten", ("N", 3, 4), axis=axis)[0].shape
        == [(1, "12*N"), ("N", 12), ("3*N", 4), ("12*N", 1)][axis]
    )


@given(st.permutations(range(4)))
@settings(max_examples=10, deadline=None)
def test_transpose(axes: list) -> None:
    data = draw((2, 3, 4, 5))
    np.testing.assert_array_equal(one("transpose", data, axes=tuple(axes)), onnx_run("Transpose", data, perm=axes))


def test_squeeze_and_expand_dims() -> None:
    data = draw((2, 1, 3, 1))
    assert one("squeeze", data, axes=(1, 3)).shape == (2, 3)
    assert one("squeeze", data, axes=(3,)).shape == (2, 1, 3)
    assert one("expand_dims", draw((2, 3)), axes=(0, 3)).shape == (1, 2, 3, 1)
    assert infer("squeeze", ("N", 1), axes=(1,))[0].shape == ("N",)


@given(st.integers(0, 2), st.lists(st.integers(0, 4), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_concatenate_and_split(axis: int, sizes: list) -> None:
    parts = [draw(tuple(size if i == axis else 3 for i in range(3)), k) for k, size in enumerate(sizes)]
    joined = one("concatenate", *parts, axis=axis)
    np.testing.assert_array_equal(joined, np.concatenate(parts, axis))
    cuts = tuple(np.cumsum(sizes)[:-1].tolist())
    for part, again in zip(parts, evaluate("split", joined, cuts=cuts, axis=axis), strict=True):
        np.testing.assert_array_equal(part, again)


def test_concatenate_symbols() -> None:
    assert infer("concatenate", ("N", 3), ("N", 4), axis=1)[0].shape == ("N", 7)
    assert infer("concatenate", ("N", 3), ("2*N", 3), axis=0)[0].shape == ("3*N", 3)
    assert infer("concatenate", ("N", 3), (0, 3), axis=0)[0].shape == ("N", 3)
    assert infer("concatenate", ("P", 3), ("S", 3), (2, 3), axis=0)[0].shape == ("P + S + 2", 3)


POSITION = st.integers(-9, 9) | st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1])


@given(POSITION, POSITION, st.integers(-3, 3).filter(bool), st.integers(0, 2))
@settings(max_examples=100, deadline=None)
def test_strided_slice(begin: int, end: int, stride: int, axis: int) -> None:
    data = draw((4, 5, 6))
    # going backwards, onnxruntime takes an end of INT_MAX for "beyond the start", and clamps begin to 0
    assume(stride > 0 or (end < 2**31 - 1 and begin >= -data.shape[axis]))
    expected = onnx_run("Slice", data, *(np.array([v], np.int64) for v in (begin, end, axis, stride)))
    result = one("strided_slice", data, begin=(begin,), end=(end,), strides=(stride,), axes=(axis,))
    np.testing.assert_array_equal(result, expected)


def test_strided_slice_symbols() -> None:
    attrs = {"begin": (0, 1), "end": (2**63 - 1, 3), "strides": (1, 1), "axes": (0, 1)}
    assert infer("strided_slice", ("N", 5), **attrs)[0].shape == ("N", 2)
    whole = {"strides": (1,), "axes": (0,)}
    assert infer("strided_slice", ("N", 5), begin=(1,), end=(-1,), **whole)[0].shape == ("N - 2", 5)
    assert infer("strided_slice", (9, 5), begin=(1,), end=("N",), **whole)[0].shape == ("N - 1", 5)
    assert infer("strided_slice", ("N", 5), begin=(-1,), end=(-(2**63),), strides=(-1,), axes=(0,))[0].shape == ("N", 5)
    assert (
        infer("strided_slice", ("N", 5), begin=(0,), end=(2**63 - 1,), strides=(2,), axes=(0,))[0].shape[0]
        == "(N + 1)//2"
    )


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad(mode: str) -> None:
    data = draw((2, 3, 4))
    pads = np.array([0, 1, 2, 1, 2, 3], np.int64)
    operands = (np.array(1.5, np.float32),) if mode == "constant" else ()
    expected = onnx_run("Pad", data, pads, *operands, mode=mode)[:-1]  # the last sample was added, and is cut off again
    value = {"pad_value": 1.5} if mode == "constant" else {}
    result = one("nn.pad", data, pad_width=((0, 0), (1, 2), (2, 3)), mode=mode, **value)
    np.testing.assert_array_equal(result, expected)
    assert infer("nn.pad", ("N", 3, 4), pad_width=((0, 0), (1, 2), (2, 3)), mode=mode)[0].shape == ("N", 6, 9)


@given(st.lists(st.integers(-4, 3), max_size=5), st.integers(0, 1))
@settings(max_examples=20, deadline=None)
def test_take(indices: list, axis: int) -> None:
    data, places = draw((4, 4)), np.array(indices, np.int64)
    np.testing.assert_array_equal(
        bound("take", 2, axis=axis).compute_all((data, places))[0], onnx_run("Gather", data, places, axis=axis)
    )


def test_take_beyond_the_end() -> None:
    with pytest.raises(DataError, match=r"indices 0\.\.4 go beyond axis 0 of size 4"):
        bound("take", 2).compute_all((draw((4,)), np.array([0, 4])))
    with pytest.raises(GraphError, match="indices must be int32 or int64, not float32"):
        infer("take", (4,), (1,))


@pytest.mark.parametrize(
    "indices, batch_dims", [([[0, 1], [-1, 2]], 0), ([[[1]], [[3]]], 1), ([[[2, -4]], [[0, 0]]], 1), ([1, 2, 3], 0)]
)
def test_gather_nd(indices: list[int], batch_dims: int) -> None:
    data, places = draw((2, 4, 5)), np.asarray(indices, np.int64)
    places = np.where(np.arange(places.shape[-1]) < 1, places.clip(-2, 1 + 2 * batch_dims), places)
    found = one("gather_nd", data, places, batch_dims=batch_dims)
    np.testing.assert_array_equal(found, onnx_run("GatherND", data, places, batch_dims=batch_dims))


def test_gather_nd_refuses() -> None:
    with pytest.raises(DataError, match=r"indices 2\.\.2 go beyond axis 0 of size 2"):
        bound("gather_nd", 2).compute_all((draw((2, 3)), np.array([[2, 0]])))
    with pytest.raises(GraphError, match="do not point into"):
        bound("gather_nd", 2).infer_all((TensorType((2,), "float32"), TensorType((1, 2), "int64")))
    with pytest.raises(GraphError, match="must be int64"):
        bound("gather_nd", 2).infer_all((TensorType((2,), "float32"), TensorType((1, 1), "int32")))


def test_broadcast_to_and_tile() -> None:
    data = draw((3, 1))
    np.testing.assert_array_equal(one("broadcast_to", data, shape=(2, 3, 4)), np.broadcast_to(data, (2, 3, 4)))
    np.testing.assert_array_equal(one("tile", data, reps=(2, 3)), np.tile(data, (2, 3)))
    assert infer("broadcast_to", ("N", 1), shape=("N", 4))[0].shape == ("N", 4)
    assert infer("tile", ("N", 2), reps=(2, 3))[0].shape == ("2*N", 6)


@pytest.mark.parametrize("source", ["float32", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "bool"])
def test_cast(source: str, dtype: str) -> None:
    data = np.array([0, 1, 2.7, 100]).astype(source)
    np.testing.assert_array_equal(one("cast", data, dtype=dtype), data.astype(dtype))


REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}


@pytest.mark.parametrize("op", REDUCTIONS)
@given(st.sets(st.integers(0, 3), min_size=1), st.booleans(), st.sampled_from(["float32", "int32"]))
@settings(max_examples=20, deadline=None)
def test_reductions(op: str, axes: set, keepdims: bool, dtype: str) -> None:
    dtype = "float32" if op == "mean" else dtype
    data = (draw((2, 3, 2, 4)) * 2).astype(dtype)
    expected = onnx_run(REDUCTIONS[op], data, np.array(sorted(axes)), opset=18, keepdims=int(keepdims))
    np.testing.assert_allclose(
        one(op, data, axes=tuple(sorted(axes)), keepdims=keepdims), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("op", "total"), [("sum", 0.0), ("prod", 1.0), ("max", None), ("min", None), ("mean", None)])
def test_reductions_of_nothing(op: str, total: float | None) -> None:
    if total is None:
        with pytest.raises(GraphError, match=f"{op} of .*: an axis has no elements"):
            infer(op, (2, 0, 3), axes=(1,))
    else:
        made = one(op, np.zeros((2, 0, 3), np.float32), axes=(1,))
        np.testing.assert_array_equal(made, np.full((2, 1, 3), total, np.float32))


@pytest.mark.parametrize("op, onnx", [("argmax", "ArgMax"), ("argmin", "ArgMin")])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_arg(op: str, onnx: str, axis: int) -> None:
    data = np.rint(draw((4, 5, 6)))
    for keepdims in (True, False):
        expected = onnx_run(onnx, data, axis=axis, keepdims=int(keepdims))
        np.testing.assert_array_equal(one(op, data, axis=axis, keepdims=keepdims), expected)


BAD = [
    ("transpose", [(2, 3)], {"axes": (0, 0)}, "no permutation"),
    ("squeeze", [(2, 3)], {"axes": (1,)}, "has size 3, not 1"),
    ("squeeze", [("N", 3)], {"axes": (0,)}, "has size N, not 1"),
    ("squeeze", [(2, 1)], {"axes": (2,)}, "axis 2 is outside"),
    ("expand_dims", [(2, 1)], {"axes": (0, 0)}, "different positions"),
    ("concatenate", [(2, 3), (3, 3)], {"axis": 1}, "outside of axis 1 the shape of"),
    ("concatenate", [], {"axis": 1}, "at least one operand"),
    ("split", [(2, 3)], {"axis": 1, "cuts": (2, 1)}, "must rise within"),
    ("split", [(2, 3)], {"axis": 1, "cuts": (4,)}, "must rise within"),
    ("strided_slice", [(2, 3)], {"axes": (0,), "begin": (0, 1), "end": (1,), "strides": (1,)}, "same length"),
    ("strided_slice", [(2, 3)], {"axes": (0,), "begin": (0,), "end": (1,), "strides": (0,)}, "must not be 0"),
    ("strided_slice", [(2, 3)], {"axes": (2,), "begin": (0,), "end": (1,), "strides": (1,)}, "axis 2 is outside"),
    ("nn.pad", [(2, 3)], {"pad_width": ((0, 0),)}, "1 pairs, data 2 dimensions"),
    ("nn.pad", [(2, 3)], {"pad_width": ((0, 0), (0, -1))}, "negative; slice"),
    ("nn.pad", [(2, 3)], {"pad_width": ((0, 0), (0, 3)), "mode": "reflect"}, "needs 4 elements along axis 1"),
    ("broadcast_to", [(2, 3)], {"shape": (2, 4)}, "do not broadcast"),
    ("broadcast_to", [(2, 3)], {"shape": (3,)}, "does not broadcast"),
    ("broadcast_to", [("M", 3)], {"shape": ("N", 3)}, "do not broadcast"),
    ("tile", [(2, 3)], {"reps": (2,)}, "every axis"),
    ("sum", [(2, 3)], {"axes": ()}, "at least one"),
    ("sum", [(2, 3)], {"axes": (1, 1)}, "different"),
    ("mean", [(2, 3)], {"axes": (2,)}, "axis 2 is outside"),
]


@pytest.mark.parametrize("op, shapes, attrs, message", BAD)
def test_errors(op: str, shapes: list, attrs: dict, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        infer(op, *shapes, **attrs)
