"""What a search found: configs with their quality and cost, those that no other beats, and the one to take."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbench.errors import DataError
from qbench.files import exported, write_text
from qbench.quant.config import QuantConfig
from qbench.search.judge import noise

if TYPE_CHECKING:
    import pandas as pd

_LOSS = 0.01
_GOOD_DB = 26.0
"""An error of a twentieth."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """One config that was measured.

    Parameters
    ----------
    label
        What was done to get it.
    config
        The config.
    metric, metric_chosen_on, metric_held_back
        On all evaluation data, on the half that choices are made on, and on the half that they never see; None where
        the metric can only be asked about all.
    sqnr_db
        Of the output; None where it is not a number.
    ms, bytes
        Of one run of its program, and of its constants.
    """

    label: str
    config: QuantConfig
    metric: float
    metric_chosen_on: float | None
    metric_held_back: float | None
    sqnr_db: float | None
    ms: float
    bytes: int

    @property
    def unseen(self) -> float:
        """The metric on samples that no choice was made on, as far as there are any: what configs are chosen by."""
        return self.metric if self.metric_held_back is None else self.metric_held_back

    def beats(self, other: Found) -> bool:
        """Whether nothing of it is worse, and something better."""
        mine, others = (-self.metric, self.ms, self.bytes), (-other.metric, other.ms, other.bytes)
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))

    @property
    def measured(self) -> str:
        """The metric, in words: of all data, and of both halves where they are known."""
        chosen, held = self.metric_chosen_on, self.metric_held_back
        halves = "" if chosen is None or held is None else f" ({chosen:.4g} chosen on, {held:.4g} held back)"
        return f"metric {self.metric:.4g}{halves}"

    def to_data(self) -> dict[str, Any]:
        """As in ``front.json``."""
        ratio = self.sqnr_db if self.sqnr_db is not None and math.isfinite(self.sqnr_db) else None
        return {
            "label": self.label,
            "metric": self.metric if math.isfinite(self.metric) else None,
            "metric_chosen_on": self.metric_chosen_on,
            "metric_held_back": self.metric_held_back,
            "sqnr_db": ratio,
            "ms": self.ms,
            "bytes": self.bytes,
            "config": self.config.to_data(),
        }


@dataclass(frozen=True)
class Limits:
    """What is wanted of a config; None: anything.

    Parameters
    ----------
    at_least
        Of the metric, on all data that results are checked on.
    max_ms, max_bytes
        Of one run of its program, and of its constants.
    seconds
        How long to search.

    Raises
    ------
    DataError
        A limit that is not a number, or a budget that is not positive.
    """

    at_least: float | None = None
    max_ms: float | None = None
    max_bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("at_least", "max_ms", "max_bytes", "seconds"):
            value = getattr(self, name)
            number = isinstance(value, Real) and math.isfinite(value)
            if value is not None and (not number or (name != "at_least" and value <= 0)):
                raise DataError(f"{name}={value}: it must be a {'finite' if name == 'at_least' else 'positive'} number")

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is wanted of a config."""
        return self.at_least is self.max_ms is self.max_bytes is None

    def or_near(self, exact: float) -> Limits:
        """The same, or where nothing is wanted of a config: to lose no more than a hundredth of the float metric."""
        if not self.says_nothing or not math.isfinite(exact):
            return self
        return replace(self, at_least=exact - _LOSS * abs(exact))

    def missed(self, found: Found) -> float:
        """By how much the limits are missed, as shares of them; 0 where all are met."""
        wanted = self.at_least
        short = 0.0 if wanted is None else max(0.0, wanted - found.metric) / max(abs(wanted), 1e-9)
        return short + self.spent(found)

    def spent(self, found: Found) -> float:
        """By how much it takes more time and bytes than are allowed, as shares of them."""
        slow = 0.0 if self.max_ms is None else max(0.0, found.ms / self.max_ms - 1)
        return slow + (0.0 if self.max_bytes is None else max(0.0, found.bytes / self.max_bytes - 1))


def lost(now: tuple[float, float | None], before: tuple[float, float | None], exact: float) -> float:
    """What is lost of a metric and of the signal (dB), as shares of what was, added; no metric beats the exact one."""
    at_stake = exact - before[0]
    share = max(0.0, exact - now[0]) / at_stake if 0 < at_stake < math.inf else 0.0
    return share + noise(now[1]) / noise(before[1])


@dataclass(frozen=True)
class Front:
    """All that a search measured so far.

    Parameters
    ----------
    rows
        In the order in which they were found.
    metric_float
        The float model's metric.
    limits
        What is wanted.
    stopped
        Whether time was up, or somebody asked to stop, before all was tried.
    """

    rows: tuple[Found, ...]
    metric_float: float
    limits: Limits
    stopped: bool = False

    @property
    def pareto(self) -> tuple[Found, ...]:
        """The configs that no other beats in metric, time and bytes together, the fastest first."""
        kept = [row for row in self.rows if not any(other.beats(row) for other in self.rows)]
        return tuple(sorted(kept, key=lambda row: row.ms))

    def lost(self, row: Found) -> float:
        """What a config loses of metric and signal, as shares of what the first one does, added.

        A metric of few samples is a matter of luck, within limits, and a ratio alone may miss what matters.
        """
        return lost((row.metric, row.sqnr_db), (self.rows[0].metric, self.rows[0].sqnr_db), self.metric_float)

    @property
    def best(self) -> Found:
        """The one to take: the fastest that has what is wanted; of those that are fast enough, what loses least.

        Where no metric is wanted, the best on held-back samples; where nothing has what is wanted, the nearest. Of
        those whose SQNR alone was measured, and nothing said, the fastest that is good: floats would be better still.
        """
        missed = self.limits.missed
        met = [row for row in self.rows if missed(row) == 0]
        if not met:
            return min(self.rows, key=lambda row: (missed(row), -row.unseen, row.ms))
        good = [row for row in self.rows if row.unseen >= _GOOD_DB]
        if good and self.limits.says_nothing and not math.isfinite(self.metric_float):
            return min(good, key=lambda row: (row.ms, -row.unseen))
        if self.limits.at_least is None:
            return max(met, key=lambda row: (row.unseen, -row.ms))
        if self.limits.max_ms is not None:
            return min(met, key=lambda row: (self.lost(row), row.ms))
        return min(met, key=lambda row: (row.ms, -row.unseen))

    @property
    def met(self) -> bool:
        """Whether something was found that meets what is wanted."""
        return self.limits.missed(self.best) == 0

    def frame(self) -> pd.DataFrame:
        """One row for each config, in the order in which they were found; `pareto` says whether no other beats it."""
        import pandas as pd  # takes longer to import than all of qbench

        undominated = {id(row) for row in self.pareto}
        rows = [row.to_data() | {"pareto": id(row) in undominated, "best": row is self.best} for row in self.rows]
        return pd.DataFrame(rows)

    def to_json(self) -> str:
        """``front.json`` as text: the configs that no other beats, the fastest first, and which of them to take."""
        rows = [row.to_data() | {"best": row is self.best} for row in self.pareto]
        data = {"metric_float": self.metric_float if math.isfinite(self.metric_float) else None, "met": self.met}
        return json.dumps(data | {"trials": len(self.rows), "rows": rows}, indent=1, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write ``front.json``; ExportError where that fails."""
        with exported(path, "the front to "):
            write_text(Path(path), self.to_json())

    def __str__(self) -> str:
        best = self.best
        wanted = "" if self.limits.at_least is None else f", wanted: {self.limits.at_least:.4g}"
        exact = f"; metric of the float model {self.metric_float:.4g}" if math.isfinite(self.metric_float) else ""
        lines = [f"{len(self.rows)} configs measured, {len(self.pareto)} that no other beats{exact}{wanted}:"]
        lines += [
            f"{'*' if row is best else ' '} {row.measured}, {row.ms:.2f} ms, {row.bytes:,} bytes: {row.label}"
            for row in self.pareto
        ]
        if not self.met:
            lines.append("nothing meets what is wanted; the nearest is marked with a star")
        if self.stopped:
            lines.append("stopped before all was tried: the same search goes on from here")
        return "\n".join(lines)
