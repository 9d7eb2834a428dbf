"""``qbench diff A B``: what differs between two models or archives, two configs, or two reports."""

import argparse
import difflib
import math
from pathlib import Path
from typing import Any

from qbench.cli.options import add_shape_option, read_graph
from qbench.errors import ConfigError
from qbench.ir.diff import diff
from qbench.quant.config import QuantConfig
from qbench.quant.strict import read_json


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Compare two files of one kind. Exit status: 0; for reports, 1 where the output of B is worse: its "
        "SQNR by more than the tolerance, or its agreement, top-1 or metric at all."
    )
    parser.add_argument("left", type=Path, metavar="A", help="model, .qbench archive, config.json or report.json")
    parser.add_argument("right", type=Path, metavar="B", help="the same kind")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="DB",
        help="for reports: how much SQNR the output of B may lose without being worse (default: 0)",
    )
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    left: Path = options.left
    right: Path = options.right
    if {left.suffix.lower(), right.suffix.lower()} != {".json"}:
        print(diff(read_graph(left, options), read_graph(right, options)), end="")
    elif _is_report(left) or _is_report(right):
        from qbench.report.compare import compare_reports  # with pandas behind it: nobody else's commands wait for it

        if not 0 <= options.tolerance < math.inf:
            raise ConfigError(f"--tolerance {options.tolerance:g}: it is a number of decibels, 0 or more")
        found = compare_reports(left, right, tolerance_db=options.tolerance)
        print(found)
        return 1 if found.regressions else 0
    else:
        before, after = (QuantConfig.load(path).to_json().splitlines() for path in (left, right))
        lines = difflib.unified_diff(before, after, str(left), str(right), lineterm="")
        print("\n".join(lines) or "no differences")
    return 0


def _is_report(path: Path) -> bool:
    """A report has a list of layers, a config has overrides by name; what is no JSON is told of when it is loaded."""
    try:
        data: Any = read_json(path.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError):
        return False
    return isinstance(data, dict) and "output" in data
