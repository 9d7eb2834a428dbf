"""Pictures as data: frozen objects that say all that a drawing needs, made by pure functions, tested without a screen.

`plots` draws them with matplotlib, `widgets` in the browser.
"""

from __future__ import annotations

from qbench.views.channels import ChannelsView, channels_view
from qbench.views.curves import Choice, Curve, CurvesView, curves_view
from qbench.views.histogram import HistogramView, histogram_view
from qbench.views.ir_diff import DiffLine, IRDiffView, ir_diff_view
from qbench.views.layers import LayerRow, LayerTableView, layer_table
from qbench.views.result import Outcome, ResultView, result_view
from qbench.views.state import Part, State
from qbench.views.tensor import TensorView, tensor_view
from qbench.views.workbench import WorkbenchView, workbench_view

__all__ = [
    "ChannelsView",
    "Choice",
    "Curve",
    "CurvesView",
    "DiffLine",
    "HistogramView",
    "IRDiffView",
    "LayerRow",
    "LayerTableView",
    "Outcome",
    "Part",
    "ResultView",
    "State",
    "TensorView",
    "WorkbenchView",
    "channels_view",
    "curves_view",
    "histogram_view",
    "ir_diff_view",
    "layer_table",
    "result_view",
    "tensor_view",
    "workbench_view",
]
