"""Einsums that become products of matrices, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from qbench.passes.canonicalize import CanonicalizePass
from qbench.runtime import interpreter

MATRICES = [
    "bij,bjk->bik",
    "bij,bkj->bik",
    "bji,bjk->bki",
    "ibj,bjk->bik",
    "bij,bjk->kbi",
    "ij,jk->ki",
    "abij,bakj->abik",
]
OTHERS = ["bij,bjk->bk", "bij,ajk->bik", "bij,bij->bi", "bij,bij->bij", "bii,bij->bj", "bijk,bjkl->bil"]
SIZES = {"a": 2, "b": 3, "i": 4, "j": 5, "k": 6, "l": 2}


@pytest.mark.parametrize("equation", [*MATRICES, *OTHERS])
def test_an_einsum_that_multiplies_matrices(equation: str) -> None:
    rng = np.random.default_rng(0)
    terms = equation.partition("->")[0].split(",")
    arrays = [rng.normal(size=[SIZES[label] for label in term]).astype("float32") for term in terms]
    feeds = dict(zip("xy", arrays, strict=True))
    types = {name: TensorType(array.shape, "float32") for name, array in feeds.items()}
    node = Node("sum", "einsum", ("x", "y"), ("z",), FrozenMap({"equation": equation}))
    graph = CanonicalizePass()(build("g", types, ("z",), (node,), {}))
    ops = {other.op for other in graph.nodes}
    assert ops <= {"nn.batch_matmul", "transpose"} if equation in MATRICES else ops == {"einsum"}
    (found,) = interpreter.run(graph, feeds).values()
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)
