"""Where along the graph the error arises: what reaches each fused group, what it adds, what nothing makes up for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from qbench.evaluate.picked import judged, picked
from qbench.ir.graph import Graph
from qbench.passes.groups import Group, find_groups
from qbench.report.entries import LayerReport
from qbench.report.report import Report

if TYPE_CHECKING:
    import pandas as pd

CLEAN_DB = 40.0
"""Noise below this is what 8 bits do to any one tensor: a fall that ends above it is no loss."""


@dataclass(frozen=True, slots=True)
class StepLoss:
    """One fused group, and what becomes of the signal in it; ratios in dB, infinite where there is no noise.

    Parameters
    ----------
    name, op
        Of the group's first node.
    nodes
        Names of all its nodes, in execution order.
    runs_as
        What the group makes; see :class:`~qbench.report.report.LayerReport`.
    reaching_db
        The lowest SQNR among what the group reads.
    sqnr_db
        SQNR of what it makes: all errors so far together. Where that cannot be measured (sizes, indices), what reached
        it.
    own_db
        SQNR of what it makes of exact inputs: its own error alone. None where it was not measured.
    inherited_db
        Signal over what it makes of the errors of all groups before. None where it was not measured.
    fall_db
        By how much the ratio falls here: `reaching_db` less `sqnr_db`; negative where it rises.
    lasting_db
        The part of the fall below `CLEAN_DB` that stays: some path to an output has no later value with a higher SQNR.
    """

    name: str
    op: str
    nodes: tuple[str, ...]
    runs_as: str
    reaching_db: float
    sqnr_db: float
    own_db: float | None
    inherited_db: float | None
    fall_db: float
    lasting_db: float

    @property
    def cause(self) -> str:
        """What the fall is due to: ``own`` error, errors of earlier groups that are ``amplified`` here, or nothing."""
        if self.fall_db <= 0:
            return ""
        if self.own_db is None or self.inherited_db is None:
            return "own" if self.reaching_db == float("inf") else ""
        return "own" if self.own_db <= self.inherited_db else "amplified"


@dataclass(frozen=True)
class Attribution:
    """The error of one quantized model along its graph.

    Parameters
    ----------
    steps
        One for each fused group, in execution order.
    output_db
        The lowest SQNR of what outputs are judged by.
    """

    steps: tuple[StepLoss, ...]
    output_db: float

    @property
    def falls(self) -> tuple[StepLoss, ...]:
        """The groups where something is lost for good, the greatest loss first."""
        falls = [step for step in self.steps if step.lasting_db > 0]
        return tuple(sorted(falls, key=lambda step: -step.lasting_db))

    def frame(self) -> pd.DataFrame:
        """One row for each group, in execution order: the fields of :class:`StepLoss` (but `nodes`) and `cause`."""
        import pandas as pd  # takes longer to import than all of qbench

        columns = [field.name for field in fields(StepLoss) if field.name != "nodes"]
        rows = [{name: getattr(step, name) for name in columns} | {"cause": step.cause} for step in self.steps]
        return pd.DataFrame(rows, columns=[*columns, "cause"])


def attribute(prepared: Graph, report: Report) -> Attribution:
    """Follow the signal-to-noise ratio from the inputs to the outputs.

    Rankings by own error blame layers whose noise the next ones forget; one-at-a-time sweeps find nothing where several
    layers spoil a signal together. What shows both is where the ratio falls and does not rise again.

    Parameters
    ----------
    prepared
        The float graph that the report is of.
    report
        What :func:`qbench.evaluate.evaluate.evaluate` found, best with a probe: own errors are measured on that.
    """
    layers = {layer.name: layer for layer in report.by_layer}
    groups = find_groups(prepared)
    measured = _ratios(prepared, groups, layers)
    recovered = _recovered(prepared, groups, measured)
    steps = tuple(_step(prepared, group, layers, measured, recovered) for group in groups)
    ratios = (measured.get(name, float("inf")) for name in judged(prepared))
    return Attribution(steps, min(ratios, default=float("inf")))


def _ratios(prepared: Graph, groups: Iterable[Group], layers: dict[str, LayerReport]) -> dict[str, float]:
    """SQNR of each value that leaves a group, by name."""
    found: dict[str, float] = {}
    for group in groups:
        known = layers[group.nodes[-1].name].sqnr_db
        ratio = _reaching(group, found) if known is None else known
        found |= dict.fromkeys((name for node in group.nodes for name in node.outputs), ratio)
    return found


def _recovered(prepared: Graph, groups: tuple[Group, ...], measured: dict[str, float]) -> dict[str, float]:
    """By group: the highest later ratio on that path to what outputs are judged by where it is lowest."""
    ends, after = {*judged(prepared)}, picked(prepared)
    found: dict[str, float] = {}  # by name of the group's head
    heads = {node.name: group for group in groups for node in group.nodes}
    for group in reversed(groups):
        if after.issuperset(group.outputs):
            found[group.head.name] = float("inf")
            continue
        paths = [float("-inf")] if ends.intersection(group.outputs) else []
        for value in group.outputs:
            for reader in prepared.consumers[value]:
                later = heads[reader.name]
                paths.append(max(measured[later.outputs[0]], found[later.head.name]))
        found[group.head.name] = min(paths, default=float("inf"))
    return found


def _step(
    prepared: Graph,
    group: Group,
    layers: dict[str, LayerReport],
    measured: dict[str, float],
    recovered: dict[str, float],
) -> StepLoss:
    reaching, ratio = _reaching(group, measured), measured[group.outputs[0]]
    stays = max(ratio, recovered[group.head.name])
    last = layers[group.nodes[-1].name]
    return StepLoss(
        name=group.head.name,
        op=group.head.op,
        nodes=tuple(node.name for node in group.nodes),
        runs_as=layers[group.head.name].runs_as,
        reaching_db=reaching,
        sqnr_db=ratio,
        own_db=last.own_sqnr_db,
        inherited_db=last.inherited_sqnr_db,
        fall_db=0.0 if reaching == ratio else reaching - ratio,
        lasting_db=max(0.0, _audible(reaching) - _audible(stays)),
    )


def _reaching(group: Group, measured: dict[str, float]) -> float:
    inputs = (name for node in group.nodes for name in node.inputs)
    inside = {name for node in group.nodes for name in node.outputs}
    return min((measured[name] for name in inputs if name in measured and name not in inside), default=float("inf"))


def _audible(ratio: float) -> float:
    """A ratio within the decibels that count: below 0 all is lost, above `CLEAN_DB` nothing is."""
    return min(max(ratio, 0.0), CLEAN_DB)
