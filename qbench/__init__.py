"""qbench: the workbench for post-training quantization that lives in JupyterLab.

::

    import qbench as qb

    session = qb.Session(qb.load("model.onnx"), calibration=x, evaluation=(x_eval, y_eval), path="model.session")
    print(session.run())
    session.override("dense_1", threshold=2.5)
    print(session.run())
    qb.export_onnx(session, "model.qdq.onnx")
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qbench import parity
    from qbench import parity as lab
    from qbench.calibration.calibrators import register_calibrator
    from qbench.data.load import load_data
    from qbench.decoder import Decoder
    from qbench.errors import (
        CalibrationError,
        Cancelled,
        ClusterError,
        ConfigError,
        DataError,
        ExportError,
        GraphError,
        ModelError,
        NotANumberError,
        ParseError,
        QBenchError,
        QParamsError,
        SessionError,
        UnsupportedOpsError,
    )
    from qbench.execute import plan, run
    from qbench.frontends import load
    from qbench.ir.archive import save
    from qbench.ir.diff import diff
    from qbench.ir.graph import Graph
    from qbench.parity.compare import compare
    from qbench.parity.comparison import Comparison
    from qbench.quant.config import QuantConfig
    from qbench.report.compare import ReportComparison, compare_reports
    from qbench.report.report import Report
    from qbench.runtime.interpreter import call as interpret
    from qbench.runtime.program import Program
    from qbench.session.export import export_onnx, export_overrides, export_tflite
    from qbench.session.rosetta import export_encodings, import_encodings
    from qbench.session.session import Session
    from qbench.widgets import Workbench

__version__ = "0.1.0"

__all__ = [
    # models
    "Graph",
    "Decoder",
    "load",
    "load_data",
    "save",
    "run",
    "interpret",
    "plan",
    "Program",
    "diff",
    "compare",
    "Comparison",
    "parity",
    "lab",
    # quantization
    "QuantConfig",
    "register_calibrator",
    "Session",
    "Report",
    "ReportComparison",
    "compare_reports",
    "export_encodings",
    "export_onnx",
    "export_overrides",
    "export_tflite",
    "import_encodings",
    # in a notebook
    "Workbench",
    # what can go wrong
    "QBenchError",
    "CalibrationError",
    "Cancelled",
    "ClusterError",
    "ConfigError",
    "DataError",
    "ExportError",
    "GraphError",
    "ModelError",
    "NotANumberError",
    "ParseError",
    "QParamsError",
    "SessionError",
    "UnsupportedOpsError",
    "__version__",
]

_HOMES = {
    "Comparison": "qbench.parity.comparison",
    "Decoder": "qbench.decoder",
    "Graph": "qbench.ir.graph",
    "Program": "qbench.runtime.program",
    "QuantConfig": "qbench.quant.config",
    "Report": "qbench.report.report",
    "ReportComparison": "qbench.report.compare",
    "Session": "qbench.session.session",
    "Workbench": "qbench.widgets",
    "compare": "qbench.parity.compare",
    "compare_reports": "qbench.report.compare",
    "diff": "qbench.ir.diff",
    "export_encodings": "qbench.session.rosetta",
    "export_onnx": "qbench.session.export",
    "export_overrides": "qbench.session.export",
    "export_tflite": "qbench.session.export",
    "import_encodings": "qbench.session.rosetta",
    "interpret": "qbench.runtime.interpreter:call",
    "lab": "qbench:parity",
    "parity": "qbench.parity",
    "load": "qbench.frontends",
    "load_data": "qbench.data.load",
    "plan": "qbench.execute",
    "register_calibrator": "qbench.calibration.calibrators",
    "run": "qbench.execute",
    "save": "qbench.ir.archive",
    **dict.fromkeys(
        (
            "CalibrationError",
            "Cancelled",
            "ClusterError",
            "ConfigError",
            "DataError",
            "ExportError",
            "GraphError",
            "ModelError",
            "NotANumberError",
            "ParseError",
            "QBenchError",
            "QParamsError",
            "SessionError",
            "UnsupportedOpsError",
        ),
        "qbench.errors",
    ),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for and no more: qbench itself imports at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'qbench' has no attribute {name!r}")
    home, _, attribute = _HOMES[name].partition(":")
    module = importlib.import_module(home)
    value = module if home == f"{__name__}.{name}" else getattr(module, attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
