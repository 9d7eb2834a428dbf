"""What a config says of nodes: which stay in float, which have a mode of their own, and how each rounds."""

from collections.abc import Callable, Collection
from typing import Any, Literal, get_args

from qbench.errors import ConfigError
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule, bind, is_op
from qbench.ops.products import DenseProduct
from qbench.quant.config import QuantConfig
from qbench.quant.config_paths import shown_path
from qbench.quant.rounding import Rounding
from qbench.quant.specs import Mode

WeightChoice = Literal["bias_correction", "equalize", "weights_rounding"]
"""What is chosen for a layer with weights: by its override, a rule or the default of weights."""

_NOUNS = {"dynamic": "dynamic", "weight_only": "weight only"}
_FORMS = {"weight_only": "constant weights, or a table of constants", "dynamic": "data in rows, and a constant matrix"}


def excluded_nodes(graph: Graph, config: QuantConfig) -> FrozenMap[str, str]:
    """The nodes of a prepared graph that a config keeps in float, each with the reason."""
    return FrozenMap({name: reason for name, reason in _decided(graph, config).items() if reason})


def included_nodes(graph: Graph, config: QuantConfig) -> frozenset[str]:
    """The nodes that a config takes out of float: no default keeps them there."""
    return frozenset(name for name, reason in _decided(graph, config).items() if not reason)


def node_modes(graph: Graph, config: QuantConfig) -> FrozenMap[str, Mode]:
    """The nodes of a prepared graph that run in a mode other than static, and have what that needs.

    A table is stored as integers only where a rule or an override is about it: what it is read for may need it whole.
    """
    floats, found = _decided(graph, config), dict[str, Mode]()
    for node in graph.nodes:
        who, mode = _mode(node, config)
        if mode != "static" and floats[node.name].startswith(_NOUNS[mode]) and _suits(graph, node, mode, who):
            found[node.name] = mode
    return FrozenMap(found)


def check_modes(graph: Graph, config: QuantConfig) -> None:
    """Raise ConfigError for a mode that is asked of layers that have nothing of the kind."""
    for name, layer in config.layers.items():
        node = graph.by_name.get(name)
        if node is not None and layer.mode and not has_form(graph, node, layer.mode):
            what = f"{node.op} has no form of {layer.mode}: that takes {_FORMS[layer.mode]}"
            raise ConfigError(f"{shown_path(('layers', name, 'mode'))}: {what}")
    for number, rule in enumerate(config.rules):
        nodes = [node for node in graph.nodes if rule.mode and rule.matches(node.op, _names(node))]
        if rule.mode and nodes and not any(has_form(graph, node, rule.mode) for node in nodes):
            what = f"none of the {len(nodes)} layers has a form of {rule.mode}: that takes {_FORMS[rule.mode]}"
            raise ConfigError(f"rules[{number}].mode: {what}")


def node_roundings(graph: Graph, config: QuantConfig) -> FrozenMap[str, Rounding]:
    """The nodes of a prepared graph whose rounding a rule or an override names."""
    said = {node.name: _said(node, config, "rounding") for node in graph.nodes}
    return FrozenMap({name: found[1] for name, found in said.items() if found is not None})


def nodes_with(graph: Graph, config: QuantConfig, choice: WeightChoice) -> frozenset[str]:
    """The sums of products whose weights are treated so: rounded sequentially, equalized, their biases corrected."""
    default = getattr(config.weights, choice.removeprefix("weights_"))
    heads = [node for node in graph.nodes if OPS[node.op].rule == QuantRule.MAC]
    said = {node.name: (_said(node, config, choice) or ("default", default))[1] for node in heads}
    return frozenset(name for name, value in said.items() if value not in (False, "nearest"))


def check_weights(graph: Graph, config: QuantConfig, pairs: Callable[[], Collection[str]]) -> None:
    """Raise ConfigError for an override about the weights of a layer that has none, or about no pair of layers.

    `pairs` gives the layers that can be equalized with the next one.
    """
    choices: tuple[WeightChoice, ...] = get_args(WeightChoice)
    for name, layer in config.layers.items():
        node = graph.by_name.get(name)
        given = [choice for choice in choices if getattr(layer, choice) is not None]
        if node is not None and given and OPS[node.op].rule != QuantRule.MAC:
            what = f"{node.op} has no weights: give the name of a convolution or a dense layer"
            raise ConfigError(f"{shown_path(('layers', name, given[0]))}: {what}")
        if node is not None and layer.equalize and name not in pairs():
            what = "no layer whose inputs could be scaled alone reads it, with nothing but a bias and a relu between"
            raise ConfigError(f"{shown_path(('layers', name, 'equalize'))}: {what}")


def _decided(graph: Graph, config: QuantConfig) -> dict[str, str]:
    """Why a node stays in float; empty where a rule or an override says that it does not."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        kept, (who, mode) = _said(node, config, "keep_float"), _mode(node, config)
        if kept is not None and kept[1]:
            found[node.name] = _why(node, config, kept[0])
        elif mode != "static":
            has = _suits(graph, node, mode, who)
            found[node.name] = f"{_NOUNS[mode]}: {who if has else 'activations stay in float'}"
        elif kept is not None:
            found[node.name] = ""
    return found


def _why(node: Node, config: QuantConfig, who: str) -> str:
    override = config.layers.get(node.name)
    return (override and override.reason) or f"excluded by {who}"


def _mode(node: Node, config: QuantConfig) -> tuple[str, Mode]:
    """Who gives a node its mode, and which."""
    return _said(node, config, "mode") or ("default", config.mode)


def _said(node: Node, config: QuantConfig, key: str) -> tuple[str, Any] | None:
    """Who says something of a node, and what: its override, else the last rule that does."""
    override = config.layers.get(node.name)
    if override is not None and getattr(override, key) is not None:
        return "the user", getattr(override, key)
    for number, rule in reversed(tuple(enumerate(config.rules))):
        if getattr(rule, key) is not None and rule.matches(node.op, _names(node)):
            return f"rule {number}", getattr(rule, key)
    return None


def _suits(graph: Graph, node: Node, mode: Mode, who: str) -> bool:
    return has_form(graph, node, mode) and (OPS[node.op].has_weight() or who != "default")


def has_form(graph: Graph, node: Node, mode: Mode) -> bool:
    """Whether a node has what a mode needs."""
    found = bind(node).stored
    if mode == "static" or found is None:
        return mode == "static"
    if mode == "dynamic" and not (is_op(node, DenseProduct) and graph.types[node.inputs[0]].rank > 1):
        return False
    weight = node.inputs[found[0]]
    return weight in graph.constants and graph.types[weight].dtype == "float32"


def _names(node: Node) -> tuple[str, ...]:
    return (node.name, *node.outputs)
