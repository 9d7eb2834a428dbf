from __future__ import annotations

import errno
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import ConfigError, ExportError
from qbench.quant.calibrator_specs import CALIBRATOR_PRESETS, KlSpec, MaxSpec, PercentileSpec, RegisteredSpec
from qbench.quant.config import QuantConfig
from qbench.quant.rounding import ROUNDINGS
from qbench.quant.specs import LayerOverride, Rule, TensorOverride, TensorSpec, WeightSpec

names = st.text(st.characters(exclude_categories=["Cs"]))
positive = st.floats(2**-100, 2**100)
calibrators = st.sampled_from(sorted(CALIBRATOR_PRESETS)) | st.builds(
    lambda p: {"name": "percentile", "percentile": p}, st.floats(50, 100)
)
overrides = st.one_of(
    st.fixed_dictionaries({"threshold": positive | st.lists(positive, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"scale": positive, "zero_point": st.integers(0, 127)}),
    st.fixed_dictionaries({"calibrator": calibrators, "axis": st.sampled_from(["channel", "tensor"])}),
    st.fixed_dictionaries({"dtype": st.sampled_from(["int8", "uint8", "int16", "int4"]), "symmetric": st.booleans()}),
)
rules = st.fixed_dictionaries(
    {"op": st.sampled_from(["nn.dense", "nn.*"]), "keep_float": st.booleans()},
    optional={"name": names, "calibrator": calibrators, "weights_axis": st.sampled_from(["channel", "tensor"])},
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "weights": st.fixed_dictionaries({"axis": st.sampled_from([None, "channel"]), "calibrator": calibrators}),
        "rounding": st.sampled_from(ROUNDINGS),
        "rules": st.lists(rules, max_size=3),
        "tensors": st.dictionaries(names, overrides, max_size=3),
        "layers": st.dictionaries(names, st.fixed_dictionaries({"keep_float": st.booleans()}), max_size=3),
    },
)


@given(documents)
def test_a_config_and_its_json_are_the_same_thing(document: dict[str, Any]) -> None:
    config = QuantConfig.from_json(json.dumps(document))
    again = QuantConfig.from_json(config.to_json())
    assert again == config and hash(again) == hash(config)
    assert again.to_json() == config.to_json()
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301  executors send configs to other processes


@given(documents, documents)
def test_configs_are_equal_exactly_where_their_json_is(a: dict[str, Any], b: dict[str, Any]) -> None:
    one, other = QuantConfig.from_data(a), QuantConfig.from_data(b)
    assert (one == other) == (json.loads(one.to_json()) == json.loads(other.to_json()))


def test_the_defaults() -> None:
    config = QuantConfig()
    assert (config.activations.dtype, config.activations.symmetric) == ("uint8", False)
    assert (config.weights.dtype, config.weights.symmetric, config.weights.axis) == ("int8", True, "channel")
    assert config.rounding == "tflite_single"
    assert config == QuantConfig.from_json('{"version": 1}') == QuantConfig.from_json("{}")


def test_a_config_is_built_in_python_too() -> None:
    config = QuantConfig(
        activations=TensorSpec(calibrator=PercentileSpec(percentile=99.9)),
        weights=WeightSpec(axis=None),
        rules=(Rule(op="nn.dense", calibrator=KlSpec(levels=128)),),
        tensors={"x": TensorOverride(threshold=2.5)},
        layers={"fc": LayerOverride(keep_float=True)},
    )
    assert config == QuantConfig.from_json(config.to_json())
    assert config.tensors["x"].threshold == 2.5


def test_overrides_cannot_be_changed_in_place() -> None:
    config = QuantConfig().override_tensor("x", threshold=1.0)
    with pytest.raises(TypeError):
        config.tensors["y"] = TensorOverride(threshold=1.0)  # type: ignore[index]


DECIDERS = {
    "threshold": st.none() | positive | st.lists(positive, min_size=2, max_size=2),
    "calibrator": calibrators,
}
SETTINGS = st.sampled_from(sorted(DECIDERS)).flatmap(
    lambda decider: st.fixed_dictionaries(
        {},
        optional={
            decider: DECIDERS[decider],
            "symmetric": st.booleans(),
            "dtype": st.sampled_from(["int8", "int16", None]),
            "reason": st.just("default: why"),
        },
    )
)


@given(st.dictionaries(st.sampled_from("abc"), SETTINGS), st.lists(st.sampled_from("abcd"), unique=True), SETTINGS)
def test_many_overrides_are_those_that_come_one_after_the_other(
    before: dict[str, Any], names: list[str], settings: dict[str, Any]
) -> None:
    config = QuantConfig()
    for name, given_before in before.items():
        config = config.override_tensor(name, **given_before)
    one_by_one = config
    for name in names:
        one_by_one = one_by_one.override_tensor(name, **settings)
    many = config.override_many("tensors", names, **settings)
    assert many == one_by_one
    assert many.to_json() == one_by_one.to_json()


@pytest.mark.parametrize("value", [-1.0, object(), np.inf, "2"])
def test_many_overrides_that_make_no_sense(value: object) -> None:
    with pytest.raises(ConfigError, match="tensors"):
        QuantConfig().override_many("tensors", ["x", "y"], threshold=value)


def test_calibrators_have_short_names() -> None:
    def calibrator(value: Any) -> Any:
        return QuantConfig().with_value("activations.calibrator", value).activations.calibrator

    assert calibrator("max") == MaxSpec()
    assert calibrator("kl") == KlSpec()
    assert (calibrator("kl_mxnet").layout, calibrator("kl_mxnet").tie) == ("two_sided", "first")
    assert (calibrator("kl_nvidia").layout, calibrator("kl_nvidia").tie) == ("one_sided", "last")
    assert calibrator({"name": "percentile", "percentile": 99}) == PercentileSpec(percentile=99.0)
    assert calibrator(RegisteredSpec(callable="mine")) == RegisteredSpec(callable="mine")


Mistake = Callable[[QuantConfig], object]

MISTAKES: list[tuple[Mistake, str]] = [
    (lambda c: c.from_json('{"activation": {}}'), r"^activation: unknown key; did you mean 'activations'\?"),
    (lambda c: c.from_json('{"weights": {"axes": 1}}'), r"^weights\.axes: unknown key; did you mean 'axis'\?"),
    (lambda c: c.from_json('{"rules": [{"op": "x", "keepfloat": true}]}'), r"^rules\[0\]\.keepfloat: .*'keep_float'"),
    (lambda c: c.from_json('{"tensors": {"a.b": {"scales": 1}}}'), r'^tensors\["a\.b"\]\.scales: .*\'scale\''),
    (lambda c: c.from_json('{"weights": {"dtype": "in8"}}'), r"^weights\.dtype: .*'in8'; did you mean 'int8'\?"),
    (lambda c: c.from_json('{"rounding": "tvm_upwards"}'), r"^rounding: .*did you mean 'tvm_upward'\?"),
    (lambda c: c.from_json('{"weights": {"axis": 1}}'), r"^weights\.axis: .*'channel' or .* equal to 2, not 1"),
    (lambda c: c.from_json('{"version": 2}'), r"^version: Input should be 1, not 2"),
    (lambda c: c.from_json('{"version": "1"}'), r"^version: "),
    (lambda c: c.from_json('{"weights": {"symmetric": 1}}'), r"^weights\.symmetric: .*boolean"),
    (lambda c: c.from_json("[1]"), "a config is a JSON object"),
    (lambda c: c.from_json("{"), "^not valid JSON"),
    (lambda c: c.from_json("[" * 100_000), "^not valid JSON"),
    (lambda c: c.from_json('{"weights": NaN}'), "^not valid JSON: NaN"),
    (lambda c: c.from_json('{"tensors": {"x": {"threshold": Infinity}}}'), "^not valid JSON: Infinity"),
    (lambda c: c.from_json('{"tensors": {"x": {"threshold": 1e999}}}'), r"^tensors\.x\.threshold: .*finite"),
    (lambda c: c.from_json('{"rounding": "fp32_rne", "rounding": "fp32_rne"}'), "'rounding' is given twice"),
    (lambda c: c.from_json('{"self": 1}'), "^self: unknown key"),
    (lambda c: QuantConfig(roundings="x"), "^roundings: unknown key; did you mean 'rounding'"),  # type: ignore[call-arg]
    (lambda c: TensorOverride(threshold=-1.0), r"^threshold: -1\.0 is not a positive finite number"),
    (lambda c: c.with_value("weight.axis", None), r"^weight: unknown key; did you mean 'weights'\?"),
    (lambda c: c.with_value("rules[0].dtype", "int8"), r"'rules\[0\]\.dtype' cannot be set .* no \[0\] in a list of 0"),
    (lambda c: c.with_value("rounding.x", 1), "has no part x"),
    (lambda c: c.with_value("tensors.a.b.threshold", 1.0), r"^tensors\.a\.b: unknown key"),
    (lambda c: c.with_value("weights", object()), "object is unknown to JSON"),
    (lambda c: c.with_value("weights", {1, 2}), "set is unknown to JSON"),
    (lambda c: c.with_value("tensors", 3), r"^tensors: .*not 3"),
    (lambda c: c.with_value("activations.calibrator", "mes"), r"unknown calibrator 'mes'; did you mean 'mse'\?"),
    (lambda c: c.with_value("activations.calibrator", {"name": "mes"}), r"not 'mes'; did you mean 'mse'\?"),
    (lambda c: c.with_value("activations.calibrator.percentile", 99), r"^activations\.calibrator\.percentile: unknown"),
    (lambda c: c.with_value("activations.calibrator", {"name": "registered"}), r"callable: Field required"),
    (
        lambda c: c.with_value("weights.calibrator", {"name": "percentile", "percentile": 101}),
        r"^weights\.calibrator\.percentile: Input should be less than or equal to 100, not 101",
    ),
    (
        lambda c: c.with_value("activations.calibrator", {"name": "global_scale", "threshold": 1e300}),
        r"^activations\.calibrator\.threshold: 1e\+300 gives no scale in float32: it must be from 1e-37 to 3e38",
    ),
    (lambda c: c.override_tensor("x", threshold=0.0), r"^tensors\.x\.threshold: 0\.0 is not a positive"),
    (lambda c: c.override_tensor("x", threshold=np.nan), r"^tensors\.x\.threshold: .*finite"),
    (lambda c: c.override_tensor("x", threshold="2"), r"^tensors\.x\.threshold: .*number or a valid tuple, not '2'"),
    (lambda c: c.override_tensor("x", scale=1e-60), r"^tensors\.x\.scale: 1e-60 is not a positive"),
    (lambda c: c.override_tensor("x", scale=1e39), r"^tensors\.x\.scale: 1e\+39 is not a positive"),
    (lambda c: c.override_tensor("x", scale=[1.0, -2.0]), r"^tensors\.x\.scale\[1\]: -2\.0"),
    (lambda c: c.override_tensor("x", scale=[]), r"^tensors\.x\.scale"),
    (lambda c: c.override_tensor("x", zero_point=256), r"^tensors\.x\.zero_point: 256 is outside uint8 \[0, 255\]"),
    (lambda c: c.override_tensor("x", zero_point=-1, dtype="uint8"), r"^tensors\.x\.zero_point: -1 is outside uint8"),
    (
        lambda c: c.override_tensor("x", zero_point=[0, 99], dtype="int4"),
        r"^tensors\.x\.zero_point: 99 is outside int4",
    ),
    (lambda c: c.override_tensor("x", zero_point=1.5), r"^tensors\.x\.zero_point: "),
    (lambda c: c.override_tensor("x", zero_point=True), r"^tensors\.x\.zero_point: .*integer or a .* tuple, not True"),
    (lambda c: c.override_tensor("x", scale=1.0, threshold=1.0), r"threshold and scale each decide the range"),
    (lambda c: c.override_tensor("x", symmetric=True, zero_point=1), r"symmetric tensor has no zero point of its own"),
    (lambda c: c.override_tensor("x", scale=[1.0], zero_point=[1, 2]), r"differ in length"),
    (
        lambda c: c.override_tensor("x", axis="tensor", threshold=[1.0]),
        r"^tensors\.x\.axis: lists are for each channel",
    ),
    (lambda c: c.override_tensor("x", dtype="float16"), r"^tensors\.x\.dtype: "),
    (lambda c: c.override_tensor("x", thresold=1.0), r"^tensors\.x\.thresold: .*'threshold'"),
    (lambda c: c.override_layer("x", rounding="up"), r"^layers\.x\.rounding: "),
    (lambda c: c.with_rule(keep_float=True), r"^rules\[0\]: a rule needs op or name"),
    (lambda c: c.with_rule(op="nn.dense"), r"^rules\[0\]: a rule needs at least one setting"),
    (lambda c: c.without_tensor("dense"), "no override of 'dense'"),
    (lambda c: c.override_layer("dense_1", keep_float=True).without_layer("dense1"), "did you mean 'dense_1'"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistakes_are_errors_that_say_where(mistake: Mistake, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        mistake(QuantConfig())


@pytest.mark.parametrize("text", [{"mode": "static"}, None])
def test_what_is_no_text_is_no_json(text: Any) -> None:
    with pytest.raises(ConfigError, match=r"not valid JSON: .* must be str"):
        QuantConfig.from_json(text)
    with pytest.raises(ConfigError, match=r"^config .*: expected str, bytes or os.PathLike object"):
        QuantConfig.load(text)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        QuantConfig.from_json('{"rounding": "x", "weights": {"dtype": "y"}, "layers": {"a": {"b": 1}}}')
    lines = str(error.value).splitlines()
    assert [line.split(":")[0] for line in lines] == ["weights.dtype", "rounding", "layers.a.b"]


def test_hostile_names_cannot_spoil_a_message() -> None:
    for name in ("<script>\n\x1b[31m", "x" * 10_000):
        config = QuantConfig().override_tensor(name, threshold=1.0)
        assert QuantConfig.from_json(config.to_json()).tensors[name].threshold == 1.0
        with pytest.raises(ConfigError) as error:
            config.override_tensor(name, threshold=-1.0)
        assert len(str(error.value)) < 500 and str(error.value).isprintable()


def test_with_value_changes_one_thing() -> None:
    config = QuantConfig().with_value("weights.axis", None)
    assert config == QuantConfig(weights=WeightSpec(axis=None))
    assert config.with_value("weights.axis", "channel") == QuantConfig()
    dotted = QuantConfig().with_value('tensors["a.b"].threshold', 2)
    assert dotted.tensors["a.b"] == TensorOverride(threshold=2.0)
    assert dotted.with_value('tensors["a.b"].threshold', None) == QuantConfig()
    ruled = QuantConfig().with_rule(op="nn.*", keep_float=True).with_value("rules[0].op", "nn.dense")
    assert ruled.rules == (Rule(op="nn.dense", keep_float=True),)
    assert QuantConfig().with_value("layers.fc", LayerOverride(keep_float=True)).layers["fc"].keep_float


def test_numpy_numbers_are_numbers() -> None:
    config = QuantConfig().override_tensor("x", scale=np.float32([0.5, 0.25]), zero_point=np.array([1, 2]))
    assert config.tensors["x"] == TensorOverride(scale=(0.5, 0.25), zero_point=(1, 2))


def test_what_decides_the_range_last_wins() -> None:
    config = QuantConfig().override_tensor("x", dtype="int8").override_tensor("x", threshold=2.0)
    assert config.tensors["x"] == TensorOverride(dtype="int8", threshold=2.0)
    assert config.override_tensor("x", scale=0.5).tensors["x"] == TensorOverride(dtype="int8", scale=0.5)
    assert config.override_tensor("x", calibrator="kl").tensors["x"] == TensorOverride(
        dtype="int8", calibrator=KlSpec()
    )
    shifted = QuantConfig().override_tensor("x", symmetric=True).override_tensor("x", zero_point=3)
    assert shifted.tensors["x"] == TensorOverride(zero_point=3)
    assert shifted.override_tensor("x", symmetric=True).tensors["x"] == TensorOverride(symmetric=True)


def test_overrides_come_and_go() -> None:
    config = QuantConfig().override_tensor("x", threshold=1.0).override_layer("fc", keep_float=True)
    config = config.override_layer("fc", rounding="fp32_rne")
    assert config.layers["fc"] == LayerOverride(keep_float=True, rounding="fp32_rne")
    assert config.override_tensor("x", threshold=None).override_layer("fc", keep_float=None).layers["fc"].rounding
    assert config.without_tensor("x").without_layer("fc") == QuantConfig()
    assert config.override_tensor("x", threshold=None).without_layer("fc") == QuantConfig()


def test_a_zero_point_may_suit_a_dtype_that_a_rule_gives() -> None:
    config = QuantConfig().with_rule(op="nn.dense", dtype="int16").override_tensor("x", zero_point=3000)
    assert config.tensors["x"].zero_point == 3000


@pytest.mark.parametrize(
    ("rule", "op", "names", "fits"),
    [
        (Rule(op="nn.*", keep_float=True), "nn.dense", ["fc"], True),
        (Rule(op="nn.dense", keep_float=True), "nn.conv2d", ["fc"], False),
        (Rule(name="fc*", keep_float=True), "nn.dense", ["node", "fc1"], True),
        (Rule(name="FC*", keep_float=True), "nn.dense", ["fc1"], False),
        (Rule(name="x[0]", keep_float=True), "add", ["x[0]"], True),
        (Rule(op="add", name="x", keep_float=True), "add", ["y"], False),
        (Rule(op="*", keep_float=True), None, ["input"], False),
        (Rule(name="input", keep_float=True), None, ["input"], True),
    ],
)
def test_rules_match_by_op_and_name(rule: Rule, op: str | None, names: list[str], fits: bool) -> None:
    assert rule.matches(op, names) == fits


def test_saving_and_loading(tmp_path: Path) -> None:
    config = QuantConfig().override_tensor("层.1", threshold=0.1)
    config.save(tmp_path / "tuned.json")
    assert QuantConfig.load(tmp_path / "tuned.json") == config
    QuantConfig().save(str(tmp_path / "tuned.json"))
    assert QuantConfig.load(str(tmp_path / "tuned.json")) == QuantConfig()
    assert [path.name for path in tmp_path.iterdir()] == ["tuned.json"]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b'{"weights": {"axes": null}}'])
def test_a_file_that_is_no_config_is_an_error_that_names_it(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"bad\.json"):
        QuantConfig.load(path)


def test_a_place_that_cannot_be_written_is_an_export_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    for path in (tmp_path / "missing" / "c.json", tmp_path / "folder", tmp_path / "folder" / "file" / "c.json"):
        with pytest.raises(ExportError, match=path.name):
            QuantConfig().save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tuned.json"
    QuantConfig().save(path)
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ExportError, match=r"tuned\.json.*No space left on device"):
        QuantConfig().override_tensor("x", threshold=1.0).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_presets() -> None:
    assert QuantConfig.of_preset("int8") == QuantConfig.from_json('{"version": 1}')
    config = QuantConfig.of_preset("default")
    assert config.activations.least_db == "measured" and QuantConfig.from_json(config.to_json()) == config
    assert config.with_value("activations.least_db", 24.5).activations.least_db == 24.5
    with pytest.raises(ConfigError, match=r"activations\.least_db"):
        config.with_value("activations.least_db", "some")


def test_presets_that_do_not_exist_are_named() -> None:
    with pytest.raises(ConfigError, match=r"no preset 'int16'; did you mean 'int8'.*weight_only_int4"):
        QuantConfig.of_preset("int16")  # pyright: ignore[reportArgumentType]
