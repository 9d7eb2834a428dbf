"""Op declarations: one class is the single source of an op's name, attributes and meaning."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import pytest

from qbench.errors import GraphError
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Node
from qbench.ir.op import OPS, Array, Op, bind, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType


@dataclass(frozen=True, kw_only=True)
class Scaled(Op):
    name = "test.scaled"
    operands = ("data", "*more")
    factor: float
    mode: str = "plain"

    def infer(self, data: TensorType, *more: TensorType) -> TensorType:
        return data

    def compute(self, data: Array, *more: Array) -> Array:
        return data.sum() * self.factor


@pytest.fixture(autouse=True)
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "test.scaled", Scaled)
    for name in ("test.renamed", "test.more", "test.both"):  # removed again afterwards
        monkeypatch.setitem(OPS, name, Scaled)
        del OPS[name]


def node(*inputs: str, **attrs: object) -> Node:
    return Node("n", "test.scaled", inputs, ("y",), FrozenMap(attrs))  # pyright: ignore[reportArgumentType]


def test_bind_fills_in_attributes_and_qparams() -> None:
    known = {"x": QParams(0.5, 0, "int8"), "y": QParams(1.0, 0, "int8")}
    op = bind(node("x", "z", factor=2.0), known)
    assert op == Scaled(factor=2.0, mode="plain", qin=(known["x"], None), qout=(known["y"],))
    assert list(Scaled.attributes()) == ["factor", "mode"]


def test_results_are_always_tuples_of_arrays() -> None:
    op = bind(node("x", factor=2.0))
    (result,) = op.compute_all((np.float32([1, 2]),))
    assert type(result) is np.ndarray
    assert result == 6
    assert op.infer_all((TensorType((2,), "float32"),)) == (TensorType((2,), "float32"),)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (node(factor=1.0), r"takes \(data, \*more\), not 0 inputs"),
        (node("x"), "test.scaled needs the attribute factor"),
        (node("x", factor="1"), "attribute factor='1'"),
        (node("x", factor=True), "attribute factor=True"),
        (node("x", factor=1.0, qin=()), "has no attribute 'qin'"),
    ],
)
def test_wrong_nodes_are_refused(bad: Node, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        bind(bad)


def test_an_op_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        register(Scaled)


def test_an_op_without_attributes_of_its_own_is_told_from_its_base() -> None:
    @register
    class Renamed(Scaled):
        name = "test.renamed"

    @register
    class More(Renamed):
        name = "test.more"
        bound: int = 3

    op = Renamed(factor=2.0)
    assert op == Renamed(factor=2.0)
    assert hash(op) == hash(Renamed(factor=2.0))
    assert op not in (Scaled(factor=2.0), Renamed(factor=3.0), More(factor=2.0))
    assert repr(op).endswith("Renamed(qin=(), qout=(), factor=2.0, mode='plain')")
    assert replace(op, mode="other") == Renamed(factor=2.0, mode="other")
    assert (list(Renamed.attributes()), list(More.attributes())) == (["factor", "mode"], ["factor", "mode", "bound"])
    with pytest.raises(FrozenInstanceError):
        op.factor = 1.0  # pyright: ignore[reportAttributeAccessIssue]


def test_an_op_of_two_bases_has_the_attributes_of_both() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Bounded(Op):
        bound: int = 3

    @register
    class Both(Scaled, Bounded):
        name = "test.both"

    assert Both(factor=2.0, bound=1) != Both(factor=2.0)
    assert set(Both.attributes()) == {"factor", "mode", "bound"}
