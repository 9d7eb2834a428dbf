"""Whatever is wrong with a quantized file becomes one clear error that names the tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper

from qbench.errors import ModelError, QBenchError, UnsupportedOpsError
from qbench.frontends import load
from tests.frontends.models import model, node, random, save

S, Z = np.float32(0.1), np.uint8(128)
W, WS, WZ = np.ones((4, 3, 1, 1), np.int8), np.full(4, 0.5, np.float32), np.zeros(4, np.int8)
CONSTANTS: dict[str, Any] = {"s": S, "z": Z, "w": W, "ws": WS, "wz": WZ}


def nodes(axis: int = 0, **attrs: Any) -> list[NodeProto]:
    return [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], "quantize"),
        node("DequantizeLinear", ["q", "s", "z"], ["d"], "dequantize"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "weights", axis=axis, **attrs),
        node("Conv", ["d", "wd"], ["c"], "conv"),
        node("QuantizeLinear", ["c", "s", "z"], ["y"], "result"),
    ]


def refused(
    folder: Path,
    made: Sequence[NodeProto],
    constants: dict[str, Any],
    *words: str,
    kind: type[QBenchError] = ModelError,
) -> None:
    proto = model(made, {"x": [1, 3, 4, 4]}, ["y"], constants, opset=21, dtypes={"y": TensorProto.UINT8})
    with pytest.raises(kind) as caught:
        load(save(proto, folder))
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_the_file_that_the_others_spoil_is_good(tmp_path: Path) -> None:
    proto = model(nodes(), {"x": [1, 3, 4, 4]}, ["y"], CONSTANTS, opset=21, dtypes={"y": TensorProto.UINT8})
    assert load(save(proto, tmp_path)).outputs == ("y",)


SPOILED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "zero scale": ({"s": np.float32(0)}, ("'quantize'", "'q'", "scale 0.0 must be positive and finite")),
    "negative scale": ({"s": np.float32(-1)}, ("'q'", "scale -1.0 must be positive")),
    "infinite scale": ({"s": np.float32(np.inf)}, ("'q'", "scale inf must be positive and finite")),
    "NaN scale": ({"s": np.float32(np.nan)}, ("'quantize'", "scale nan must be positive and finite")),
    "negative scale of a channel": (
        {"ws": np.asarray([0.5, 0.5, -0.5, 0.5], np.float32)}, ("'w'", "scale -0.5 at index 2 of axis 0"),
    ),
    "scale of integers": ({"s": np.int32(1)}, ("'s'", "'q'", "is int32, not a float")),
    "zero point of another type": ({"wz": np.zeros(4, np.uint8)}, ("'wz'", "'w'", "is uint8, but the tensor is int8")),
    "zero point of a float type": ({"z": np.float32(3)}, ("'q'", "is float32, which is no integer type")),
    "fewer scales than channels": ({"ws": WS[:3], "wz": WZ[:3]}, ("'w'", "3 scales, but axis 0 has the size 4")),
    "fewer zero points than scales": ({"wz": WZ[:3]}, ("'w'", "4 scales but 3 zero points")),
    "no scale at all": ({"ws": np.ones(0, np.float32), "wz": WZ[:0]}, ("'w'", "0 scales")),
    "weights of floats": ({"w": np.ones((4, 3, 1, 1), np.float32)}, ("'w'", "is float32, which is no integer type")),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILED)
def test_scales_and_zero_points_that_make_no_sense(what: str, tmp_path: Path) -> None:
    changes, words = SPOILED[what]
    refused(tmp_path, nodes(), {**CONSTANTS, **changes}, *words)


@pytest.mark.parametrize("axis", [4, -5, 1])
def test_an_axis_that_does_not_fit(axis: int, tmp_path: Path) -> None:
    words = ("axis 1 has the size 3",) if axis == 1 else (f"axis {axis} is outside 'w', which has 4 dimensions",)
    refused(tmp_path, nodes(axis), CONSTANTS, *words)


def test_blocks_without_a_scale_for_each(tmp_path: Path) -> None:
    for count in (1, 3):
        blocked = {"ws": np.ones((count, 3, 1, 1), np.float32), "wz": np.zeros((count, 3, 1, 1), np.int8)}
        words = f"'ws' has the shape ({count}, 3, 1, 1), but 'w' in blocks of 2 along axis 0 takes (2, 3, 1, 1)"
        refused(tmp_path, nodes(block_size=2), {**CONSTANTS, **blocked}, words)


def test_blocks_of_a_value_that_is_computed(tmp_path: Path) -> None:
    made = nodes()
    made[1].attribute.append(helper.make_attribute("block_size", 2))
    refused(tmp_path, made, CONSTANTS, "'q' is dequantized by blocks, but not constant", kind=UnsupportedOpsError)


def test_a_scale_or_a_tensor_that_is_not_there(tmp_path: Path) -> None:
    lost = {name: value for name, value in CONSTANTS.items() if name != "ws"}
    refused(tmp_path, nodes(), lost, "'weights' (DequantizeLinear) reads 'ws', which nothing defines")
    made = nodes()
    made[2].input[1] = ""
    refused(tmp_path, made, CONSTANTS, "'weights' (DequantizeLinear) lacks its input x_scale")


def test_scales_that_are_computed(tmp_path: Path) -> None:
    made = [node("ReduceMax", ["x"], ["m"], "range", keepdims=0), *nodes()]
    made[1].input[1] = "m"
    refused(tmp_path, made, CONSTANTS, "the scale 'm' of 'q' is computed at run time", kind=UnsupportedOpsError)


def test_everything_unknown_is_listed_at_once(tmp_path: Path) -> None:
    made = nodes()
    made[1].attribute.append(helper.make_attribute("block_size", 2))
    made += [node("QGemm2", ["q"], ["u"], "attention", domain="com.microsoft")]
    made += [node("Mystery", ["u"], ["v"], "mystery", domain="com.microsoft")]
    proto = model(made, {"x": [1, 3, 4, 4]}, ["y"], CONSTANTS, opset=21, dtypes={"y": TensorProto.UINT8})
    proto.opset_import.add(domain="com.microsoft", version=1)
    with pytest.raises(UnsupportedOpsError) as caught:
        load(save(proto, tmp_path))
    for word in (
        "'attention' (com.microsoft.QGemm2)",
        "'mystery' (com.microsoft.Mystery)",
        "'q' is dequantized by blocks, but not constant",
    ):
        assert word in str(caught.value)


def test_float8(tmp_path: Path) -> None:
    made = [node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=TensorProto.FLOAT8E4M3FN)]
    refused(tmp_path, made, {"s": S}, "'y' is quantized to the element type 17", kind=UnsupportedOpsError)


QLINEAR = {"xs": S, "xz": Z, "w": W, "ws": WS, "wz": WZ, "ys": S, "yz": Z, "b": np.zeros(4, np.int32)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"xs": np.ones(3, np.float32), "xz": np.zeros(3, np.uint8)}, ("'q' has 3 scales, but QLinearConv takes one",)),
        ({"ys": np.float32(0)}, ("'conv'", "'y'", "scale 0.0")),
        ({"xz": np.int8(0)}, ("'xz'", "'q'", "is int8, but the tensor is uint8")),
        ({"b": np.zeros(4, np.float32)}, ("'conv'", "the bias 'b' is float32, not int32")),
        ({"ws": np.float32(-2), "wz": np.int8(0)}, ("'w'", "scale -2.0")),
    ],
)
def test_the_qoperator_form(changes: dict[str, Any], words: tuple[str, ...], tmp_path: Path) -> None:
    made = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], "conv"),
    ]
    refused(tmp_path, made, {"s": S, "z": Z, **QLINEAR, **changes}, *words)


VALUES = st.sampled_from(
    [
        *(np.float32(number) for number in (0, -3, 1e-30, 3e38)),
        *(np.ones(shape, np.float32) for shape in ((4,), (0,), (2, 2))),
        *(np.int8(7), np.uint8(9), np.int32(5), np.zeros(4, np.int8), random(4, 3, 1, 1), np.asarray(["a"])),
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_anything_in_the_place_of_anything_is_a_graph_or_a_clean_error(data: st.DataObject, tmp_path: Path) -> None:
    constants = dict(CONSTANTS)
    for name in data.draw(st.lists(st.sampled_from(sorted(constants)), max_size=3)):
        constants[name] = data.draw(VALUES)
    made = nodes(axis=data.draw(st.integers(-6, 6)))
    if data.draw(st.booleans()):
        victim = made[data.draw(st.integers(0, 4))]
        victim.input[data.draw(st.integers(0, len(victim.input) - 1))] = data.draw(
            st.sampled_from(["", "s", "w", "q", "x"])
        )
    with contextlib.suppress(QBenchError):
        load(save(model(made, {"x": [1, 3, 4, 4]}, ["y"], constants, opset=21), tmp_path))
