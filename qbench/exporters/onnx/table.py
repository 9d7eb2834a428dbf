"""The export table: one small function per op of the IR."""

from collections.abc import Callable

from qbench.exporters.onnx.writer import Writer
from qbench.ir.graph import Node

Function = Callable[[Writer, Node], None]

EXPORTERS: dict[str, Function] = {}
"""How each op is written, by its name."""


def exporter(*ops: str) -> Callable[[Function], Function]:
    """Register a function for ops of the IR."""

    def register(function: Function) -> Function:
        EXPORTERS.update(dict.fromkeys(ops, function))
        return function

    return register
