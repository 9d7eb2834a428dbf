"""What a person means by the name of a layer or tensor."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from qbench.engine.layers import encoded_tensors
from qbench.errors import SessionError, nearest, shown
from qbench.ir.graph import Graph, Node
from qbench.quant.config import QuantConfig
from qbench.quant.specs import LayerOverride

__all__ = ["Target", "find", "overridden", "without"]


@dataclass(frozen=True, slots=True)
class Target:
    """What settings for a name apply to.

    Parameters
    ----------
    node
        The layer, for what is said of layers; None for graph inputs and weights.
    tensor
        The quantized tensor, for what is said of tensors: for a node, the output of its fused group; None where nothing
        of it is quantized.
    """

    node: str | None
    tensor: str | None


def find(source: Graph, prepared: Graph, points: Collection[str], name: str) -> Target:
    """A node of the prepared graph, else a tensor, else a node or tensor of the source model that became part of one.

    Parameters
    ----------
    source, prepared
        The model as it was loaded, and the float graph that is quantized.
    points
        Names of the tensors that are quantized.

    Raises
    ------
    SessionError
        Nothing has that name; it says which name is nearest.
    """
    encoded = encoded_tensors(prepared, points)
    if name in prepared.by_name:
        return Target(name, encoded[name])
    if name in points or name in prepared.types:
        maker = prepared.producers.get(name)
        return Target(maker.name if maker else None, name if name in points else maker and encoded[maker.name])
    maker = source.by_name.get(name) or source.producers.get(name)
    heir = maker and _heir(prepared, maker)
    if heir is not None:
        return Target(heir.name, encoded[heir.name])
    raise SessionError(
        f"no node and no tensor is called {shown(name)}{nearest(name, [*prepared.by_name, *prepared.types])}"
    )


def overridden(config: QuantConfig, target: Target, name: str, settings: Mapping[str, Any]) -> QuantConfig:
    """The config with settings for a target; SessionError where it has nothing that they could apply to."""
    for_layer = {key: value for key, value in settings.items() if key in LayerOverride.model_fields}
    for_tensor = {key: value for key, value in settings.items() if key not in for_layer}
    if for_layer:
        if target.node is None:
            raise SessionError(f"{shown(name)} is made by no layer: {', '.join(for_layer)} cannot be set for it")
        config = config.override_layer(target.node, **for_layer)
    if for_tensor:
        if target.tensor is None:
            raise SessionError(
                f"nothing that {shown(name)} makes is quantized: {', '.join(for_tensor)} would have no effect"
            )
        config = config.override_tensor(target.tensor, **for_tensor)
    return config


def without(config: QuantConfig, target: Target, name: str) -> QuantConfig:
    """The config without any override of a target; SessionError where there is none."""
    layer = target.node is not None and target.node in config.layers
    tensor = target.tensor is not None and target.tensor in config.tensors
    if not (layer or tensor):
        raise SessionError(f"{shown(name)} has no override{nearest(name, [*config.layers, *config.tensors])}")
    if layer and target.node is not None:
        config = config.without_layer(target.node)
    if tensor and target.tensor is not None:
        config = config.without_tensor(target.tensor)
    return config


def _heir(prepared: Graph, node: Node) -> Node | None:
    """The last node that a node of the source model was merged into."""
    return next((heir for heir in reversed(prepared.nodes) if {node.name, *node.sources} & set(heir.sources)), None)
