"""Run one op of ours, and one of ONNX's in onnxruntime, on the same arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import qbench.ops  # noqa: F401
from qbench.ir.dtypes import dtype_of
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Node
from qbench.ir.op import Op, bind
from qbench.ir.types import Dim, TensorType


def bound(op: str, count: int, **attrs: Any) -> Op:
    return bind(Node("node", op, tuple(f"x{i}" for i in range(count)), ("y",), FrozenMap(attrs)))


def infer(op: str, *shapes: tuple[Dim, ...], dtype: str = "float32", **attrs: Any) -> tuple[TensorType, ...]:
    return bound(op, len(shapes), **attrs).infer_all(tuple(TensorType(shape, dtype) for shape in shapes))


def evaluate(op: str, *arrays: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    """The results of an op, which must have the types that the op infers."""
    arrays = tuple(map(np.asarray, arrays))
    declared = bound(op, len(arrays), **attrs)
    before = [array.copy() for array in arrays]
    results = declared.compute_all(arrays)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy, err_msg=f"{op} changed its operand")
    inferred = declared.infer_all(tuple(TensorType(array.shape, dtype_of(array.dtype)) for array in arrays))
    actual = tuple(TensorType(result.shape, dtype_of(result.dtype)) for result in results)
    assert inferred == actual, f"{op} infers {inferred} but gives {actual}"
    return results


def one(op: str, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
    (result,) = evaluate(op, *arrays, **attrs)
    return result


def onnx_model(op_type: str, arrays: list[np.ndarray | None], outputs: int, opset: int, attrs: dict[str, Any]) -> Any:
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, **attrs)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
        if array is not None
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
    graph = helper.make_graph([node], "one", inputs, values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def onnx_run(
    op_type: str, *arrays: np.ndarray | None, outputs: int = 1, opset: int = 17, reference: bool = False, **attrs: Any
) -> Any:
    """The results of an ONNX op by onnxruntime, or by ONNX's own reference; one array, or a list of several."""
    model = onnx_model(op_type, list(arrays), outputs, opset, attrs)
    feeds = {f"x{i}": np.asarray(array) for i, array in enumerate(arrays) if array is not None}
    if reference:
        results = ReferenceEvaluator(model).run(None, feeds)
    else:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(None, feeds)
    return results[0] if outputs == 1 else results


def draw(shape: tuple[int, ...], seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Normal numbers that depend on shape and seed only."""
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(dtype)
