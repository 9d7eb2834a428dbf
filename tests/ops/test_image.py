from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench.errors import GraphError
from tests.ops.oracle import draw, infer, one, onnx_run

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))
MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


def resize(data: np.ndarray, size: tuple[int, int], opset: int = 19, **attrs: object) -> np.ndarray:
    sizes = np.array([*data.shape[:2], *size], np.int64)
    return onnx_run("Resize", data, None, None, sizes, opset=opset, reference=True, **attrs)


@given(
    SIZES, SIZES, st.sampled_from(MODES), st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
)
@settings(max_examples=200, deadline=None)
def test_nearest(shape: tuple, size: tuple, mode: str, rounding: str) -> None:
    data = draw((2, 3, *shape))
    attrs = {"coordinate_transformation_mode": mode, "nearest_mode": rounding}
    expected = resize(data, size, mode="nearest", **attrs)
    np.testing.assert_array_equal(one("image.resize2d", data, size=size, **attrs), expected)


@given(SIZES, SIZES, st.sampled_from(MODES), st.sampled_from(["linear", "cubic"]))
@settings(max_examples=200, deadline=None)
def test_linear_and_cubic(shape: tuple, size: tuple, mode: str, method: str) -> None:
    # the specification, and onnxruntime, put a single output at 0; ONNX's reference at -0.5
    assume(mode != "pytorch_half_pixel" or min(size) > 1)
    data = draw((2, 3, *shape))
    expected = resize(data, size, mode=method, coordinate_transformation_mode=mode)
    result = one("image.resize2d", data, size=size, method=method, coordinate_transformation_mode=mode)
    np.testing.assert_allclose(result, expected, atol=1e-5)


@given(SIZES, st.tuples(st.floats(0.5, 3), st.floats(0.5, 3)), st.sampled_from(["nearest", "linear"]))
@settings(max_examples=100, deadline=None)
def test_scales_that_are_no_ratio_of_sizes(shape: tuple, scales: tuple, method: str) -> None:
    scales = tuple(float(np.float32(s)) for s in scales)
    size = tuple(int(np.float32(n) * np.float32(s)) for n, s in zip(shape, scales, strict=True))
    assume(min(size) >= 1 and size != shape)  # onnxruntime copies where the sizes do not change
    data = draw((1, 2, *shape))
    mode = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    expected = onnx_run("Resize", data, None, np.array([1, 1, *scales], np.float32), opset=13, mode=method, **mode)
    places = [np.arange(n) / s for n, s in zip(size, scales, strict=True)]
    near = [np.abs(p - np.rint(p)).min(where=p > 0, initial=1) for p in places]
    assume(method == "linear" or min(near) > 1e-4)  # onnxruntime computes positions in float32
    result = one("image.resize2d", data, size=size, method=method, scales=scales, **mode)
    np.testing.assert_allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    data = draw((2, 12, 3, 5))
    expected = onnx_run("DepthToSpace", data, blocksize=2, mode=mode)
    np.testing.assert_array_equal(one("nn.depth_to_space", data, block_size=2, mode=mode), expected)


def test_space_to_depth() -> None:
    data = draw((2, 3, 6, 4))
    expected = onnx_run("SpaceToDepth", data, blocksize=2)
    result = one("nn.space_to_depth", data, block_size=2)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(one("nn.depth_to_space", result, block_size=2), data)


def test_types_and_errors() -> None:
    assert infer("image.resize2d", ("N", 3, 4, 5), size=(8, 10))[0].shape == ("N", 3, 8, 10)
    assert infer("image.resize2d", ("N", 3, 4, 5), size=(8, 10), dtype="uint8")[0].dtype == "uint8"
    with pytest.raises(GraphError, match="wants float operands, not uint8"):
        infer("image.resize2d", ("N", 3, 4, 5), size=(8, 10), method="linear", dtype="uint8")
    with pytest.raises(GraphError, match="attribute method='bicubic'"):
        infer("image.resize2d", ("N", 3, 4, 5), size=(8, 10), method="bicubic")
    with pytest.raises(GraphError, match="10 channels do not split into blocks of 2 x 2"):
        infer("nn.depth_to_space", ("N", 10, 4, 5), block_size=2)
    with pytest.raises(GraphError, match="does not split into blocks of 2 x 2"):
        infer("nn.space_to_depth", ("N", 10, 4, 5), block_size=2)
