"""Ops behind a detector: boxes made from what it says of anchors, and of those that overlap the best one."""

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.rules import FloatOp, fixed, need_equal, need_float, need_rank, require


def best_apart(boxes: Array, scores: Array, most: int, overlap: float, least: float) -> Array:
    """Numbers of boxes, the best first, that overlap none before them: greedy non-maximum suppression.

    Parameters
    ----------
    boxes
        float32[boxes, 4]: two opposite corners.
    scores
        float32[boxes]; of equal ones the first counts as the better.
    most
        How many are wanted.
    overlap
        The largest intersection over union of two.
    least
        Boxes of a lower score are left out.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= least]
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    high = np.maximum(boxes[:, :2], boxes[:, 2:])
    area = np.prod(high - low, axis=1)
    chosen = list[int]()
    while order.size and len(chosen) < most:
        best, order = order[0], order[1:]
        chosen.append(int(best))
        sides = np.minimum(high[best], high[order]) - np.maximum(low[best], low[order])
        common = np.prod(np.maximum(sides, 0), axis=1)
        whole = area[best] + area[order] - common
        ratio = np.divide(common, whole, out=np.zeros_like(common), where=(area[best] > 0) & (area[order] > 0))
        order = order[ratio <= np.float32(overlap)]
    return np.array(chosen, np.int64)


@register
class Detections(FloatOp):
    """TFLite_Detection_PostProcess: offsets from anchors as boxes (y, x, y, x), the best that do not overlap.

    Operands are ``[1, anchors, 4]`` offsets (y, x, height, width), ``[1, anchors, classes]`` scores, of which the
    first columns may be background, and ``[anchors, 4]`` anchors. Results are `most` boxes, their classes, their
    scores, and how many there are; zeros follow. By `regular` each class is a choice of its own; else one choice is
    made by the best class of each box, and each box is given with its best classes.

    Source: detection_postprocess.cc of TensorFlow Lite.
    """

    name = "vision.detections"
    samples = None
    picks = True
    operands = ("data", "scores", "anchors")
    float_reason = "unsupported: boxes that are chosen by their scores stay in float"
    classes: int
    most: int
    overlap: float
    least: float
    scales: tuple[float, ...]
    """Of y, x, height, width."""
    per_box: int = 1
    regular: bool = False
    per_class: int = 100

    def infer(self, data: TensorType, scores: TensorType, anchors: TensorType) -> tuple[TensorType, ...]:
        need_float(self, data, scores, anchors)
        for operand, given, rank in (("data", data, 3), ("scores", scores, 3), ("anchors", anchors, 2)):
            need_rank(self, operand, given, rank)
        need_equal(self, "the number of scores", scores.shape[1], data.shape[1])
        need_equal(self, "the number of anchors", anchors.shape[0], data.shape[1])
        require(data.shape[0] == scores.shape[0] == 1, f"{self.name}: one image at a time, not {data}")
        columns = fixed(self, "the number of scores", scores.shape[2])
        require(0 < self.classes <= columns, f"{self.name}: {self.classes} classes of {columns} scores")
        require(len(self.scales) == 4 and all(self.scales), f"{self.name}: scales={self.scales}")
        fits = self.most >= 1 and self.per_class >= 1 and self.per_box >= 1
        require(fits, f"{self.name}: most={self.most}, per_class={self.per_class}, per_box={self.per_box}")
        rows = self.most if self.regular else self.most * self.per_box
        kinds = ((1, rows, 4), (1, rows), (1, rows), (1,))
        return tuple(TensorType(shape, data.dtype) for shape in kinds)

    def compute(self, data: Array, scores: Array, anchors: Array) -> tuple[Array, ...]:
        boxes, scores = self._boxes(data[0], anchors), scores[0, :, scores.shape[2] - self.classes :]
        found, kinds = self._by_class(boxes, scores) if self.regular else self._by_box(boxes, scores)
        rows, count = self.most if self.regular else self.most * self.per_box, len(found)
        results = np.zeros((rows, 4), np.float32), np.zeros(rows, np.float32), np.zeros(rows, np.float32)
        for result, values in zip(results, (boxes[found], kinds, scores[found, kinds]), strict=True):
            result[:count] = values
        detected = count if self.regular else count // min(self.per_box, self.classes)
        return *(result[None] for result in results), np.array([detected], np.float32)

    def _boxes(self, data: Array, anchors: Array) -> Array:
        scales, half = np.asarray(self.scales, np.float32), np.float32(0.5)
        centre = data[:, :2] / scales[:2] * anchors[:, 2:] + anchors[:, :2]
        size = half * np.exp(data[:, 2:4] / scales[2:]) * anchors[:, 2:]
        return np.concatenate([centre - size, centre + size], 1)

    def _by_box(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        few = min(self.per_box, self.classes)
        kinds = np.argsort(-scores, axis=1, kind="stable")[:, :few]
        found = best_apart(boxes, scores.max(axis=1), self.most, self.overlap, self.least)
        return np.repeat(found, few), kinds[found].ravel()

    def _by_class(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        each = [best_apart(boxes, column, self.per_class, self.overlap, self.least) for column in scores.T]
        found, kinds = np.concatenate(each), np.repeat(np.arange(self.classes), [len(some) for some in each])
        best = np.argsort(-scores[found, kinds], kind="stable")[: self.most]
        return found[best], kinds[best]
