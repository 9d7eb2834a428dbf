"""An imported quantized graph and its float twin, step by step beside each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule, is_op
from qbench.ir.qparams import QParams
from qbench.ops.qnn.border import Dequantize
from qbench.passes.imported.borders import Borders
from qbench.passes.imported.float_forms import is_narrow
from qbench.quant.semantics import Semantics


@dataclass(frozen=True, eq=False)
class Unit:
    """One step: some nodes of the imported graph, and those of the float twin that mean the same.

    Parameters
    ----------
    nodes
        A quantize, a dequantize, a node on real numbers, or a fused run of integer nodes.
    twins
        Nodes of the twin, which read values by their names in the imported graph. None for most quantize and
        dequantize nodes.
    integer
        Whether it computes on integers.
    implied
        Whether the last twin node is a relu that the imported graph leaves to saturation.
    """

    nodes: tuple[Node, ...]
    twins: tuple[Node, ...]
    integer: bool = False
    implied: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values of the imported graph that leave the unit."""
        return self.nodes[-1].outputs

    @property
    def moves(self) -> bool:
        """Whether it only moves integers about, so that what it makes has the scale of what it reads."""
        return self.integer and all(OPS[node.op].rule == QuantRule.SAME for node in self.twins)


@dataclass(frozen=True, eq=False)
class Template:
    """An imported graph beside its float twin.

    Parameters
    ----------
    source
        The graph as it was imported.
    graph, borders
        The same with real inputs and outputs, and what their integers are called there.
    twin
        The same network in real numbers: same names, weights dequantized.
    units
        The steps of both, in execution order.
    real
        What stands in the twin for each value of `graph`.
    tensors
        The tensors that have qparams, by name in the twin, and the value of `graph` that holds their integers.
    ties
        By value of `graph`: the values of the twin that share its qparams whatever those are, where there are several.
    semantics
        Whose arithmetic the imported graph computes in.
    """

    source: Graph
    graph: Graph
    borders: Borders
    twin: Graph
    units: tuple[Unit, ...]
    real: FrozenMap[str, str]
    tensors: FrozenMap[str, str]
    ties: FrozenMap[str, tuple[str, ...]]
    semantics: Semantics

    def qparams(self, tensor: str) -> QParams:
        """What the file says of a tensor."""
        return self.graph.qparams[self.tensors[tensor]]

    @cached_property
    def values(self) -> FrozenMap[str, str]:
        """By the name of a value in the twin: the first value of `graph` that holds its integers."""
        found: dict[str, str] = {}
        for value in self.graph.qparams:
            if is_narrow(self.graph, value):
                found.setdefault(self.real[value], value)
        return FrozenMap({**found, **self.tensors})

    def tied(self, name: str) -> tuple[str, ...]:
        """The tensors that share their qparams with a value of the twin, itself among them if it is a tensor."""
        group = self.ties.get(self.values.get(name, ""), (name,))
        return tuple(other for other in group if other in self.tensors)

    def is_quantized(self, value: str) -> bool:
        """Whether a value of `graph` is one of integers, or of reals that were integers."""
        return is_narrow(self.graph, self.integers(value))

    def integers(self, value: str) -> str:
        """The value of `graph` that a dequantized one comes from; any other value as it is."""
        maker = self.graph.producers.get(value)
        return maker.inputs[0] if maker is not None and is_op(maker, Dequantize) else value

    def with_constants(self, constants: Mapping[str, Constant]) -> Template:
        """The same with other constants in the twin, of the same names and types."""
        return dataclasses.replace(self, twin=self.twin.rebound(constants={**self.twin.constants, **constants}))
