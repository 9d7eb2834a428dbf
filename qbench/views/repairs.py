"""What to do: repairs with what each gives back and costs, the best first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qbench.quant.config import QuantConfig
from qbench.search.advice import Advice
from qbench.search.quality import Quality
from qbench.views.state import State
from qbench.views.view import View


@dataclass(frozen=True, kw_only=True)
class RepairRow(View):
    """One repair; all numbers are measured.

    Parameters
    ----------
    label
        What the edit is called in the history.
    what, where, why
        In words; `where` is empty where it is the whole model.
    layers
        Names of the layers that it is about.
    gain_db, gain_metric, gain_held_back
        By how much the output's SQNR rises, and the user's metric, of that also on the samples that the ranking did
        not see; None where there is none.
    returned
        Which share of what is lost comes back, from 0 to 1: of the metric, where there is one, else of the noise.
    ms, more_ms, dearer
        Of a run after the repair, what it adds, and that as a share of what a run takes now.
    bytes, more_bytes, larger
        Of the constants, in the same way.
    is_applied
        Whether the config that counts has it already.
    """

    label: str
    what: str
    where: tuple[str, ...]
    why: str
    layers: tuple[str, ...]
    gain_db: float | None
    gain_metric: float | None
    gain_held_back: float | None
    returned: float
    ms: float
    more_ms: float
    dearer: float
    bytes: int
    more_bytes: int
    larger: float
    is_applied: bool


@dataclass(frozen=True)
class RepairsView(View):
    """The repairs that were found.

    Parameters
    ----------
    rows
        The best first.
    metric_name
        The user's metric; None: SQNR.
    is_stale
        Whether the config was changed since they were found.
    """

    rows: tuple[RepairRow, ...]
    metric_name: str | None
    is_stale: bool


def repairs_view(state: State, config: QuantConfig, advice: Sequence[Advice], found_for: QuantConfig) -> RepairsView:
    """A picture of the repairs that were found.

    Parameters
    ----------
    state
        Of the session.
    config, found_for
        That counts now, and that the repairs were found for.
    advice
        What was found.
    """
    output = state.report.output
    rows = tuple(_row(state, config, one, output.metric_name) for one in advice)
    return RepairsView(rows, output.metric_name, found_for != config)


def _row(state: State, config: QuantConfig, advice: Advice, metric_name: str | None) -> RepairRow:
    repair, before, after = advice.repair, advice.before, advice.after
    prepared = state.quantized.prepared
    names = {node.name for node in prepared.nodes}
    layers = (name if name in names else _maker(state, name) for name in repair.where)
    more_ms, more_bytes = advice.cost.ms - advice.cost_before.ms, advice.cost.bytes - advice.cost_before.bytes
    return RepairRow(
        label=str(repair),
        what=repair.what,
        where=repair.where,
        why=repair.why,
        layers=tuple(name for name in layers if name is not None),
        gain_db=_gain(after.sqnr_db, before.sqnr_db),
        gain_metric=None if metric_name is None else after.metric - before.metric,
        gain_held_back=_gain(after.held_back, before.held_back),
        returned=_returned(before, after, advice.exact),
        ms=advice.cost.ms,
        more_ms=more_ms,
        dearer=more_ms / advice.cost_before.ms,
        bytes=advice.cost.bytes,
        more_bytes=more_bytes,
        larger=more_bytes / max(1, advice.cost_before.bytes),
        is_applied=repair.apply(config) == config,
    )


def _maker(state: State, tensor: str) -> str | None:
    maker = state.quantized.prepared.producers.get(tensor)
    return None if maker is None else maker.name


def _gain(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _returned(before: Quality, after: Quality, exact: Quality) -> float:
    """The share of the metric's loss, or of the noise's power where the float model's number is infinite."""
    if math.isfinite(exact.metric):
        lost = exact.metric - before.metric
        share = (after.metric - before.metric) / lost if lost > 0 else 0.0
    else:
        gain = _gain(after.sqnr_db, before.sqnr_db)
        share = 0.0 if gain is None else 1 - 10 ** (-gain / 10)
    return min(1.0, max(0.0, share))
