"""What to do as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from matplotlib.axes import Axes

from qbench.plots.figures import ACCENT, GOOD, SOFT, TEXT, bare, decibels, number, safe
from qbench.views import RepairRow, RepairsView

_MOST = 4


def draw_repairs(axes: Axes, view: RepairsView) -> None:
    """The best few repairs, each with a bar for the share of what is lost that it gives back."""
    stale = ", measured for an earlier config" if view.is_stale else ""
    bare(axes, f"What to do: share of what is lost that comes back{stale}")
    rows = view.rows[:_MOST]
    colors = [ACCENT if row.is_applied else GOOD for row in rows]
    axes.barh(range(len(rows)), [row.returned for row in rows], 0.7, color=colors, alpha=0.5)
    axes.set_xlim(0, 1)
    axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    for place, row in enumerate(rows):
        axes.text(0.01, place, _said(row, view.metric_name), fontsize=8, color=TEXT, va="center", parse_math=False)
    if not rows:
        axes.text(0.01, 0, "nothing that was tried helps", fontsize=8, color=SOFT, va="center")


def _said(row: RepairRow, metric_name: str | None) -> str:
    gain = "" if metric_name is None else f"{safe(metric_name, 16)} {number(row.gain_metric)}, "
    applied = " (applied)" if row.is_applied else ""
    return f"{safe(row.label, 70)}{applied}: {gain}{decibels(row.gain_db)} dB for {number(row.more_ms, 2)} ms"
