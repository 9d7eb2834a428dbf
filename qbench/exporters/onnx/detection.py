"""Boxes that are chosen by their scores, in ONNX's own ops."""

from collections.abc import Sequence

import numpy as np

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.dtypes import DType
from qbench.ir.graph import Node
from qbench.ops.float.detection import Detections

_END = 2**31 - 1


@exporter("vision.detections")
def detections(writer: Writer, node: Node) -> None:
    """NonMaxSuppression says which; rows of zeros fill up what it leaves."""
    _Boxes(writer, node).write()


class _Boxes:
    def __init__(self, writer: Writer, node: Node) -> None:
        self._writer, self._node = writer, node
        self._op = writer.op(node, Detections)
        self._sorted, self._order = f"{node.outputs[2]}.sorted", f"{node.outputs[2]}.order"

    def write(self) -> None:
        """What is found, its classes, its scores and how many they are."""
        op, (data, scores, anchors) = self._op, self._writer.inputs(self._node)
        boxes = self._corners(data, anchors)
        each = self._step("Transpose", [self._part(scores, 2, -op.classes, _END)], perm=(0, 2, 1))
        judged = each if op.regular else self._step("ReduceMax", [each, self._whole("axis", 1)], keepdims=1)
        found = self._step("NonMaxSuppression", [boxes, judged, *self._limits()])  # image, class, box
        box = self._step("Squeeze", [self._part(found, 1, 2, 3), self._whole("axis", 1)])
        box, kind, count = (self._by_class if op.regular else self._by_box)(each, found, box)
        wanted, kinds, chances, number = self._node.outputs
        self._fill(self._step("Gather", [boxes, box], axis=1), wanted, 4)
        row = self._whole("row", 1, -1)
        for values, output in ((self._step("Cast", [kind], to=1), kinds), (self._sorted, chances)):
            self._fill(self._step("Reshape", [values, row]), output)
        self._emit("Cast", [count], [number], "count", to=1)

    def _corners(self, data: str, anchors: str) -> str:
        """The boxes: top, left, bottom and right, from how they differ from their anchors."""
        scales = self._op.scales
        size, middle = self._part(anchors, 1, 2, 4), self._part(anchors, 1, 0, 2)
        shift = self._step("Div", [self._part(data, 2, 0, 2), self._number("scales.centre", *scales[:2])])
        growth = self._step("Div", [self._part(data, 2, 2, 4), self._number("scales.size", *scales[2:])])
        centre = self._step("Add", [self._step("Mul", [shift, size]), middle])
        half_of = self._writer.number(self._node, "half", 0.5)
        grown = self._step("Mul", [self._step("Exp", [growth]), half_of])
        half = self._step("Mul", [grown, size])
        ends = [self._step("Sub", [centre, half]), self._step("Add", [centre, half])]
        return self._step("Concat", ends, axis=2)

    def _limits(self) -> tuple[str, str, str]:
        """How many of a class at most, how much they may overlap, and how certain they must be."""
        op = self._op
        least = np.nextafter(np.float32(op.least), np.float32(-np.inf))  # ONNX wants more than it, TFLite as much
        return (
            self._whole("chosen", op.per_class if op.regular else op.most),
            self._number("overlap", op.overlap),
            self._number("least", least),
        )

    def _by_class(self, each: str, found: str, box: str) -> tuple[str, str, str]:
        """Boxes found class by class: the most certain of all; which they are, their classes and their number."""
        plain = self._step("Squeeze", [each, self._whole("axis", 0)])
        every = self._step("GatherND", [plain, self._part(found, 1, 1, 3)])
        count = self._step("Min", [self._step("Shape", [every]), self._whole("most", self._op.most)])
        self._emit("TopK", [every, count], [self._sorted, self._order], "TopK", axis=0)
        box = self._step("Gather", [box, self._order], axis=0)
        kinds = self._step("Squeeze", [self._part(found, 1, 1, 2), self._whole("axis", 1)])
        return box, self._step("Gather", [kinds, self._order]), count

    def _by_box(self, each: str, found: str, box: str) -> tuple[str, str, str]:
        """Boxes found by their best class: each with a few of its classes."""
        few = min(self._op.per_box, self._op.classes)
        rows = self._step("Gather", [each, box], axis=2)
        turned = self._step("Transpose", [rows], perm=(0, 2, 1))
        self._emit("TopK", [turned, self._whole("few", few)], [self._sorted, self._order], "TopK", axis=2)
        count = self._step("Shape", [box])
        column = self._step("Unsqueeze", [box, self._whole("axis", 1)])
        repeated = self._step("Tile", [column, self._whole("per box", 1, few)])
        return self._step("Reshape", [repeated, self._whole("all", -1)]), self._order, count

    def _fill(self, x: str, output: str, *inner: int) -> None:
        """As many rows as the result has."""
        rows = self._op.most if self._op.regular else self._op.most * self._op.per_box
        zeros = self._writer.constant(self._node, "zeros", np.zeros((1, rows, *inner)), "float32")
        ends = self._whole("start", 0), self._whole("rows", rows), self._whole("axis", 1)
        longer = self._step("Concat", [x, zeros], axis=1)
        self._emit("Slice", [longer, *ends], [output], output)

    def _part(self, x: str, axis: int, start: int, stop: int) -> str:
        bounds = (self._whole(what, value) for what, value in (("start", start), ("stop", stop), ("axis", axis)))
        return self._step("Slice", [x, *bounds])

    def _number(self, what: str, *values: float, dtype: DType = "float32") -> str:
        return self._writer.constant(self._node, what, np.asarray(values), dtype)

    def _whole(self, what: str, *values: int) -> str:
        return self._number(what, *values, dtype="int64")

    def _step(self, op: str, inputs: Sequence[str], **attrs: object) -> str:
        return self._writer.step(self._node, op, inputs, **attrs)

    def _emit(self, op: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attrs: object) -> None:
        self._writer.emit(op, inputs, outputs, f"{self._node.name}.{name}", **attrs)
