"""Pictures as data: frozen objects that say all that a drawing needs, made by pure functions, tested without a screen.

`plots` draws them with matplotlib, `widgets` in the browser.
"""

from qbench.views.boxes import Box, BoxesPane, BoxesView, boxes_view
from qbench.views.caveats import caveats
from qbench.views.channels import ChannelsView, channels_view
from qbench.views.curves import Choice, Curve, CurvesView, curves_view
from qbench.views.exactness import ExactnessLayer, ExactnessView, exactness_view
from qbench.views.front import FrontPoint, FrontView, front_view
from qbench.views.histogram import HistogramView, histogram_view
from qbench.views.history import ComparisonView, HistoryView, comparison_view, history_view
from qbench.views.ir_diff import DiffLine, IRDiffView, ir_diff_view
from qbench.views.layers import LayerRow, LayerTableView, layer_table
from qbench.views.pictures import Picture, picture
from qbench.views.profile import ProfileStep, ProfileView, profile_view
from qbench.views.repairs import RepairRow, RepairsView, repairs_view
from qbench.views.result import FlipView, Glance, Outcome, ResultView, outcome, result_view
from qbench.views.state import Part, State
from qbench.views.still import StillGraphs, StillTensors, still_graphs, still_tensors
from qbench.views.tensor import TensorView, tensor_view
from qbench.views.values import ChannelValues, FeatureMaps, ValuesView, values_view
from qbench.views.workbench import WorkbenchView, workbench_view

__all__ = [
    "Box",
    "BoxesPane",
    "BoxesView",
    "ChannelValues",
    "ChannelsView",
    "Choice",
    "Curve",
    "ComparisonView",
    "CurvesView",
    "DiffLine",
    "FeatureMaps",
    "FlipView",
    "ExactnessLayer",
    "ExactnessView",
    "FrontPoint",
    "FrontView",
    "Glance",
    "HistogramView",
    "HistoryView",
    "IRDiffView",
    "LayerRow",
    "LayerTableView",
    "Outcome",
    "Part",
    "Picture",
    "ProfileStep",
    "ProfileView",
    "RepairRow",
    "RepairsView",
    "ResultView",
    "State",
    "StillGraphs",
    "StillTensors",
    "TensorView",
    "ValuesView",
    "WorkbenchView",
    "boxes_view",
    "caveats",
    "channels_view",
    "comparison_view",
    "curves_view",
    "exactness_view",
    "front_view",
    "histogram_view",
    "history_view",
    "ir_diff_view",
    "layer_table",
    "outcome",
    "picture",
    "profile_view",
    "repairs_view",
    "result_view",
    "still_graphs",
    "still_tensors",
    "tensor_view",
    "values_view",
    "workbench_view",
]
