"""Boxes that are chosen by their scores, in ONNX's own ops."""

import numpy as np

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.dtypes import DType
from qbench.ir.graph import Node
from qbench.ops.float.detection import Detections

_END = 2**31 - 1


@exporter("vision.detections")
def detections(writer: Writer, node: Node) -> None:
    """NonMaxSuppression says which; rows of zeros fill up what it leaves."""
    op, (data, scores, anchors) = writer.op(node, Detections), writer.inputs(node)

    def number(what: str, *values: float, dtype: DType = "float32") -> str:
        return writer.constant(node, what, np.asarray(values), dtype)

    def whole(what: str, *values: int) -> str:
        return number(what, *values, dtype="int64")

    def part(x: str, axis: int, start: int, stop: int) -> str:
        bounds = (whole(what, value) for what, value in (("start", start), ("stop", stop), ("axis", axis)))
        return writer.step(node, "Slice", [x, *bounds])

    def filled(x: str, output: str, *inner: int) -> None:
        """As many rows as the result has."""
        rows = op.most if op.regular else op.most * op.per_box
        zeros = writer.constant(node, "zeros", np.zeros((1, rows, *inner)), "float32")
        ends = whole("start", 0), whole("rows", rows), whole("axis", 1)
        longer = writer.step(node, "Concat", [x, zeros], axis=1)
        writer.emit("Slice", [longer, *ends], [output], f"{node.name}.{output}")

    size, middle = part(anchors, 1, 2, 4), part(anchors, 1, 0, 2)
    shift = writer.step(node, "Div", [part(data, 2, 0, 2), number("scales.centre", *op.scales[:2])])
    growth = writer.step(node, "Div", [part(data, 2, 2, 4), number("scales.size", *op.scales[2:])])
    centre = writer.step(node, "Add", [writer.step(node, "Mul", [shift, size]), middle])
    grown = writer.step(node, "Mul", [writer.step(node, "Exp", [growth]), writer.number(node, "half", 0.5)])
    half = writer.step(node, "Mul", [grown, size])
    ends = [writer.step(node, "Sub", [centre, half]), writer.step(node, "Add", [centre, half])]
    boxes = writer.step(node, "Concat", ends, axis=2)
    each = writer.step(node, "Transpose", [part(scores, 2, -op.classes, _END)], perm=(0, 2, 1))
    judged = each if op.regular else writer.step(node, "ReduceMax", [each, whole("axis", 1)], keepdims=1)
    least = np.nextafter(np.float32(op.least), np.float32(-np.inf))  # ONNX wants more than it, TFLite as much
    limits = (
        whole("chosen", op.per_class if op.regular else op.most),
        number("overlap", op.overlap),
        number("least", least),
    )
    found = writer.step(node, "NonMaxSuppression", [boxes, judged, *limits])  # image, class, box
    box = writer.step(node, "Squeeze", [part(found, 1, 2, 3), whole("axis", 1)])
    if op.regular:
        plain = writer.step(node, "Squeeze", [each, whole("axis", 0)])
        every = writer.step(node, "GatherND", [plain, part(found, 1, 1, 3)])
        count = writer.step(node, "Min", [writer.step(node, "Shape", [every]), whole("most", op.most)])
        certain, order = f"{node.outputs[2]}.sorted", f"{node.outputs[2]}.order"
        writer.emit("TopK", [every, count], [certain, order], f"{node.name}.TopK", axis=0)
        box = writer.step(node, "Gather", [box, order], axis=0)
        kinds = writer.step(node, "Squeeze", [part(found, 1, 1, 2), whole("axis", 1)])
        kind = writer.step(node, "Gather", [kinds, order])
    else:
        few = min(op.per_box, op.classes)
        certain, kind = f"{node.outputs[2]}.sorted", f"{node.outputs[2]}.order"
        rows = writer.step(node, "Gather", [each, box], axis=2)
        turned = writer.step(node, "Transpose", [rows], perm=(0, 2, 1))
        writer.emit("TopK", [turned, whole("few", few)], [certain, kind], f"{node.name}.TopK", axis=2)
        count = writer.step(node, "Shape", [box])
        column = writer.step(node, "Unsqueeze", [box, whole("axis", 1)])
        repeated = writer.step(node, "Tile", [column, whole("per box", 1, few)])
        box = writer.step(node, "Reshape", [repeated, whole("all", -1)])
    filled(writer.step(node, "Gather", [boxes, box], axis=1), node.outputs[0], 4)
    row = whole("row", 1, -1)
    kinds = writer.step(node, "Cast", [kind], to=1)
    for values, output in ((kinds, node.outputs[1]), (certain, node.outputs[2])):
        filled(writer.step(node, "Reshape", [values, row]), output)
    writer.emit("Cast", [count], [node.outputs[3]], f"{node.name}.count", to=1)
