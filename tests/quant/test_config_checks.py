from __future__ import annotations

import pytest

from qbench.errors import ConfigError
from qbench.quant.config import QuantConfig
from qbench.quant.config_checks import check_selectors, diff

NODES = {"dense_1": "nn.dense", "relu_1": "nn.relu", "softmax": "nn.softmax"}
TENSORS = ["x", "dense_1.out", "relu_1.out"]


def test_equal_configs_differ_in_nothing() -> None:
    assert diff(QuantConfig(), QuantConfig()) == []


def test_a_diff_names_each_path() -> None:
    old = QuantConfig().override_tensor("a.b", threshold=1.0)
    new = old.with_value("weights.axis", None).override_tensor("a.b", scale=[0.5, 2.0]).with_rule(op="*", dtype="int8")
    assert diff(old, new) == [
        ("weights.axis", "channel", None),
        ('tensors["a.b"].threshold', 1.0, None),
        ("rules[0].op", None, "*"),
        ("rules[0].dtype", None, "int8"),
        ('tensors["a.b"].scale[0]', None, 0.5),
        ('tensors["a.b"].scale[1]', None, 2.0),
    ]
    assert {(path, b, a) for path, a, b in diff(old, new)} == set(diff(new, old))


@pytest.mark.parametrize(
    "config",
    [
        QuantConfig(),
        QuantConfig().override_tensor("x", threshold=1.0).override_layer("dense_1", keep_float=True),
        QuantConfig().with_rule(op="nn.*", keep_float=True),
        QuantConfig().with_rule(name="dense*", dtype="int8").with_rule(name="x", dtype="int8"),
        QuantConfig().with_rule(op="nn.dense", name="dense_1.out", dtype="int8"),
        QuantConfig().with_rule(op="nn.dense", name="dense_1", dtype="int8"),
    ],
)
def test_selectors_that_match(config: QuantConfig) -> None:
    check_selectors(config, NODES, TENSORS)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            QuantConfig().override_tensor("dense_1.ou", threshold=1.0),
            r'^tensors\["dense_1\.ou"\]: .*\'dense_1\.out\'\?',
        ),
        (QuantConfig().override_tensor("dense_1", threshold=1.0), r"^tensors\.dense_1: .*no tensor"),
        (QuantConfig().override_layer("dense1", keep_float=True), r"^layers\.dense1: .*did you mean 'dense_1'\?"),
        (QuantConfig().with_rule(op="nn.dens", dtype="int8"), r"^rules\[0\]\.op: .*did you mean 'nn\.dense'\?"),
        (QuantConfig().with_rule(name="softmx", dtype="int8"), r"^rules\[0\]\.name: .*did you mean 'softmax'\?"),
        (QuantConfig().with_rule(op="nn.dense", name="relu_1", dtype="int8"), r"^rules\[0\]\.name: no layer of op"),
    ],
)
def test_a_selector_that_matches_nothing_is_an_error(config: QuantConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_selectors(config, NODES, TENSORS)


def test_all_of_them_are_told_at_once() -> None:
    config = QuantConfig().override_tensor("nope", threshold=1.0).override_layer("nope", keep_float=True)
    with pytest.raises(ConfigError) as error:
        check_selectors(config.with_rule(op="nope", dtype="int8"), NODES, TENSORS)
    assert len(str(error.value).splitlines()) == 3


def test_a_huge_name_cannot_spoil_the_message() -> None:
    with pytest.raises(ConfigError) as error:
        check_selectors(QuantConfig().override_tensor("x\n" * 5000, threshold=1.0), NODES, TENSORS)
    assert len(str(error.value)) < 1000
