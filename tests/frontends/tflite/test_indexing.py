"""Operators that compare, choose, count and pick by index, each alone in a file, against LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tflite import TensorType

from tests.frontends.tflite.checking import check, save
from tests.frontends.tflite.test_float_ops import Fixed, ints, one_op, reals
from tests.tflite_files import Tensor, constant, model, operator

IMAGE = reals(2, 3, 4, 5)
WHOLE = np.round(IMAGE).astype(np.int32)
CASES: dict[str, tuple[str, list[Any], str, dict[str, Any]]] = {
    "equal": ("EQUAL", [WHOLE, WHOLE[:1]], "bool", {}),
    "not equal": ("NOT_EQUAL", [WHOLE, WHOLE[:, :1]], "bool", {}),
    "greater": ("GREATER", [IMAGE, reals(5, seed=1)], "bool", {}),
    "greater or equal": ("GREATER_EQUAL", [WHOLE, WHOLE[..., :1]], "bool", {}),
    "less": ("LESS", [IMAGE[0], reals(3, 4, 5, seed=1)], "bool", {}),
    "less or equal": ("LESS_EQUAL", [IMAGE, Fixed(0.5)], "bool", {}),
    "and": ("LOGICAL_AND", [IMAGE > 0, IMAGE < 1], "bool", {}),
    "or": ("LOGICAL_OR", [IMAGE > 1, IMAGE[0] < -1], "bool", {}),
    "not": ("LOGICAL_NOT", [IMAGE > 0], "bool", {}),
    "select": ("SELECT", [np.array([True, False]), IMAGE, -IMAGE], "float32", {}),
    "select by element": ("SELECT_V2", [IMAGE > 0, IMAGE, reals(5, seed=1)], "float32", {}),
    "argmax": ("ARG_MAX", [IMAGE, ints([-1])], "int32", {"output_type": TensorType.INT32}),
    "argmin": ("ARG_MIN", [IMAGE, ints([1])], "int64", {"output_type": TensorType.INT64}),
    "gather": ("GATHER_ND", [IMAGE, ints([[0, 2], [1, 0]])], "float32", {}),
    "scatter": ("SCATTER_ND", [ints([[1], [0], [1]]), reals(3, 4), ints([3, 4])], "float32", {}),
    "sums": ("CUMSUM", [IMAGE, ints([2])], "float32", {"exclusive": True}),
    "sums from behind": ("CUMSUM", [reals(3, 4), ints([-1])], "float32", {"reverse": True}),
    "one hot": ("ONE_HOT", [WHOLE[0, 0], ints([4]), Fixed([2.0]), Fixed([-1.0])], "float32", {"axis": -1}),
    "backwards": ("REVERSE_V2", [IMAGE, ints([2])], "float32", {}),
    "filled": ("FILL", [ints([2, 3]), reals()], "float32", {}),
    "zeros": ("ZEROS_LIKE", [IMAGE], "float32", {}),
    "several": ("ADD_N", [IMAGE, IMAGE + 1, IMAGE * 2], "float32", {}),
    "floors": ("FLOOR_DIV", [WHOLE, ints([3])], "int32", {}),
    "floored": ("FLOOR_DIV", [IMAGE, reals(5, low=0.5)], "float32", {}),
    "modulo": ("FLOOR_MOD", [WHOLE, ints([3])], "int32", {}),
    "to batches": ("SPACE_TO_BATCH_ND", [reals(2, 3, 4, 3), ints([2, 2]), ints([[1, 0], [0, 2]])], "float32", {}),
    "from batches": ("BATCH_TO_SPACE_ND", [reals(8, 2, 3, 3), ints([2, 2]), ints([[1, 0], [0, 2]])], "float32", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(tmp_path: Path, name: str) -> None:
    op, operands, dtype, options = CASES[name]
    one_op(tmp_path, op, *operands, dtype=dtype, **options)


def test_topk(tmp_path: Path) -> None:
    tensors = [Tensor("x", (2, 7)), constant("k", np.array([3], np.int32))]
    tensors += [Tensor("y", (2, 3)), Tensor("at", (2, 3), "int32")]
    data = model(tensors, [operator("TOPK_V2", ["x", "k"], ["y", "at"])], ["x"], ["y", "at"])
    check(save(data, tmp_path), {"x": reals(2, 7)})


def test_constants_that_fold(tmp_path: Path) -> None:
    tensors = [Tensor("x", (2, 4))]
    tensors += [constant(name, np.array(n, np.int32)) for name, n in (("start", 0), ("stop", 8), ("step", 2))]
    tensors += [Tensor("counts", (4,), "int32"), Tensor("real", (4,)), Tensor("y", (2, 4))]
    operators = [
        operator("RANGE", ["start", "stop", "step"], ["counts"]),
        operator("CAST", ["counts"], ["real"]),
        operator("ADD", ["x", "real"], ["y"]),
    ]
    graph = check(save(model(tensors, operators), tmp_path), {"x": reals(2, 4)})
    assert [node.op for node in graph.nodes] == ["add"]


def test_infinity_as_a_bound_is_data(tmp_path: Path) -> None:
    one_op(tmp_path, "MINIMUM", IMAGE, Fixed(np.inf))
