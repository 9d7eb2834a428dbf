"""A point: a tensor of the annotated graph that gets qparams."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Point:
    """Where annotate put a fake-quantize node; what resolve needs to know to choose its qparams.

    Parameters
    ----------
    tensor
        Name of the float tensor, as in the prepared graph: the key of statistics and encodings.
    kind
        An activation has statistics; a weight is a constant of the graph.
    value
        Name of the fake-quantized value in the annotated graph.
    node, op
        The producer's name and op. For a weight: those of the node that reads it. None for a graph input.
    channel_axis
        For a weight: the axis that per-axis scales run along.
    data
        For a weight: the activation that it is multiplied with, whose scale makes the accumulator's.
    bias
        For a weight: the constant that is added to the products, one element per channel.
    wide
        For an activation: why it has 16 bits by default; empty where it has not.
    stored
        For a weight: it is only stored as integers, since all layers that read it run in float.
    """

    tensor: str
    kind: Literal["activation", "weight"]
    value: str
    node: str | None = None
    op: str | None = None
    channel_axis: int | None = None
    data: str | None = None
    bias: str | None = None
    wide: str = ""
    stored: bool = False
