"""What runs in JupyterLab: the workbench, and its parts that stand alone."""

from qbench.widgets.bit_exactness import BitExactness
from qbench.widgets.ir_diff import IRDiff
from qbench.widgets.layer_table import LayerTable
from qbench.widgets.network_profile import NetworkProfile
from qbench.widgets.result_panel import ResultPanel
from qbench.widgets.scale_controls import ScaleControls
from qbench.widgets.tensor_widgets import DivergenceCurves, Histogram
from qbench.widgets.workbench import Workbench

__all__ = [
    "BitExactness",
    "DivergenceCurves",
    "Histogram",
    "IRDiff",
    "LayerTable",
    "NetworkProfile",
    "ResultPanel",
    "ScaleControls",
    "Workbench",
]
