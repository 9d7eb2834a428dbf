"""Comparing configs with each other, and with the model that they are for."""

from collections.abc import Iterable, Mapping
from typing import Any

from qbench.errors import ConfigError, nearest, shown
from qbench.quant.config import QuantConfig
from qbench.quant.config_paths import format_path, leaves, shown_path
from qbench.quant.specs import matches


def diff(old: QuantConfig, new: QuantConfig) -> list[tuple[str, Any, Any]]:
    """What differs between two configs: (path, old value, new value), None where one of them says nothing."""
    before, after = leaves(old.to_data()), leaves(new.to_data())
    paths = [path for path in before | after if before.get(path) != after.get(path)]
    return [(format_path(path), before.get(path), after.get(path)) for path in paths]


def check_selectors(config: QuantConfig, nodes: Mapping[str, str], tensors: Iterable[str]) -> None:
    """Check that every rule and every override of a config is about something in the model.

    Parameters
    ----------
    config
        Any config.
    nodes
        Op names by node name, of the graph that the config is for.
    tensors
        Names of the tensors that can be quantized.

    Raises
    ------
    ConfigError
        Lists each selector that matches nothing, with the nearest name.
    """
    tensors = dict.fromkeys(tensors)
    names = [*nodes, *tensors]
    complaints = [
        f"{shown_path((kind, name))}: the model has no {noun} {shown(name)}{nearest(name, known)}"
        for kind, noun, known, overridden in (
            ("layers", "layer", nodes, config.layers),
            ("tensors", "tensor that is quantized", tensors, config.tensors),
        )
        for name in overridden
        if name not in known
    ]
    for index, rule in enumerate(config.rules):
        of_op = [name for name, op in nodes.items() if rule.op is None or matches(rule.op, op)]
        if not of_op:
            complaints.append(
                f"rules[{index}].op: no layer is {shown(rule.op or '*')}{nearest(rule.op or '', set(nodes.values()))}"
            )
        elif rule.name is not None and not any(matches(rule.name, name) for name in (*of_op, *tensors)):
            kind = f" of op {shown(rule.op)}" if rule.op else ""
            complaints.append(
                f"rules[{index}].name: no layer{kind} and no tensor fits {shown(rule.name)}{nearest(rule.name, names)}"
            )
    if complaints:
        raise ConfigError("\n".join(complaints))
