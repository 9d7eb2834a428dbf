"""Each format writes what its tool's own documents show, reads it back, and refuses what it cannot say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import ConfigError, ExportError
from qbench.exporters.rosetta import FORMATS, Facts, format_of
from qbench.ir.dtypes import integer_range
from qbench.quant.specs import TensorOverride

SCALES = st.floats(2.0**-20, 2.0**10, width=32)
WITH_SCALES = ("aimet", "aimet-0.6.1", "qualcomm", "npz", "safetensors")


def said(dtype: str, scale: Any = 0.5, zero_point: Any = 0) -> TensorOverride:
    return TensorOverride(dtype=dtype, scale=scale, zero_point=zero_point)  # pyright: ignore[reportArgumentType]


@st.composite
def overrides(draw: st.DrawFn, *dtypes: str, channels: bool) -> TensorOverride:
    dtype = draw(st.sampled_from(dtypes))
    low, high = integer_range(dtype)  # pyright: ignore[reportArgumentType]
    zeros = st.integers(low, high) if dtype.startswith("u") or dtype == "int16" else st.just(0)
    if not channels:
        return said(dtype, draw(SCALES), draw(zeros))
    pairs = draw(st.lists(st.tuples(SCALES, zeros), min_size=2, max_size=5))
    return said(dtype, tuple(scale for scale, _ in pairs), tuple(zero for _, zero in pairs))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
ACTIVATIONS = st.dictionaries(NAMES, overrides("uint8", "int8", "int16", channels=False), max_size=4)
WEIGHTS = st.dictionaries(NAMES, overrides("int4", "uint4", "int8", "uint8", "int16", channels=True), max_size=4)


@pytest.mark.parametrize("name", WITH_SCALES)
@given(activations=ACTIVATIONS, weights=WEIGHTS)
def test_scales_come_back(name: str, activations: dict[str, TensorOverride], weights: dict[str, TensorOverride]):
    form = FORMATS[name]
    weights = {key: value for key, value in weights.items() if key not in activations}
    back = form.read(form.write(Facts(activations, weights)))
    assert {**back.activations, **back.weights} == {**activations, **weights}


@pytest.mark.parametrize("name", ["aimet", "aimet-0.6.1", "qualcomm", "ai-edge"])
def test_floats_come_back_as_tensors(name: str):
    assert FORMATS[name].read(FORMATS[name].write(Facts(float_tensors=("a", "b/(0).c\n")))).float_tensors == (
        "a",
        "b/(0).c\n",
    )


@pytest.mark.parametrize("name", ["trtexec", "nncf"])
def test_floats_come_back_as_layers(name: str):
    assert FORMATS[name].read(FORMATS[name].write(Facts(float_layers=("a", "b/c")))).float_layers == ("a", "b/c")


def test_aimet_counts_offsets_from_unsigned_integers():
    facts = Facts({"x": said("uint8", 0.5, 3)}, {"w": said("int8", (0.25, 0.5), (0, 0))})
    assert json.loads(FORMATS["aimet"].write(facts)) == {
        "version": "1.0.0",
        "activation_encodings": [
            {
                "name": "x", "dtype": "INT", "bw": 8, "enc_type": "PER_TENSOR", "is_sym": False,
                "scale": [0.5], "offset": [-3],
            }
        ],
        "param_encodings": [
            {
                "name": "w", "dtype": "INT", "bw": 8, "enc_type": "PER_CHANNEL", "is_sym": True,
                "scale": [0.25, 0.5], "offset": [-128, -128],
            }
        ],
    }  # fmt: skip
    old = json.loads(FORMATS["aimet-0.6.1"].write(facts))
    assert old["version"] == "0.6.1"
    assert old["activation_encodings"]["x"] == [
        {
            "bitwidth": 8, "dtype": "int", "is_symmetric": "False", "min": -1.5, "max": 126.0, "offset": -3,
            "scale": 0.5,
        }
    ]  # fmt: skip
    assert [entry["min"] for entry in old["param_encodings"]["w"]] == [-32.0, -64.0]
    assert json.loads(FORMATS["qualcomm"].write(facts)) == {k: v for k, v in old.items() if k != "version"}


def test_signed_integers_with_a_zero_point_come_back_unsigned():
    back = FORMATS["aimet"].read(FORMATS["aimet"].write(Facts({"x": said("int8", 0.5, -3)})))
    assert back.activations == {"x": said("uint8", 0.5, 125)}


def test_ranges_without_scales_are_enough():
    data = b'{"activation_encodings": {"x": [{"bitwidth": 8, "min": -1.5, "max": 126.0}]}, "param_encodings": {}}'
    assert FORMATS["qualcomm"].read(data).activations == {"x": said("uint8", 0.5, 3)}


def test_a_calibration_cache_is_what_tensorrt_writes():
    lines = (
        b"TRT-7000-EntropyCalibration2\ndata: 3c008912\nrelu: 46: 3c92aa10\n"  # a table as TensorRT's samples show it
    )
    found = FORMATS["tensorrt"].read(lines).activations
    assert found["relu: 46"].scale == pytest.approx(0.0179033577)
    assert FORMATS["tensorrt"].write(Facts(found)).splitlines()[1:] == lines.splitlines()[1:]


def test_a_calibration_cache_reaches_as_far_as_other_types():
    facts = Facts({"x": said("uint8", 0.5, 0), "y": said("int16", 0.5, 0)})
    found = FORMATS["tensorrt"].read(FORMATS["tensorrt"].write(facts)).activations
    assert found["x"].scale == pytest.approx(0.5 * 255 / 127)
    assert found["y"].scale == pytest.approx(0.5 * 32768 / 127)
    assert (found["x"].dtype, found["x"].zero_point) == ("int8", 0)


def test_precisions_of_layers():
    assert FORMATS["trtexec"].write(Facts(float_layers=("a", "b"))) == b"*:int8,a:fp32,b:fp32\n"
    assert FORMATS["trtexec"].read(b"*:int8,a:fp16,b:int8,c:fp32,c:int8").float_layers == ("a",)


def test_ignored_scope():
    assert json.loads(FORMATS["nncf"].write(Facts(float_layers=("a",)))) == {"names": ["a"]}
    assert FORMATS["nncf"].read(b'{"names": ["a"], "patterns": [], "validate": true}').float_layers == ("a",)


def test_the_last_rule_of_a_recipe_that_fits_a_scope_decides():
    recipe = json.loads(FORMATS["ai-edge"].write(Facts(float_tensors=("relu_1", "a.b"))))

    def algorithm(scope: str) -> str:
        return [rule["algorithm_key"] for rule in recipe if re.search(rule["regex"], scope)][-1]

    assert algorithm("relu_1;") == algorithm("x;relu_1;") == algorithm("a.b;") == "no_quantize"
    assert algorithm("relu_10;") == algorithm("relu;") == algorithm("a_b;") == "min_max_uniform_quantize"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("tensorrt", Facts({"a\nb": said("int8")})),
        ("trtexec", Facts(float_layers=("a:b",))),
        ("trtexec", Facts(float_layers=("a,b",))),
        ("ai-edge", Facts(float_tensors=("a;b",))),
    ],
)
def test_names_that_a_format_cannot_write(name: str, facts: Facts):
    with pytest.raises(ExportError, match="cannot write the name"):
        FORMATS[name].write(facts)


AFFINE = '{"activation_encodings": {"x": %s}}'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, b"\xff\xfe") for name in FORMATS),
        ("aimet", b"[]"),
        *((name, b"{}") for name in ("aimet", "aimet-0.6.1", "qualcomm", "nncf")),
        ("qualcomm", b'{"version": 1, "activations": {}}'),
        ("aimet", b'{"activation_encodings": 3}'),
        ("aimet", b'{"activation_encodings": [{"dtype": "INT"}]}'),
        ("aimet", (AFFINE % "[]").encode()),
        ("aimet", (AFFINE % '[{"bitwidth": 8}]').encode()),
        ("aimet", (AFFINE % '[{"bitwidth": 7, "scale": 1, "offset": 0}]').encode()),
        ("aimet", (AFFINE % '[{"bitwidth": 8, "scale": -1, "offset": 0}]').encode()),
        ("aimet", (AFFINE % '[{"bitwidth": 8, "scale": 1, "offset": 9}]').encode()),
        ("aimet", (AFFINE % '[{"bw": 8, "scale": [1], "offset": [0], "enc_type": "PER_BLOCK"}]').encode()),
        ("tensorrt", b""),
        ("tensorrt", b"data: 3c008912\n"),
        ("tensorrt", b"TRT-1\ndata: 3c0089\n"),
        ("tensorrt", b"TRT-1\ndata: 00000000\n"),
        ("trtexec", b"a:int32"),
        ("trtexec", b"*:fp16"),
        ("trtexec", b"a"),
        ("nncf", b'{"patterns": ["a.*"]}'),
        ("nncf", b'{"names": "a"}'),
        ("ai-edge", b"{}"),
        ("ai-edge", b"[3]"),
        ("ai-edge", b'[{"regex": "a", "operation": "*", "algorithm_key": "no_quantize"}]'),
        ("ai-edge", b'[{"regex": ".*", "operation": "CONV_2D", "algorithm_key": "min_max_uniform_quantize"}]'),
    ],
)
def test_what_cannot_be_read(name: str, data: bytes):
    with pytest.raises(ConfigError):
        FORMATS[name].read(data)


def test_a_format_that_is_not_known():
    with pytest.raises(ConfigError, match="did you mean 'aimet'"):
        format_of("aimett")


def test_the_readme_says_what_each_format_cannot_say():
    text = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for name, form in FORMATS.items():
        assert any(row.startswith(f"| `{name}` |") and row.endswith(f"| {form.cannot} |") for row in rows)
