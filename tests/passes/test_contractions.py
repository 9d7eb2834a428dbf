"""Einsums that become products of matrices, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from qbench.passes.canonicalize import CanonicalizePass
from qbench.runtime import interpreter
from qbench.runtime.programs import plan

MATRICES = [
    "bij,bjk->bik",
    "bij,bkj->bik",
    "bji,bjk->bki",
    "ibj,bjk->bik",
    "bij,bjk->kbi",
    "ij,jk->ki",
    "abij,bakj->abik",
]
RESHAPED = ["ij,ijk->k", "ijk,ij->k", "bij,bij->b", "bij,bij->bi", "bijk,bjkl->bil", "bai,ik->bak", "abik,bjk->abij"]
RESHAPED += ["ik,bakl->bail", "i,i->", "i,ik->k", "ai,bi->ab", "bil,abjl->ajbi"]
OTHERS = ["bij,bjk->bk", "bij,ajk->bik", "bij,bij->bij", "bii,bij->bj", "i,j->ij"]
SIZES = {"a": 2, "b": 3, "i": 4, "j": 5, "k": 6, "l": 2}


@pytest.mark.parametrize("equation", [*MATRICES, *RESHAPED, *OTHERS])
def test_an_einsum_that_multiplies_matrices(equation: str) -> None:
    rng = np.random.default_rng(0)
    terms = equation.partition("->")[0].split(",")
    arrays = [rng.normal(size=[SIZES[label] for label in term]).astype("float32") for term in terms]
    feeds = dict(zip("xy", arrays, strict=True))
    types = {name: TensorType(array.shape, "float32") for name, array in feeds.items()}
    node = Node("sum", "einsum", ("x", "y"), ("z",), FrozenMap({"equation": equation}))
    graph = CanonicalizePass()(build("g", types, ("z",), (node,), {}))
    ops = {other.op for other in graph.nodes}
    allowed = {"transpose"} if equation in MATRICES else {"transpose", "reshape"}
    assert ops == {"einsum"} if equation in OTHERS else {"nn.batch_matmul"} <= ops <= {"nn.batch_matmul"} | allowed
    (found,) = interpreter.run(graph, feeds).values()
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)
    program = plan(graph)
    assert bool(program.fallbacks) == (equation in OTHERS)
    np.testing.assert_allclose(program.run(feeds)["z"], found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("equation", ["bijk,ilk->bijl", "bij,jk->bik", "ij,bjk->bik", "bij,ijk->bk", "bij,jkl->bikl"])
def test_samples_stay_apart(equation: str) -> None:
    """An open batch still counts samples where one tensor alone has it."""
    left, right = equation.partition("->")[0].split(",")
    types = {
        name: TensorType(tuple("N" if label == "b" else SIZES[label] for label in term), "float32")
        for name, term in zip("xy", (left, right), strict=True)
    }
    fed, held = ("x", "y") if "b" in left else ("y", "x")
    rng = np.random.default_rng(0)
    weight = rng.normal(size=types[held].shape).astype("float32")
    node = Node("sum", "einsum", ("x", "y"), ("z",), FrozenMap({"equation": equation}))
    graph = CanonicalizePass()(build("g", {fed: types[fed]}, ("z",), (node,), {held: Constant(weight)}))
    data = rng.normal(size=(3, *types[fed].shape[1:])).astype("float32")
    program = plan(graph)
    assert not program.fallbacks
    wanted = np.einsum(equation, *((data, weight) if fed == "x" else (weight, data)))
    np.testing.assert_allclose(program.run({fed: data})["z"], wanted, rtol=1e-5, atol=1e-5)
