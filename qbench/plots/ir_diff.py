"""Two graphs side by side as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from matplotlib.figure import Figure

from qbench.plots.figures import BAD, GOOD, POOR, SOFT, TEXT, figure, safe
from qbench.views import IRDiffView

_COLORS = {"changed": POOR, "added": GOOD, "removed": BAD}
_MARKS = {"same": " ", "changed": "~", "added": "+", "removed": "-"}


def ir_diff_figure(view: IRDiffView, *, most: int = 60, width: int = 76) -> Figure:
    """A figure with a line per node; what is the same in both graphs is left out.

    Parameters
    ----------
    view
        The difference.
    most, width
        How many lines, and letters of each line, are drawn.
    """
    differing = [line for line in view.lines if line.kind != "same"]
    lines = differing[:most]
    drawn = figure(13, 0.6 + 0.19 * max(1, len(lines)))
    axes = drawn.add_subplot()
    axes.set_xlim(0, 1)
    axes.set_ylim(len(lines) + 1, -1)
    axes.axis("off")
    for x, step in ((0.015, view.before), (0.51, view.after)):
        axes.text(x, -0.5, view.steps[step], fontsize=8, color=SOFT)
    for i, line in enumerate(lines):
        axes.axhspan(i - 0.2, i + 0.8, color=_COLORS[line.kind], alpha=0.1, linewidth=0)
        for x, text in ((0, _MARKS[line.kind]), (0.015, line.left), (0.51, line.right)):
            code = safe(text.partition("  //")[0], width)
            axes.text(x, i + 0.3, code, fontsize=7, family="monospace", color=TEXT, va="center", parse_math=False)
    left_out = len(differing) - len(lines)
    note = f"{left_out} more lines differ" if left_out else f"{len(view.lines) - len(differing)} lines are the same"
    axes.text(0.015, len(lines) + 0.4, note, fontsize=7.5, color=SOFT)
    return drawn
