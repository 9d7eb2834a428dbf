"""Ops that move or select elements do so with integers; dequantize comes after them."""

from __future__ import annotations

import numpy as np

from qbench.ir.graph import Attr, Node
from qbench.ir.op import OPS
from qbench.ir.qparams import QParams
from qbench.passes.qdq_to_qnn.work import Float, Work
from qbench.quant.arithmetic import dequantize, quantize

__all__ = ["MOVES", "argument", "move"]

MOVES = (
    "broadcast_to", "expand_dims", "image.resize2d", "max", "min", "nn.batch_flatten", "nn.depth_to_space",
    "nn.global_max_pool2d", "nn.max_pool2d", "nn.pad", "nn.space_to_depth", "reshape", "split", "squeeze",
    "strided_slice", "take", "tile", "transpose",
)  # fmt: skip


def move(work: Work, head: Node) -> None:
    """The op on integers. Outputs that are quantized with the same qparams are that; others are dequantized."""
    data, q = work.per_tensor(head.inputs[0])
    op, attrs = _on_integers(work, head, q)
    targets: dict[str, tuple[Node, ...]] = {}
    for output in head.outputs:
        readers = work.rw.consumers(output) if output not in work.rw.outputs else ()
        targets[output] = tuple(
            reader for reader in readers if reader.op == "qnn.quantize" and work.rw.qparams[reader.output] == q
        )
    work.begin(head, *(target for found in targets.values() for target in found[:1]))
    names = tuple(found[0].output if found else work.value(f"{output}.quantized") for output, found in targets.items())
    work.emit_many(op, (data, *head.inputs[1:]), names, q, attrs=attrs, name=head.name)
    for output, integers in zip(head.outputs, names, strict=True):
        readers = work.rw.consumers(output)
        if output in work.rw.outputs or any(reader not in targets[output][:1] for reader in readers):
            work.emit("qnn.dequantize", (integers,), output, None)
    work.finish()


def _on_integers(work: Work, head: Node, q: QParams) -> tuple[str, dict[str, Attr]]:
    attrs: dict[str, Attr] = dict(head.attrs)
    if head.op == "image.resize2d" and attrs.get("method", "nearest") != "nearest":
        known = all(isinstance(size, int) for size in work.rw.types[head.inputs[0]].shape[2:])
        if attrs["method"] != "linear" or work.semantics == "onnx" or not known:
            raise Float(f"unsupported: {attrs['method']} interpolation has no integer form in {work.semantics}")
        return "qnn.resize_linear", {
            key: value for key, value in attrs.items() if key in OPS["qnn.resize_linear"].attributes()
        }
    if head.op == "nn.pad" and attrs.get("mode", "constant") == "constant":
        fill = np.asarray([getattr(work.rw.op(head), "pad_value", 0.0)], np.float32)
        if not np.isfinite(fill).all():
            raise Float("unsupported: it pads with infinity")
        integer = quantize(fill, q)
        if not work.quantizes(head.output) and dequantize(integer, q) != fill:
            raise Float(f"unsupported: no integer stands for the {fill[0]:g} that it pads with")
        attrs["pad_value"] = float(integer[0])
    return head.op, attrs


def argument(work: Work, head: Node) -> None:
    """argmax and argmin: the order of integers is that of the real numbers."""
    data, _ = work.per_tensor(head.inputs[0])
    work.begin(head)
    work.emit(head.op, (data,), head.output, None, attrs=head.attrs, name=head.name)
    work.finish()
