"""What a config says of nodes: which stay in float, which have a mode of their own, and how each rounds."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, get_args

from qbench.errors import ConfigError
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
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


@dataclass(frozen=True)
class Choices:
    """What a config decides for the nodes of a prepared graph, by name.

    Parameters
    ----------
    excluded
        Those that stay in float, each with the reason.
    included
        Those that are taken out of float: no default keeps them there.
    modes
        Those that run in a mode other than static, or stay in float and read integers, and have what that needs.
    """

    excluded: FrozenMap[str, str]
    included: frozenset[str]
    modes: FrozenMap[str, Mode]


def choices_of(graph: Graph, config: QuantConfig, memo: Memo | None = None) -> Choices:
    """What the rules, the overrides of layers and the mode of a config say; `memo` as for passes.

    A table is stored as integers only where a rule or an override is about it: what it is read for may need it whole.
    """
    read = graph, config.layers, config.rules, config.mode
    return (memo or Memo()).recall(Choices.__name__, read, lambda: _decided(graph, config))


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
    said = _said(graph, config, "rounding")
    return FrozenMap({name: found[1] for name, found in said.items() if found is not None})


def nodes_with(graph: Graph, config: QuantConfig, choice: WeightChoice) -> frozenset[str]:
    """The sums of products whose weights are treated so: rounded sequentially, equalized, their biases corrected."""
    default = getattr(config.weights, choice.removeprefix("weights_"))
    said = _said(graph, config, choice)
    heads = {
        node.name: said[node.name] or ("default", default) for node in graph.nodes if OPS[node.op].rule == QuantRule.MAC
    }
    return frozenset(name for name, (_, value) in heads.items() if value not in (False, "nearest"))


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


def _decided(graph: Graph, config: QuantConfig) -> Choices:
    floats, said = _said(graph, config, "keep_float"), _said(graph, config, "mode")
    excluded, included, modes = dict[str, str](), set[str](), dict[str, Mode]()
    for node in graph.nodes:
        name, kept, (who, mode) = node.name, floats[node.name], said[node.name] or ("default", config.mode)
        if kept is not None and kept[1]:
            override = config.layers.get(name)
            excluded[name] = (override and override.reason) or f"excluded by {kept[0]}"
        elif mode != "static":
            has = _suits(graph, node, mode, who)
            excluded[name] = f"{_NOUNS[mode]}: {who if has else 'activations stay in float'}"
            modes |= {name: mode} if has else {}
        else:
            included |= set() if kept is None else {name}
            modes |= {name: mode} if OPS[node.op].reads_integers and has_form(graph, node, "weight_only") else {}
    return Choices(FrozenMap(excluded), frozenset(included), FrozenMap(modes))


def _said(graph: Graph, config: QuantConfig, key: str) -> dict[str, tuple[str, Any] | None]:
    """Who says something of each node, and what: its override, else the last rule that does."""
    rules = [(f"rule {n}", rule) for n, rule in enumerate(config.rules) if getattr(rule, key) is not None][::-1]
    given = {name: value for name, layer in config.layers.items() if (value := getattr(layer, key)) is not None}
    return {
        node.name: ("the user", given[node.name])
        if node.name in given
        else next(((who, getattr(rule, key)) for who, rule in rules if rule.matches(node.op, _names(node))), None)
        for node in graph.nodes
    }


def _suits(graph: Graph, node: Node, mode: Mode, who: str) -> bool:
    op = OPS[node.op]
    return has_form(graph, node, mode) and (op.has_weight() or op.reads_integers or who != "default")


def has_form(graph: Graph, node: Node, mode: Mode) -> bool:
    """Whether a node has what a mode needs."""
    found = bind(node).stored
    if mode == "static" or not found:
        return mode == "static"
    if mode == "dynamic" and not (is_op(node, DenseProduct) and graph.types[node.inputs[0]].rank > 1):
        return False
    weights = [node.inputs[index] for index in found]
    return all(weight in graph.constants and graph.types[weight].dtype == "float32" for weight in weights)


def _names(node: Node) -> tuple[str, ...]:
    return (node.name, *node.outputs)
