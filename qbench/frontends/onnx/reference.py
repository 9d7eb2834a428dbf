"""ONNX's reference evaluator; a module of its own, since it takes long to import and few models have use for it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from qbench.frontends.onnx.source import Array


def evaluated(model: ModelProto, feeds: Mapping[str, Array]) -> list[Any]:
    """The outputs of a model; whatever NumPy raises for a malformed node."""
    evaluator: Any = ReferenceEvaluator(model, new_ops=[GatherElements])
    return evaluator.run(None, feeds)


class GatherElements(OpRun):
    """In place of the evaluator's own, which takes no more than 63 elements along the axis."""

    op_domain = ""

    def _run(self, data: Array, indices: Array, axis: int | None = None) -> tuple[Array]:  # pyright: ignore[reportIncompatibleMethodOverride] as all of the evaluator's ops
        along = (axis or 0) % data.ndim
        inner = tuple(slice(None if i == along else size) for i, size in enumerate(indices.shape))
        return (np.take_along_axis(data[inner], indices, along),)
