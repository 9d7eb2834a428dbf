"""ai-edge-quantizer's recipe: static 8 bits for all ops, none for those that stay in float.

A recipe knows an op by a regular expression on its scope: the names of its outputs, each followed by a semicolon.
"""

import re
from typing import Any, cast

from qbench.errors import ConfigError, shown
from qbench.exporters.rosetta.facts import Facts, json_bytes, text_of, without
from qbench.quant.strict import read_json

_BEFORE, _AFTER = "(^|;)", ";"
_STATIC = {
    "regex": ".*",
    "operation": "*",
    "algorithm_key": "min_max_uniform_quantize",
    "op_config": {
        "activation_tensor_config": {"num_bits": 8, "symmetric": False, "granularity": "TENSORWISE", "dtype": "INT"},
        "weight_tensor_config": {"num_bits": 8, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"},
        "compute_precision": "INTEGER",
        "explicit_dequantize": False,
        "skip_checks": False,
    },
}
_FLOAT = "no_quantize"


def write_recipe(facts: Facts) -> bytes:
    """For ``Quantizer.load_quantization_recipe``; later rules win."""
    without(";", facts.float_tensors, "a recipe")
    floats: list[dict[str, Any]] = [
        {"regex": _BEFORE + re.escape(name) + _AFTER, "operation": "*", "algorithm_key": _FLOAT, "op_config": {}}
        for name in facts.float_tensors
    ]
    return json_bytes([_STATIC, *floats])


def read_recipe(data: bytes) -> Facts:
    """The outputs that a recipe of this kind leaves in float; ConfigError for other recipes."""
    rules = read_json(text_of(data))
    if not isinstance(rules, list):
        raise ConfigError("a recipe is a list of rules")
    return Facts(float_tensors=tuple(name for rule in cast("list[Any]", rules) for name in _float_of(rule)))


def _float_of(rule: Any) -> tuple[str, ...]:
    try:
        regex, operation, algorithm = (str(rule[key]) for key in ("regex", "operation", "algorithm_key"))
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{shown(str(rule))} is no rule of a recipe") from error
    if regex == ".*" and operation == "*" and algorithm != _FLOAT:
        return ()
    if operation != "*" or algorithm != _FLOAT or not (regex.startswith(_BEFORE) and regex.endswith(_AFTER)):
        raise ConfigError(
            f"the rule for {shown(regex)} cannot be read: only {_FLOAT} of any operation, for (^|;)NAME; can be"
        )
    return (re.sub(r"\\(.)", r"\1", regex[len(_BEFORE) : -len(_AFTER)], flags=re.DOTALL),)
