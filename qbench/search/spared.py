"""What 8 bits would spoil, in 16 bits or in float: parts of a network, as the edit of a config that says so."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import QuantRule
from qbench.ops.moves import moved_from
from qbench.ops.products import is_layer
from qbench.passes.annotate import takes_integers
from qbench.passes.choices import choices_of
from qbench.passes.groups import Group, find_groups, integer_operands, rule_of
from qbench.passes.pipeline import Trace
from qbench.passes.round_weights import RoundedWeight
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, annotate

_NOTHING = FrozenMap[str, str]()


@dataclass(frozen=True)
class Spared:
    """Nodes that stay in float, and tensors that get 16 bits, by name, each with the reason, if any.

    Parameters
    ----------
    floats, wide
        Of nodes and of tensors.
    least_db
        What 8 bits must keep of a tensor, see :class:`~qbench.quant.specs.TensorSpec`; None: what the config says.
    equalize
        Whether layers share out their ranges: what spares the rest.
    weights
        Those that were rounded on data to spare these few: no part of the config, and kept by themselves. None: that
        was not tried.
    """

    floats: Mapping[str, str] = _NOTHING
    wide: Mapping[str, str] = _NOTHING
    least_db: float | None = None
    equalize: bool = False
    weights: FrozenMap[str, RoundedWeight] | None = field(default=None, compare=False)

    def applied(self, graph: Graph, config: QuantConfig) -> QuantConfig:
        """The config with these, but for those of which it says something itself."""
        if self.least_db is not None:
            config = config.with_value("activations.least_db", self.least_db)
        if self.equalize:
            config = config.with_value("weights.equalize", True)
        choices = choices_of(graph, config)
        decided = {*choices.included, *choices.excluded}
        floats = {**self._products(graph), **self.floats}
        for reason in dict.fromkeys(floats.values()):
            names = [name for name, why in floats.items() if why == reason and name not in decided]
            config = config.override_many("layers", names, keep_float=True, reason=reason or None)
        for reason in dict.fromkeys(self.wide.values()):
            names = [name for name, why in self.wide.items() if why == reason]
            edited = [name for name in names if name in config.tensors]  # say, a threshold, which is one of 16 bits
            config = config.override_many(
                "tensors", [name for name in names if name not in edited], dtype="int16", reason=reason or None
            )
            typeless = [name for name in edited if config.tensors[name].dtype is None]
            config = config.override_many("tensors", typeless, dtype="int16")
        return config

    def _products(self, graph: Graph) -> dict[str, str]:
        """Products of two tensors of data that read 16 bits, made beside them in 8 or not: see `in_16_bits`."""
        found = dict[str, str]()
        for group in find_groups(graph) if self.wide else ():
            if is_product_of_data(graph, group):
                read = (name for value in integer_operands(group.head) for name in moved_from(graph, value))
                reasons = [self.wide[name] for name in read if name in self.wide]
                found |= dict.fromkeys((node.name for node in group.nodes), reasons[0]) if reasons else {}
        return found

    def joined(self, other: Spared) -> Spared:
        """These and others."""
        floats, wide = {**self.floats, **other.floats}, {**self.wide, **other.wide}
        return replace(self, floats=FrozenMap(floats), wide=FrozenMap(wide))

    def to_json(self) -> str:
        """As a file keeps it."""
        said = {"least_db": self.least_db, "equalize": self.equalize}
        return json.dumps({**said, "floats": {**self.floats}, "wide": {**self.wide}})

    @classmethod
    def from_json(cls, text: str) -> Self | None:
        """What was kept; None where less was measured than is now. ValueError and the like for anything else."""
        data = json.loads(text)
        if "equalize" not in data:
            return None
        floats, wide = (FrozenMap(dict[str, str](data[key])) for key in ("floats", "wide"))
        return cls(floats, wide, float(data["least_db"]), bool(data["equalize"]))


def integer_groups(quantized: Quantized) -> list[Group]:
    """Each fused group of a quantized model that runs in integers, or only reads them."""
    annotated = quantized.annotated
    floats = {node.name for node in annotated.nodes if node.reason and not takes_integers(annotated, node)}
    return [group for group in find_groups(quantized.prepared) if floats.isdisjoint(node.name for node in group.nodes)]


def sums_in_16_bits(quantized: Quantized, reason: str) -> Spared:
    """The sums of products that are not rounded, since only float layers read them."""
    made = (group.outputs[0] for group in integer_groups(quantized) if rule_of(group.head) == QuantRule.MAC)
    return Spared(wide=FrozenMap({name: reason for name in made if name not in quantized.encodings}))


def cut(groups: Sequence[Group], parts: int) -> list[Sequence[Group]]:
    """About equal parts of a sequence, in order."""
    ends = [len(groups) * number // parts for number in range(parts + 1)]
    return [groups[first:last] for first, last in pairwise(ends) if first < last]


def in_float(groups: Iterable[Group], reason: str = "") -> Spared:
    """Fused groups in float; without a reason, somebody has chosen them."""
    return Spared(FrozenMap({node.name: reason for group in groups for node in group.nodes}))


def entering(prepared: Trace, groups: Iterable[Group]) -> dict[str, list[str]]:
    """What each fused group reads that no other makes: tensors made in float, or the graph's inputs.

    Parameters
    ----------
    prepared
        The float graph.
    groups
        All groups that run in integers, or read them.

    Returns
    -------
    dict
        By the name of a group's head; where values are only moved on the way, the tensor that a config names.
    """
    graph, groups = prepared.graph, [*groups]
    made = {value for group in groups for value in group.outputs if rule_of(group.head) != QuantRule.FLOAT}
    _, named = annotate(prepared, FrozenMap(), Memo(), modes=choices_of(graph, QuantConfig()).modes)
    found = dict[str, list[str]]()
    for group in groups:
        read = [value for value in integer_operands(group.head) if value not in made and value not in graph.constants]
        origins = (next((value for value in moved_from(graph, name) if value in named), None) for name in read)
        found[group.head.name] = [name for name in origins if name is not None]
    return found


def is_product_of_data(graph: Graph, group: Group) -> bool:
    """Whether both tensors that a fused group multiplies are data."""
    return rule_of(group.head) == QuantRule.MAC and not is_layer(graph, group.head)


def in_16_bits(
    graph: Graph,
    groups: Iterable[Group],
    read: Mapping[str, Sequence[str]],
    rounded: Container[str],
    reason: str = "",
) -> Spared:
    """Fused groups with all that they make in 16 bits, and what they read that none makes.

    But for products of two tensors of data, which stay in float: sums of 16-bit products need 64 bits, and take longer.

    Parameters
    ----------
    graph, groups
        The float graph, and groups of it.
    read
        What :func:`entering` gives.
    rounded
        All tensors that are rounded in 8 bits: sums that only float layers read are not, nor what those make.
    reason
        Kept with each name.
    """
    floats, wide = dict[str, str](), dict[str, str]()
    for group in groups:
        if rule_of(group.head) == QuantRule.SAME:
            continue
        if is_product_of_data(graph, group):
            floats |= {node.name: reason for node in group.nodes}
        made = (name for name in group.outputs if name in rounded)
        wide |= dict.fromkeys((*read[group.head.name], *made), reason)
    return Spared(FrozenMap(floats), FrozenMap(wide))
