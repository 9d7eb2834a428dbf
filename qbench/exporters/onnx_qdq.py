"""ONNX files of float graphs, and of annotated graphs in QDQ form: QuantizeLinear and DequantizeLinear at each point.

Opset 21 and IR version 10 are pinned: what onnxruntime and OpenVINO read today, and the first with 4 and 16 bits.
"""

import dataclasses
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from onnx import ModelProto, checker, helper

from qbench.errors import ExportError, shown
from qbench.exporters.onnx import EXPORTERS, Writer
from qbench.exporters.onnx.bias import bias_after
from qbench.exporters.onnx.nbits import DOMAIN
from qbench.exporters.onnx.tail import OPSET
from qbench.files import exported, write_bytes
from qbench.ir.graph import Graph, Node
from qbench.ir.op import QuantRule, is_op
from qbench.ops.float.image import Resize2d
from qbench.ops.float.select import Pad
from qbench.ops.qnn.border import FakeQuantize
from qbench.passes.float16 import Float16Pass
from qbench.passes.groups import rule_of

IR_VERSION = 10
_LARGEST_FILE = 2**31 - 1
_LARGE = 1 << 30  # bytes of constants


def write_onnx(graph: Graph, path: str | PathLike[str], *, float16: bool = False, nbits: bool = False) -> Path:
    """Write a graph as an ONNX file, whole or not at all; of more than 1 GiB the weights to ``PATH.data`` beside it.

    Parameters
    ----------
    graph
        A float graph, or an annotated one with its qparams bound: that becomes QDQ.
    path
        Where to.
    float16
        Whether the nodes of an annotated graph that stay in float do so in float16.
    nbits
        Whether dense layers whose weights are only stored become ``com.microsoft.MatMulNBits``, which onnxruntime reads
        few bits of at a time, and not DequantizeLinear and Gemm, which any runtime understands.

    Raises
    ------
    ExportError
        Ops that ONNX does not have, a model of more than 2 GiB, or a path that cannot be written.
    """
    path = Path(path)
    with exported(path):
        if sum(constant.array.nbytes for constant in graph.constants.values()) > _LARGE:
            _write_beside(graph, path, float16, nbits)
        else:
            write_bytes(path, _serialized(onnx_model(graph, float16=float16, nbits=nbits)))
    return path


def _write_beside(graph: Graph, path: Path, float16: bool, nbits: bool) -> None:
    """Write the model and, one after the other as they are made, its weights to a file beside it."""
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as scratch:
        model, data = Path(scratch) / path.name, Path(scratch) / f"{path.name}.data"
        with data.open("wb") as beside:
            made = onnx_model(graph, float16=float16, nbits=nbits, beside=beside)
        model.write_bytes(_serialized(made))
        _check(model)
        data.replace(path.with_name(data.name))
        model.replace(path)


def _check(model: ModelProto | Path) -> None:
    try:
        checker.check_model(model)  # pyright: ignore[reportUnknownMemberType] protobuf types are untyped
    except checker.ValidationError as error:
        raise ExportError(f"ONNX's checker refuses the exported model: {error}") from error


def _serialized(model: ModelProto) -> bytes:
    size = model.ByteSize()
    if size > _LARGEST_FILE:
        raise ExportError(f"the ONNX model has {size} bytes; a file may have {_LARGEST_FILE}")
    return model.SerializeToString()


def onnx_model(
    graph: Graph, *, float16: bool = False, nbits: bool = False, beside: IO[bytes] | None = None
) -> ModelProto:
    """A graph as an ONNX model; see :func:`write_onnx`. Values and nodes keep their names.

    Large weights go to `beside`, where that is given; then nothing is checked yet.
    A layer and the bias_add after it become one ONNX node, called like the layer, as runtimes want it.
    """
    if float16:
        graph = Float16Pass(frozenset(node.name for node in graph.nodes if node.reason))(graph)
    unknown = [node for node in graph.nodes if node.op not in EXPORTERS and not is_op(node, FakeQuantize)]
    if unknown:
        listed = ", ".join(f"{shown(node.name)} ({node.op})" for node in unknown)
        raise ExportError(f"no ONNX form of these nodes: {listed}; export the annotated graph, not the integer one")
    writer = Writer(graph, nbits, beside)
    taken: set[str] = set()
    for node in graph.nodes:
        bias = bias_after(graph, node)
        if bias is not None:
            taken.add(bias.name)
        if is_op(node, FakeQuantize):
            _fake_quantize(writer, node)
        elif node.name not in taken:
            _export(writer, node)
    opsets = [helper.make_opsetid("", OPSET)]
    opsets += [o for o in writer.tail.opset_import if o.domain not in ("", DOMAIN)]
    made = (*writer.nodes, *writer.tail.graph.node)
    opsets += [helper.make_opsetid(DOMAIN, 1)] if any(node.domain == DOMAIN for node in made) else []
    model = helper.make_model(
        writer.finish(),
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="qbench",
        producer_version=_version(),
    )
    if beside is None:
        _check(model)
    return model


def _fake_quantize(writer: Writer, node: Node) -> None:
    """A pair of Q and DQ; nothing where no qparams are bound; constants are stored when they are read."""
    graph, value = writer.graph, node.inputs[0]
    q = graph.qparams.get(node.output)
    if value in graph.constants:
        return
    if q is not None:
        writer.quantized(writer.read(value), node.output, q, str(node.attrs.get("tensor") or value))
    elif node.output in graph.outputs:
        writer.emit("Identity", writer.inputs(node), node.outputs, node.name)
    else:
        writer.redirect(node.output, writer.read(value))


def _export(writer: Writer, node: Node) -> None:
    """One node. Where integers only move about, they are quantized again on the other side, as runtimes expect it.

    So are those that a node in float moves: onnxruntime would do it, and fails where it then makes int8 unsigned
    (https://github.com/microsoft/onnxruntime/issues/25526).
    """
    q = writer.qparams.get(node.inputs[0]) if node.inputs else None
    makes_others = node.reason and is_op(node, Pad, Resize2d)
    if q is None or q.axis is not None or makes_others or rule_of(node) != QuantRule.SAME:
        EXPORTERS[node.op](writer, node)
        return
    raw = tuple(writer.fresh(f"{value}.raw") if value in writer.graph.outputs else value for value in node.outputs)
    writer.types.update((name, writer.types[value]) for name, value in zip(raw, node.outputs, strict=True))
    EXPORTERS[node.op](writer, dataclasses.replace(node, outputs=raw))
    for name, value in zip(raw, node.outputs, strict=True):
        real = value if name != value else writer.fresh(f"{value}.q")
        writer.quantized(name, real, q, value)
        writer.redirect(value, real)
        writer.qparams[value] = q


def _version() -> str:
    try:
        return version("qbench")
    except PackageNotFoundError:
        return "unknown"
