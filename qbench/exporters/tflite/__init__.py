"""TFLite files of quantized graphs, in int8 with scales per channel, or in the uint8 of older files."""

from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from pathlib import Path
from pkgutil import walk_packages

from qbench.errors import ExportError, shown
from qbench.exporters.tflite.writer import EXPORTERS, Inexpressible, Writer
from qbench.files import exported, write_bytes
from qbench.ir.build import TAIL
from qbench.ir.graph import Graph, Node
from qbench.ir.op import is_op
from qbench.ops.qnn.requantize import QnnRequantize

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)


def write_tflite(graph: Graph, path: str | PathLike[str]) -> Path:
    """Write a graph as a TFLite file, whole or not at all.

    Parameters
    ----------
    graph
        A graph of qnn ops in TFLite's arithmetic, and of ops on real numbers; values keep their names.
    path
        Where to.

    Raises
    ------
    ExportError
        What TFLite cannot express, all of it; the extra ``tflite`` is missing; or a path that cannot be written.
    """
    path, data = Path(path), tflite_model(graph)
    with exported(path):
        write_bytes(path, data)
    return path


def tflite_model(graph: Graph) -> bytes:
    """The bytes of a graph as a TFLite file; see :func:`write_tflite`."""
    writer, refused = _written(graph)
    ends = f"nodes of the ONNX file lie behind it; load(outputs={graph.outputs}) leaves them out"
    complaints = [ends] if TAIL in graph.constants else []
    complaints += [f"node {shown(name)} ({graph.node(name).op}): {why}" for name, why in refused.items()]
    if complaints:
        raise ExportError("TFLite cannot express this model:\n" + "\n".join(complaints))
    return writer.finish()


def inexpressible(graph: Graph) -> Mapping[str, str]:
    """The nodes that TFLite cannot express, by name, and why."""
    return _written(graph)[1]


def _written(graph: Graph) -> tuple[Writer, Mapping[str, str]]:
    writer, refused = Writer(graph, _needs_int8(graph)), dict[str, str]()
    for node in graph.nodes:
        if node.name in writer.done:
            continue
        try:
            if node.op not in EXPORTERS:
                raise Inexpressible("TFLite has no such op")
            _check_width(graph, node)
            EXPORTERS[node.op](writer, node)
        except Inexpressible as error:
            refused[node.name] = str(error)
            for value in node.outputs:
                writer.make(value)
    return writer, refused


def _check_width(graph: Graph, node: Node) -> None:
    """Raise Inexpressible where an operator of integers would read or make some of 8 bits and some of 16."""
    values = [value for value in (*node.inputs, *node.outputs) if value not in graph.constants]
    dtypes = {graph.qparams[value].dtype for value in values if value in graph.qparams}
    if dtypes & {"int8", "uint8"} and "int16" in dtypes and not is_op(node, QnnRequantize):
        raise Inexpressible("integers of 8 and of 16 bits, while kernels make as many bits as they read")


def _needs_int8(graph: Graph) -> bool:
    """Whether uint8 must become int8: the kernels that take uint8 know neither int8 weights nor scales per channel."""
    for node in graph.nodes:
        q = [graph.qparams.get(value) for value in node.inputs[:2]]
        if len(q) == 2 and node.inputs[1] in graph.constants and node.op.startswith("qnn.") and None not in q:
            data, weight = (one for one in q if one is not None)
            if data.dtype == "uint8" and (weight.dtype != "uint8" or weight.axis is not None):
                return True
    return not any(q.dtype == "uint8" and name in graph.constants for name, q in graph.qparams.items())
