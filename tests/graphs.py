"""Graphs of a few nodes, made for arrays that are at hand."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from qbench.ir.build import build
from qbench.ir.dtypes import dtype_of
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType

Array = np.ndarray[Any, Any]


def graph_of(
    feeds: Mapping[str, Array],
    nodes: Iterable[Node],
    output: str,
    qparams: Mapping[str, QParams] | None = None,
    **constants: Array,
) -> Graph:
    """The graph of these nodes, whose inputs have the types of what it will be fed."""
    inputs = {name: TensorType(array.shape, dtype_of(array.dtype)) for name, array in feeds.items()}
    held = {name: Constant(array) for name, array in constants.items()}
    return build("test", inputs, (output,), nodes, held, qparams)


def masked_softmax(shape: tuple[int, ...]) -> Graph:
    """Attention's softmax as PyTorch exports it: of each matrix the second row is masked altogether, and made zeros."""
    mask = np.zeros(shape[-2:], np.float32)
    mask[1] = mask[0, 0] = -np.inf
    nodes = [
        Node("masked", "add", ("x", "mask"), ("masked",)),
        Node("softmax", "nn.softmax", ("masked",), ("softmax",)),
        Node("nan", "is_nan", ("softmax",), ("nan",)),
        Node("where", "where", ("nan", "zero", "softmax"), ("y",)),
    ]
    constants = {"mask": Constant(mask), "zero": Constant(np.zeros((1,), np.float32))}
    return build("masked", {"x": TensorType(shape, "float32")}, ["y"], nodes, constants)
