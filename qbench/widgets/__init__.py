"""What runs in JupyterLab: the workbench, and its parts that stand alone."""

from __future__ import annotations

from qbench.widgets.result_panel import ResultPanel
from qbench.widgets.scale_controls import ScaleControls
from qbench.widgets.workbench import Workbench

__all__ = ["ResultPanel", "ScaleControls", "Workbench"]
