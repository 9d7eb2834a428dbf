"""Views as matplotlib figures: for papers, and for notebooks without a kernel. No pyplot, so any thread may draw."""

from qbench.plots.curves import curves_figure
from qbench.plots.exactness import exactness_figure
from qbench.plots.figures import png
from qbench.plots.front import front_figure
from qbench.plots.histogram import channels_figure, histogram_figure
from qbench.plots.ir_diff import ir_diff_figure
from qbench.plots.layers import layers_figure
from qbench.plots.profile import profile_figure
from qbench.plots.result import result_figure
from qbench.plots.tensor import absent_figure, tensor_figure
from qbench.plots.values import values_figure
from qbench.plots.workbench import workbench_figure

__all__ = [
    "absent_figure",
    "channels_figure",
    "curves_figure",
    "exactness_figure",
    "front_figure",
    "histogram_figure",
    "ir_diff_figure",
    "layers_figure",
    "png",
    "profile_figure",
    "result_figure",
    "tensor_figure",
    "values_figure",
    "workbench_figure",
]
