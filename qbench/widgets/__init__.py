"""What runs in JupyterLab: the workbench, and controls that stand alone."""

from __future__ import annotations

from qbench.widgets.scale_controls import ScaleControls
from qbench.widgets.workbench import Workbench

__all__ = ["ScaleControls", "Workbench"]
