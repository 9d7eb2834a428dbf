"""Padding that a mask hides is no data."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.errors import DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import Dim, TensorType
from qbench.session.session import Session

IDS = np.array([[3, 1, 2, 0, 0], [2, 2, 0, 0, 0], [1, 3, 3, 1, 2]])
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
TABLE = np.concatenate([np.full((1, 4), 1e6), np.random.default_rng(0).normal(size=(3, 4))]).astype(np.float32)
"""What stands for padding would spoil every range."""


def encoder(length: Dim = "T", name: str = "attention_mask") -> Graph:
    inputs = {"ids": TensorType(("B", length), "int64"), name: TensorType(("B", length), "int64")}
    weight = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)
    nodes = [
        Node("embed", "take", ("table", "ids"), ("embed",), FrozenMap({"axis": 0})),
        Node("fc", "nn.dense", ("embed", "w"), ("fc",)),
        Node("shows", "cast", (name,), ("shows",), FrozenMap({"dtype": "float32"})),
        Node("column", "expand_dims", ("shows",), ("column",), FrozenMap({"axes": (2,)})),
        Node("y", "multiply", ("fc", "column"), ("y",)),
    ]
    return build("encoder", inputs, ("y",), nodes, {"table": Constant(TABLE), "w": Constant(weight)})


def test_padded_sequences_are_those_without_padding() -> None:
    padded = Dataset(encoder(), {"ids": IDS, "attention_mask": MASK})
    lengths = MASK.sum(axis=1)
    cut = [{"ids": IDS[i : i + 1, :n], "attention_mask": MASK[i : i + 1, :n]} for i, n in enumerate(lengths)]
    assert padded.digest == Dataset(encoder(), cut).digest
    assert [piece["ids"].shape[1] for piece in padded.pieces_in_order()] == [3, 2, 5]


def test_neither_ranges_nor_errors_know_padding() -> None:
    session = Session(encoder(), {"ids": IDS, "attention_mask": MASK})
    report = session.run(progress=False)
    assert session.statistics["fc"].max < 100
    assert (report.output.sqnr_db or 0) > 25


@pytest.mark.parametrize("case", ["fixed length", "other name", "in front"])
def test_what_cannot_be_cut_stays(case: str) -> None:
    name = "shown" if case == "other name" else "attention_mask"
    graph = encoder(5 if case == "fixed length" else "T", name)
    mask = MASK[:, ::-1].copy() if case == "in front" else MASK
    pieces = Dataset(graph, {"ids": IDS, name: mask}).pieces_in_order()
    assert [piece["ids"].shape[1] for piece in pieces] == [5, 5, 5]


def test_a_mask_that_hides_all_is_told() -> None:
    hidden = MASK * [[1], [0], [1]]
    with pytest.raises(DataError, match="sample 1: input 'attention_mask' is 0 at every position"):
        Dataset(encoder(), {"ids": IDS, "attention_mask": hidden})
