"""What a person means by the name of a layer or tensor."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qbench.errors import SessionError, check_kind, nearest, shown
from qbench.evaluate.layers import encoded_tensors
from qbench.ir.graph import Graph, Node
from qbench.quant.config import QuantConfig
from qbench.quant.specs import LayerOverride


@dataclass(frozen=True, slots=True)
class Target:
    """What settings for a name apply to.

    Parameters
    ----------
    name
        What a person said.
    node
        The layer, for what is said of layers; None for graph inputs and weights.
    tensor
        The quantized tensor, for what is said of tensors: for a node, the output of its fused group; None where nothing
        of it is quantized.
    """

    name: str
    node: str | None
    tensor: str | None


def find(source: Graph, prepared: Graph, points: Collection[str], names: Iterable[str]) -> list[Target]:
    """For each name: a node of the prepared graph, else a tensor, else what became part of one in the source model.

    Parameters
    ----------
    source, prepared
        The model as it was loaded, and the float graph that is quantized.
    points
        Names of the tensors that are quantized.
    names
        What a person said.

    Raises
    ------
    SessionError
        Nothing has that name; it says which name is nearest.
    """
    encoded = encoded_tensors(prepared, points)
    return [_find(source, prepared, points, encoded, name) for name in names]


def _find(
    source: Graph, prepared: Graph, points: Collection[str], encoded: Mapping[str, str | None], name: str
) -> Target:
    check_kind(name, str, SessionError, "the name of a layer or tensor is text, not {}; override_many takes several")
    if name in prepared.by_name:
        return Target(name, name, encoded[name])
    if name in points or name in prepared.types:
        maker = prepared.producers.get(name)
        tensor = name if name in points else maker and encoded[maker.name]
        return Target(name, maker.name if maker else None, tensor)
    maker = source.by_name.get(name) or source.producers.get(name)
    heir = maker and _heir(prepared, maker)
    if heir is not None:
        return Target(name, heir.name, encoded[heir.name])
    raise SessionError(
        f"no node and no tensor is called {shown(name)}{nearest(name, [*prepared.by_name, *prepared.types])}"
    )


def overridden(config: QuantConfig, targets: Iterable[Target], settings: Mapping[str, Any]) -> QuantConfig:
    """The config with settings for targets; SessionError where one has nothing that they could apply to."""
    for_layer = {key: value for key, value in settings.items() if key in LayerOverride.model_fields}
    for_tensor = {key: value for key, value in settings.items() if key not in for_layer}
    nodes, tensors = dict[str, None](), dict[str, None]()
    for target in targets:
        if for_layer and target.node is None:
            raise SessionError(f"{shown(target.name)} is made by no layer: {', '.join(for_layer)} cannot be set for it")
        if for_tensor and target.tensor is None:
            raise SessionError(
                f"nothing that {shown(target.name)} makes is quantized: {', '.join(for_tensor)} would have no effect"
            )
        nodes |= {target.node: None} if for_layer and target.node else {}
        tensors |= {target.tensor: None} if for_tensor and target.tensor else {}
    config = config.override_many("layers", nodes, **for_layer) if nodes else config
    return config.override_many("tensors", tensors, **for_tensor) if tensors else config


def without(config: QuantConfig, targets: Sequence[Target]) -> QuantConfig:
    """The config without any override of the targets; SessionError where there is none."""
    layers = {target.node for target in targets if target.node in config.layers}
    tensors = {target.tensor for target in targets if target.tensor in config.tensors}
    if not (layers or tensors):
        first = next(iter(targets))
        if len(targets) > 1:
            raise SessionError(f"none of {shown(first.name)} and {len(targets) - 1} more has an override")
        near = nearest(first.name, [*config.layers, *config.tensors])
        raise SessionError(f"{shown(first.name)} has no override{near}")
    config = config.without_many("layers", layers)
    return config.without_many("tensors", tensors)


def _heir(prepared: Graph, node: Node) -> Node | None:
    """The last node that a node of the source model was merged into."""
    return next((heir for heir in reversed(prepared.nodes) if {node.name, *node.sources} & set(heir.sources)), None)
