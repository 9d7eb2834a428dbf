"""Lists of tensors, as exporters write them, give onnxruntime's outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.frontends.models import check, model, node, random, save

SIZES = {"each": None, "equal": np.int64(2), "given": np.array([1, 3, 1])}


@pytest.mark.parametrize("kind", SIZES)
def test_a_split_and_one_of_its_parts(tmp_path: Path, kind: str) -> None:
    constants = {"one": np.int64(1), "last": np.int64(-1)}
    sizes = SIZES[kind]
    if sizes is not None:
        constants["sizes"] = sizes
    keep = {"keepdims": 0} if sizes is None else {}
    nodes = [
        node("SplitToSequence", ["x", *(["sizes"] if sizes is not None else [])], ["parts"], axis=1, **keep),
        node("SequenceAt", ["parts", "one"], ["a"]),
        node("SequenceAt", ["parts", "last"], ["y2"]),
        node("Exp", ["a"], ["y"]),
    ]
    check(save(model(nodes, {"x": ["N", 5, 3]}, ["y", "y2"], constants), tmp_path), {"x": random(2, 5, 3)})


@pytest.mark.parametrize("new", [0, 1])
def test_a_list_that_is_joined(tmp_path: Path, new: int) -> None:
    nodes = [
        node("SequenceConstruct", ["x", "h"], ["two"]),
        node("SequenceInsert", ["two", "x", "zero"], ["three"]),
        node("ConcatFromSequence", ["three"], ["y"], axis=-1, new_axis=new),
    ]
    nodes.insert(0, node("Exp", ["x"], ["h"]))
    proto = model(nodes, {"x": ["N", 3]}, constants={"zero": np.int64(0)})
    check(save(proto, tmp_path), {"x": random(2, 3)})
