"""``qbench diff A B``: what differs between two models or archives, or between two configs."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import Any

from qbench.cli.options import add_shape_option, read_graph
from qbench.ir.diff import diff
from qbench.quant.config import QuantConfig

__all__ = ["add"]


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("diff", help="compare two models or archives layer by layer, or two configs")
    parser.add_argument("left", type=Path, metavar="A", help="model, .qbench archive or config.json")
    parser.add_argument("right", type=Path, metavar="B", help="the same kind")
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    left: Path = options.left
    right: Path = options.right
    if left.suffix == right.suffix == ".json":
        before, after = (QuantConfig.load(path).to_json().splitlines() for path in (left, right))
        lines = difflib.unified_diff(before, after, str(left), str(right), lineterm="")
        print("\n".join(lines) or "no differences")
    else:
        print(diff(read_graph(left, options), read_graph(right, options)), end="")
