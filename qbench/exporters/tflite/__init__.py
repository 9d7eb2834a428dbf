"""TFLite files of quantized graphs, in int8 with scales per channel, or in the uint8 of older files."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from pkgutil import walk_packages

from qbench.errors import ExportError, shown
from qbench.exporters.tflite.writer import EXPORTERS, Inexpressible, Writer
from qbench.files import write_bytes
from qbench.ir.build import TAIL
from qbench.ir.graph import Graph

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
    try:
        write_bytes(path, data)
    except OSError as error:
        raise ExportError(f"cannot write {shown(str(path))}: {error.strerror or error}") from error
    return path


def tflite_model(graph: Graph) -> bytes:
    """The bytes of a graph as a TFLite file; see :func:`write_tflite`."""
    writer = Writer(graph, _needs_int8(graph))
    ends = f"nodes of the ONNX file lie behind it; load(outputs={graph.outputs}) leaves them out"
    complaints = [ends] if TAIL in graph.constants else []
    for node in graph.nodes:
        if node.name in writer.done:
            continue
        try:
            if node.op not in EXPORTERS:
                raise Inexpressible("TFLite has no such op")
            EXPORTERS[node.op](writer, node)
        except Inexpressible as error:
            complaints.append(f"node {shown(node.name)} ({node.op}): {error}")
            for value in node.outputs:
                writer.make(value)
    if complaints:
        raise ExportError("TFLite cannot express this model:\n" + "\n".join(complaints))
    return writer.finish()


def _needs_int8(graph: Graph) -> bool:
    """Whether uint8 must become int8: the kernels that take uint8 know neither int8 weights nor scales per channel."""
    for node in graph.nodes:
        q = [graph.qparams.get(value) for value in node.inputs[:2]]
        if len(q) == 2 and node.inputs[1] in graph.constants and node.op.startswith("qnn.") and None not in q:
            data, weight = (one for one in q if one is not None)
            if data.dtype == "uint8" and (weight.dtype != "uint8" or weight.axis is not None):
                return True
    return not any(q.dtype == "uint8" and name in graph.constants for name, q in graph.qparams.items())
