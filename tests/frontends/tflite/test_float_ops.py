"""Each float op, alone in a file, against LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.passes.canonicalize import CanonicalizePass
from qbench.runtime.interpreter import run
from tests.frontends.tflite.checking import Array, check, save
from tests.tflite_files import Resolver, Tensor, constant, litert, model, operator

EXAMPLES = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
Sizes = st.integers(1, 9)
ACTIVATIONS = st.sampled_from(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])


class Fixed:
    """An operand that is a constant of the file."""

    def __init__(self, data: Any, dtype: str = "float32") -> None:
        self.data = np.asarray(data, dtype)


def ints(*values: Any) -> Fixed:
    return Fixed(values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values, "int32")


def reals(*shape: int, seed: int = 0, low: float = -3.0, high: float = 3.0) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def one_op(
    folder: Path,
    op: str,
    *operands: Array | Fixed | None,
    outputs: int = 1,
    dtype: str = "float32",
    shape: Sequence[int] = (1,),
    resolver: Resolver = "BUILTIN_REF",
    **options: Any,
) -> Graph:
    """Compare the op with LiteRT; arrays are fed, `Fixed` ones are constants, None is absent."""
    tensors: list[Tensor] = []
    names: list[str] = []
    feeds: dict[str, Array] = {}
    for number, operand in enumerate(operands):
        if operand is None:  # the last one: a bias
            continue
        names.append(f"in{number}")
        if isinstance(operand, Fixed):
            tensors.append(constant(names[-1], operand.data))
        else:
            tensors.append(Tensor(names[-1], operand.shape, operand.dtype.name))
            feeds[names[-1]] = operand
    made = [f"out{number}" for number in range(outputs)]
    tensors += [Tensor(name, shape, dtype) for name in made]
    data = model(tensors, [operator(op, names, made, **options)], list(feeds), made)
    return check(save(data, folder), feeds, resolver=resolver)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, int], int, dict[str, Any]]:
    """Shape of the input, window, output channels, options; where the window fits."""
    shape = (draw(st.integers(1, 2)), draw(st.integers(5, 9)), draw(st.integers(5, 9)), draw(st.integers(1, 4)))
    window = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    options = {
        "padding": draw(st.sampled_from(["SAME", "VALID"])),
        "stride_h": draw(st.integers(1, 3)),
        "stride_w": draw(st.integers(1, 3)),
        "fused_activation_function": draw(ACTIVATIONS),
    }
    return shape, window, draw(st.integers(1, 5)), options


@EXAMPLES
@given(convolutions(), st.integers(1, 2), st.integers(1, 2))
def test_conv_2d(tmp_path: Path, case: Any, down: int, across: int) -> None:
    shape, window, outputs, options = case
    w, b = Fixed(reals(outputs, *window, shape[3], seed=1)), Fixed(reals(outputs, seed=2))
    one_op(tmp_path, "CONV_2D", reals(*shape), w, b, dilation_h_factor=down, dilation_w_factor=across, **options)


def test_conv_2d_in_groups(tmp_path: Path) -> None:
    w = Fixed(reals(6, 3, 3, 2, seed=1))
    graph = one_op(tmp_path, "CONV_2D", reals(1, 7, 7, 4), w, Fixed(reals(6)), padding="SAME", stride_w=1, stride_h=1)
    assert graph.node("out0").attrs["groups"] == 2


@EXAMPLES
@given(convolutions(), st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_depthwise_conv_2d(tmp_path: Path, case: Any, multiplier: int, dilation: int, biased: bool) -> None:
    shape, window, _, options = case
    count = shape[3] * multiplier
    w, b = Fixed(reals(1, *window, count, seed=1)), Fixed(reals(count, seed=2)) if biased else None
    options |= {"depth_multiplier": multiplier, "dilation_h_factor": dilation, "dilation_w_factor": dilation}
    one_op(tmp_path, "DEPTHWISE_CONV_2D", reals(*shape), w, b, **options)


@EXAMPLES
@given(convolutions(), st.integers(0, 1), st.booleans())
def test_transpose_conv(tmp_path: Path, case: Any, extra: int, biased: bool) -> None:
    shape, window, outputs, options = case
    options["fused_activation_function"] = "NONE"  # LiteRT's reference kernel forgets others
    strides = (options["stride_h"], options["stride_w"])
    same = options["padding"] == "SAME"
    least = [1 if same else size for size in window]
    size = [
        (have - 1) * stride + low + min(extra, stride - 1)
        for have, stride, low in zip(shape[1:3], strides, least, strict=True)
    ]
    w, b = Fixed(reals(outputs, *window, shape[3], seed=1)), Fixed(reals(outputs, seed=2)) if biased else None
    operands = [ints(shape[0], *size, outputs), w, reals(*shape)] + ([b] if b else [])
    one_op(tmp_path, "TRANSPOSE_CONV", *operands, **options)


@EXAMPLES
@given(st.lists(Sizes, min_size=1, max_size=4), Sizes, st.booleans(), st.booleans(), ACTIVATIONS)
def test_fully_connected(tmp_path: Path, shape: list[int], units: int, keep: bool, biased: bool, act: str) -> None:
    inner = shape[-1]
    b = Fixed(reals(units, seed=2)) if biased else None
    operands = (reals(*shape), Fixed(reals(units, inner, seed=1)), b)
    one_op(tmp_path, "FULLY_CONNECTED", *operands, keep_num_dims=keep, fused_activation_function=act)


@pytest.mark.parametrize("shape", [(2, 3, 3, 2), (2, 1, 1, 18), (2, 18, 1, 1), (4, 9)])
def test_fully_connected_flattens_in_the_files_order(tmp_path: Path, shape: tuple[int, ...]) -> None:
    weight = Fixed(reals(5, 18, seed=1))
    graph = one_op(tmp_path, "FULLY_CONNECTED", reals(*shape), weight, None)
    assert graph.types["out0"].shape == (2, 5)


@EXAMPLES
@given(st.integers(2, 4), Sizes, Sizes, Sizes, st.booleans(), st.booleans())
def test_batch_matmul(tmp_path: Path, rank: int, n: int, k: int, m: int, left: bool, right: bool) -> None:
    batch = (2, 3)[: rank - 2]
    x = reals(*batch, *((k, n) if left else (n, k)))
    y = reals(*batch, *((m, k) if right else (k, m)), seed=1)
    one_op(tmp_path, "BATCH_MATMUL", x, y, adj_x=left, adj_y=right)


@EXAMPLES
@given(convolutions(), st.sampled_from(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
def test_pools(tmp_path: Path, case: Any, op: str) -> None:
    shape, window, _, options = case
    one_op(tmp_path, op, reals(*shape), filter_height=window[0], filter_width=window[1], **options)


@st.composite
def broadcasting(draw: st.DrawFn) -> tuple[Array, Array]:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    other = [draw(st.sampled_from([1, size])) for size in shape][draw(st.integers(0, len(shape) - 1)) :]
    pair = [reals(*shape, low=0.5), reals(*other, seed=1, low=0.5)]
    return (pair[0], pair[1]) if draw(st.booleans()) else (pair[1], pair[0])


@EXAMPLES
@given(broadcasting(), st.sampled_from(["ADD", "SUB", "MUL", "DIV"]), st.booleans(), ACTIVATIONS)
def test_arithmetic(tmp_path: Path, operands: tuple[Array, Array], op: str, fixed: bool, activation: str) -> None:
    x, y = operands
    one_op(tmp_path, op, x, Fixed(y) if fixed else y, fused_activation_function=activation)


@EXAMPLES
@given(broadcasting(), st.sampled_from(["MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE"]))
def test_more_arithmetic(tmp_path: Path, operands: tuple[Array, Array], op: str) -> None:
    one_op(tmp_path, op, *operands)


@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4, 5)])
@pytest.mark.parametrize(
    "op",
    [
        *("ABS", "COS", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1"),
        *("RELU_0_TO_1", "SIGN", "SIN", "SQUARE", "TANH"),
    ],
)
def test_functions_of_one_element(tmp_path: Path, shape: tuple[int, ...], op: str) -> None:
    one_op(tmp_path, op, reals(*shape, low=-8, high=8))


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4, 5)])
def test_log_softmax(tmp_path: Path, shape: tuple[int, ...]) -> None:
    one_op(tmp_path, "LOG_SOFTMAX", reals(*shape))


@pytest.mark.parametrize("op", ["CEIL", "ELU", "GELU", "ROUND"])
def test_functions_that_have_no_reference_kernel(tmp_path: Path, op: str) -> None:
    one_op(tmp_path, op, reals(2, 3, 4, 5), resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES")


@pytest.mark.parametrize("op", ["LOG", "SQRT", "RSQRT"])
def test_functions_of_positive_elements(tmp_path: Path, op: str) -> None:
    one_op(tmp_path, op, reals(2, 3, 4, 5, low=0.01, high=20))


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.5])
@pytest.mark.parametrize("shape", [(7,), (2, 3, 4, 5)])
def test_leaky_relu(tmp_path: Path, shape: tuple[int, ...], alpha: float) -> None:
    one_op(tmp_path, "LEAKY_RELU", reals(*shape), alpha=alpha)


@pytest.mark.parametrize("slopes", [(5,), (1, 1, 5), (1, 1, 1), (3, 4, 5), (3, 1, 1)])
def test_prelu(tmp_path: Path, slopes: tuple[int, ...]) -> None:
    one_op(tmp_path, "PRELU", reals(2, 3, 4, 5), Fixed(reals(*slopes, seed=1)))


@EXAMPLES
@given(st.lists(Sizes, min_size=1, max_size=4), st.sampled_from([1.0, 0.5, 3.0]))
def test_softmax(tmp_path: Path, shape: list[int], beta: float) -> None:
    one_op(tmp_path, "SOFTMAX", reals(*shape), beta=beta)


@pytest.mark.parametrize("shape", [(2, 7), (2, 3, 4, 5)])
def test_l2_normalization(tmp_path: Path, shape: tuple[int, ...]) -> None:
    one_op(tmp_path, "L2_NORMALIZATION", reals(*shape))


@EXAMPLES
@given(
    st.lists(Sizes, min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"]),
    st.booleans(),
)
def test_reductions(tmp_path: Path, shape: list[int], data: st.DataObject, op: str, keep: bool) -> None:
    axes = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, unique_by=lambda a: a % len(shape)))
    one_op(tmp_path, op, reals(*shape, low=0.9, high=1.1), ints(axes), keep_dims=keep)


@pytest.mark.parametrize("op", ["REDUCE_ALL", "REDUCE_ANY"])
@pytest.mark.parametrize("axes", [(1,), (0, 3), (1, 2)])
def test_reductions_of_truth_values(tmp_path: Path, op: str, axes: tuple[int, ...]) -> None:
    x = reals(2, 3, 4, 5) > (-2 if op == "REDUCE_ALL" else 2)
    one_op(tmp_path, op, x, ints(axes), dtype="bool", keep_dims=True)


@pytest.mark.parametrize("op", ["ABS", "NEG", "SIGN"])
def test_functions_of_counts(tmp_path: Path, op: str) -> None:
    one_op(tmp_path, op, np.arange(-4, 5, dtype=np.int32), dtype="int32")


def test_a_border_of_minus_infinity_is_that_of_a_max_pool(tmp_path: Path) -> None:
    """As PyTorch's converter writes a max pool with padding."""
    pads, least = np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]), np.float32(-np.inf)
    tensors = [Tensor("x", (1, 8, 8, 3)), constant("p", pads), constant("v", least), Tensor("b"), Tensor("y")]
    window = {"filter_width": 3, "filter_height": 3, "stride_w": 2, "stride_h": 2, "padding": "VALID"}
    both = [operator("PADV2", ["x", "p", "v"], ["b"]), operator("MAX_POOL_2D", ["b"], **window)]
    path, x = save(model(tensors, both), tmp_path), reals(1, 8, 8, 3) - 9
    graph = CanonicalizePass()(load(path))
    assert [node.op for node in graph.nodes if "pad" in node.op] == []
    np.testing.assert_array_equal(run(graph, {"x": x})["y"], litert(path.read_bytes(), {"x": x})["y"])


@EXAMPLES
@given(st.tuples(Sizes, Sizes), st.tuples(Sizes, Sizes), st.sampled_from(["align_corners", "half_pixel_centers", ""]))
def test_resize_bilinear(tmp_path: Path, size: tuple[int, int], to: tuple[int, int], mode: str) -> None:
    one_op(tmp_path, "RESIZE_BILINEAR", reals(2, *size, 3), ints(to), **({mode: True} if mode else {}))


@EXAMPLES
@given(st.tuples(Sizes, Sizes), st.tuples(Sizes, Sizes), st.sampled_from(["align_corners", "half_pixel_centers", ""]))
def test_resize_nearest_neighbor(tmp_path: Path, size: tuple[int, int], to: tuple[int, int], mode: str) -> None:
    one_op(tmp_path, "RESIZE_NEAREST_NEIGHBOR", reals(2, *size, 3), ints(to), **({mode: True} if mode else {}))


def shapes_of(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(1, 5)] * rank)


@EXAMPLES
@given(st.integers(1, 4).flatmap(shapes_of), st.data(), st.booleans())
def test_reshape(tmp_path: Path, shape: tuple[int, ...], data: st.DataObject, as_option: bool) -> None:
    order = data.draw(st.permutations(shape))
    cut = data.draw(st.integers(0, len(order)))
    target = [int(np.prod(order[:cut])), *order[cut:]]
    if data.draw(st.booleans()):
        target[data.draw(st.integers(0, len(target) - 1))] = -1
    operands = (reals(*shape),) if as_option else (reals(*shape), ints(target))
    one_op(tmp_path, "RESHAPE", *operands, **({"new_shape": tuple(target)} if as_option else {}))


@EXAMPLES
@given(st.integers(1, 5).flatmap(lambda rank: st.tuples(shapes_of(rank), st.permutations(range(rank)))))
def test_transpose(tmp_path: Path, case: tuple[tuple[int, ...], list[int]]) -> None:
    one_op(tmp_path, "TRANSPOSE", reals(*case[0]), ints(case[1]))


@pytest.mark.parametrize("dims", [(), (1,), (1, 2), (-2,), (0, 1, 2)])
def test_squeeze(tmp_path: Path, dims: tuple[int, ...]) -> None:
    one_op(tmp_path, "SQUEEZE", reals(1, 1, 1, 5), **({"squeeze_dims": dims} if dims else {}))


@pytest.mark.parametrize("axis", range(-4, 4))
def test_expand_dims(tmp_path: Path, axis: int) -> None:
    one_op(tmp_path, "EXPAND_DIMS", reals(2, 3, 4), ints([axis]))


@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((3,), -1), ((2, 3, 4), 1), ((2, 3, 4), 3)])
def test_pack(tmp_path: Path, shape: tuple[int, ...], axis: int) -> None:
    one_op(tmp_path, "PACK", reals(*shape), reals(*shape, seed=1), values_count=2, axis=axis)


@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((2, 3), -1), ((2, 3, 4, 5), 1), ((2, 3, 4, 5), 3)])
def test_unpack(tmp_path: Path, shape: tuple[int, ...], axis: int) -> None:
    count = shape[axis]
    one_op(tmp_path, "UNPACK", reals(*shape), outputs=count, num=count, axis=axis)


@EXAMPLES
@given(st.integers(1, 4).flatmap(shapes_of), st.data())
def test_concatenation(tmp_path: Path, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    other = [*shape]
    other[axis] = data.draw(Sizes)
    operands = (reals(*shape), reals(*other, seed=1), Fixed(reals(*shape, seed=2)))
    one_op(tmp_path, "CONCATENATION", *operands, axis=axis)


@pytest.mark.parametrize(("shape", "axis"), [((6,), 0), ((2, 6), -1), ((2, 6, 4, 6), 1), ((2, 3, 4, 6), 3)])
def test_split(tmp_path: Path, shape: tuple[int, ...], axis: int) -> None:
    one_op(tmp_path, "SPLIT", ints([axis]), reals(*shape), outputs=3, num_splits=3)
    one_op(tmp_path, "SPLIT_V", reals(*shape), ints(1, 3, 2), ints([axis]), outputs=3, num_splits=3)
    one_op(tmp_path, "SPLIT_V", reals(*shape), ints(1, -1, 2), ints([axis]), outputs=3, num_splits=3)


@EXAMPLES
@given(st.integers(1, 4).flatmap(shapes_of), st.data())
def test_slice(tmp_path: Path, shape: tuple[int, ...], data: st.DataObject) -> None:
    begin = [data.draw(st.integers(0, size - 1)) for size in shape]
    size = [data.draw(st.sampled_from([-1, *range(1, n - b + 1)])) for n, b in zip(shape, begin, strict=True)]
    made = [n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True)]
    one_op(tmp_path, "SLICE", reals(*shape), ints(begin), ints(size), shape=made)


@EXAMPLES
@given(st.integers(1, 4).flatmap(shapes_of), st.data())
def test_strided_slice(tmp_path: Path, shape: tuple[int, ...], data: st.DataObject) -> None:
    rank = len(shape)
    begin = [data.draw(st.integers(0, size - 1)) for size in shape]
    end = [data.draw(st.integers(b + 1, size)) for b, size in zip(begin, shape, strict=True)]
    masks = {name: data.draw(st.integers(0, 2**rank - 1)) for name in ("begin_mask", "end_mask", "shrink_axis_mask")}
    strides = [data.draw(st.integers(1, 2)) for _ in shape]
    one_op(tmp_path, "STRIDED_SLICE", reals(*shape), ints(begin), ints(end), ints(strides), **masks)


def test_strided_slice_backwards(tmp_path: Path) -> None:
    x = reals(1, 5, 6, 3)
    one_op(tmp_path, "STRIDED_SLICE", x, ints(0, -1, 5, 0), ints(1, 0, 1, 3), ints(1, -1, -2, 1))
    one_op(tmp_path, "STRIDED_SLICE", x, ints(0, 0, 0), ints(0, 0, 0), ints(1, -1, -1), begin_mask=7, end_mask=7)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
@pytest.mark.parametrize("indices", [[1], [0, 1, 0], [[1, 0], [0, 1]], 1])
def test_gather(tmp_path: Path, axis: int, indices: Any) -> None:
    one_op(tmp_path, "GATHER", reals(2, 3, 4, 5), Fixed(indices, "int32"), axis=axis)


@EXAMPLES
@given(st.integers(1, 4).flatmap(shapes_of), st.data())
def test_pad(tmp_path: Path, shape: tuple[int, ...], data: st.DataObject) -> None:
    widths = [[data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))] for _ in shape]
    one_op(tmp_path, "PAD", reals(*shape), Fixed(widths, "int32"))
    one_op(tmp_path, "PADV2", reals(*shape), Fixed(widths, "int32"), Fixed(-1.5))


@pytest.mark.parametrize(("mode", "widths"), [("REFLECT", (2, 1)), ("SYMMETRIC", (1, 1)), ("SYMMETRIC", (0, 1))])
def test_mirror_pad(tmp_path: Path, mode: str, widths: tuple[int, int]) -> None:
    pads = Fixed([[0, 0], widths, widths, [0, 0]], "int32")
    one_op(tmp_path, "MIRROR_PAD", reals(1, 4, 5, 3), pads, mode=mode)


def test_a_wide_mirror_image_with_the_edge(tmp_path: Path) -> None:
    one_op(tmp_path, "MIRROR_PAD", reals(1, 4, 5, 3), ints([[0, 0], [2, 4], [3, 0], [0, 0]]), mode="SYMMETRIC")


def test_rows_of_each_sample_are_picked(tmp_path: Path) -> None:
    places = np.int32([[2, 0, 1, 1], [0, 3, 3, 2]])
    one_op(tmp_path, "GATHER", reals(2, 4, 5), places, axis=1, batch_dims=1)
    one_op(tmp_path, "GATHER", reals(2, 4, 5), Fixed(places, "int32"), axis=1, batch_dims=1)


@pytest.mark.parametrize("radius", [1, 2])
def test_local_response_normalization(tmp_path: Path, radius: int) -> None:
    options = {"radius": radius, "bias": 1.5, "alpha": 0.3, "beta": 0.75}
    x, resolver = reals(2, 3, 4, 7), "BUILTIN_WITHOUT_DEFAULT_DELEGATES"  # its reference kernel leaves out a neighbour
    one_op(tmp_path, "LOCAL_RESPONSE_NORMALIZATION", x, resolver=resolver, **options)


@pytest.mark.parametrize("block", [1, 2, 3])
def test_blocks(tmp_path: Path, block: int) -> None:
    one_op(tmp_path, "DEPTH_TO_SPACE", reals(2, 3, 4, 36), block_size=block)
    one_op(tmp_path, "SPACE_TO_DEPTH", reals(2, 6, 12, 5), block_size=block)


@pytest.mark.parametrize(("shape", "counts"), [((3,), (2,)), ((2, 3), (1, 3)), ((1, 2, 3, 4), (2, 1, 3, 2))])
def test_tile(tmp_path: Path, shape: tuple[int, ...], counts: tuple[int, ...]) -> None:
    one_op(tmp_path, "TILE", reals(*shape), ints(counts))


@pytest.mark.parametrize("to", ["int32", "int64", "bool"])
def test_cast(tmp_path: Path, to: str) -> None:
    one_op(tmp_path, "CAST", reals(2, 3, 4, 5, low=-90, high=90), dtype=to)
    one_op(tmp_path, "CAST", np.arange(-5, 7, dtype=np.int32), dtype="float32")
