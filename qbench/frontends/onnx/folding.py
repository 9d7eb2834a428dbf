"""Evaluating nodes while a model is imported: on constants, and on sizes known only at run time."""

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np
from onnx import TensorProto, defs, helper

from qbench.errors import GraphError, ModelError
from qbench.frontends.growth import MAX_ELEMENTS
from qbench.frontends.onnx.source import Array, SourceNode
from qbench.frontends.sizes import Unresolved, ceil, equal, floor, greater, ticketed
from qbench.ir.sizes import Size

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_NO_TENSORS = frozenset({"If", "Loop", "Scan", "SequenceMap", "Optional", "StringNormalizer", "ImageDecoder"})


def can_fold(node: SourceNode) -> bool:
    """Whether the node is a standard op whose result follows from its inputs alone."""
    known = not node.domain and defs.has(node.op, node.opset, "")
    return known and node.op not in _RANDOM | _NO_TENSORS and "Sequence" not in node.op


def fold_constants(node: SourceNode, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """The outputs of a node whose inputs are all constants, by ONNX's reference evaluator.

    Raises
    ------
    ModelError
        The node cannot be evaluated, or would make an enormous tensor.
    """
    if node.op == "Constant":
        return (_constant(node),)
    if node.op == "Identity" and arrays[0] is not None:
        return (arrays[0],)  # no copy: exporters name a shared weight anew for each reader
    if _grows_to(node, arrays) > MAX_ELEMENTS:
        raise ModelError(f"node {node} makes a constant of more than {MAX_ELEMENTS} elements")
    from qbench.frontends.onnx.reference import evaluated  # takes long to import

    feeds = {f"i{k}": array for k, array in enumerate(arrays) if array is not None}
    proto = helper.make_node(
        node.op,
        ["" if array is None else f"i{k}" for k, array in enumerate(arrays)],
        [f"o{k}" if output else "" for k, output in enumerate(node.outputs)],
    )
    proto.attribute.extend(node.proto.attribute)
    inputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in feeds]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in proto.output if name]
    graph = helper.make_graph([proto], "fold", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", node.opset)])
    try:
        with np.errstate(all="ignore"):
            results = evaluated(model, feeds)
    except Exception as error:  # the evaluator raises whatever NumPy raises for a malformed node
        raise ModelError(f"node {node} cannot be evaluated on its constant inputs: {error}") from error
    made = iter(results)
    return tuple(np.asarray(next(made)) if output else np.empty(0) for output in node.outputs)


def _constant(node: SourceNode) -> Array:
    for name, value in node.attrs.items():
        array = node.array(name) if name == "value" else None
        if array is not None:
            return array
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
    raise ModelError(f"node {node} holds no numbers")


def _grows_to(node: SourceNode, arrays: Sequence[Array | None]) -> float:
    """Elements of the result, for the ops whose result can be far larger than their inputs."""
    first, *rest = [array for array in arrays if array is not None] or [np.empty(0)]
    try:
        if node.op in ("ConstantOfShape", "Expand", "Reshape"):
            shape = rest[0] if rest else first
            return math.prod(max(int(size), 1) for size in shape.ravel())
        if node.op == "Tile":
            return first.size * math.prod(max(int(n), 1) for n in rest[0].ravel())
        if node.op == "Range":
            start, limit, delta = (float(array.item()) for array in (first, *rest))
            return abs(limit - start) / abs(delta)
        if node.op == "Pad":
            pads = node.integers("pads") or tuple(map(int, rest[0].ravel()))
            return math.prod(size + sum(map(abs, pads)) for size in first.shape)
        if node.op in ("Resize", "Upsample"):
            sizes = arrays[3] if len(arrays) > 3 else None
            factors = arrays[min(len(arrays) - 1, 1 if node.op == "Upsample" or node.opset == 10 else 2)]
            if sizes is not None and sizes.size:
                return math.prod(max(int(size), 1) for size in sizes) * (first.size if node.integers("axes") else 1)
            return first.size * math.prod(
                max(float(factor), 1.0) for factor in (factors if factors is not None else ())
            )
        if node.op in ("OneHot", "EyeLike", "CenterCropPad", "Unique"):
            return first.size * max(float(np.abs(array.astype(np.float64)).max(initial=1)) for array in rest or [first])
    except (ArithmeticError, TypeError, ValueError, IndexError):
        return 0  # malformed: the evaluator says what is wrong
    return 0


_MOVES: dict[str, Callable[[int], bool]] = {
    # Ops that only move elements, and which of their inputs hold the elements.
    **dict.fromkeys(("Concat",), lambda index: True),
    **dict.fromkeys(("Where",), lambda index: index > 0),
    **dict.fromkeys(("ScatterElements", "ScatterND"), lambda index: index != 1),
    **dict.fromkeys(
        (
            "Expand",
            "Flatten",
            "Gather",
            "Reshape",
            "Slice",
            "Split",
            "Squeeze",
            "Tile",
            "Transpose",
            "Unsqueeze",
        ),
        lambda index: index == 0,
    ),
}


def _divided(left: Any, right: Any) -> Any:
    return left // right


def _exactly_divided(left: Any, right: Any) -> Any:
    return _exact(left) / _exact(right)


def _exact(element: Any) -> Any:
    return element if isinstance(element, Size) else Fraction(element)


def _less(left: Any, right: Any) -> bool:
    return greater(right, left)


def _not_greater(left: Any, right: Any) -> bool:
    return greater(right, left, by=0)


def _larger(left: Any, right: Any) -> Any:
    return left if greater(left, right, by=0) else right


def _smaller(left: Any, right: Any) -> Any:
    return right if greater(left, right, by=0) else left


_COMPUTES: dict[str, tuple[Callable[..., Any], int]] = {
    "Abs": (abs, 1),
    "Add": (operator.add, 2),
    "Ceil": (ceil, 1),
    "Div": (_divided, 2),
    "Equal": (equal, 2),
    "Floor": (floor, 1),
    "Greater": (greater, 2),
    "GreaterOrEqual": (partial(greater, by=0), 2),
    "Identity": (operator.pos, 1),
    "Less": (_less, 2),
    "LessOrEqual": (_not_greater, 2),
    "Max": (_larger, 2),
    "Min": (_smaller, 2),
    "Mod": (operator.mod, 2),
    "Mul": (operator.mul, 2),
    "Neg": (operator.neg, 1),
    "Not": (operator.not_, 1),
    "ReduceMax": (_larger, 2),
    "ReduceMin": (_smaller, 2),
    "ReduceProd": (operator.mul, 2),
    "ReduceSum": (operator.add, 2),
    "Sub": (operator.sub, 2),
    "Sum": (operator.add, 2),
}


def fold_sizes(node: SourceNode, arrays: Sequence[Array | None], dtypes: Sequence[str]) -> list[tuple[Array, str]]:
    """The outputs, with their dtypes, of a node of whose inputs some are object arrays that hold open sizes.

    Raises
    ------
    Unresolved
        The result is no list of such sizes.
    """
    try:
        if node.op == "Shape" and arrays[0] is not None:
            return [(np.asarray(arrays[0].shape, np.int64), "int64")]
        if node.op in _MOVES:
            tickets, back = ticketed(arrays, _MOVES[node.op])
            moved = map(back, fold_constants(node, tickets))
            return [_settled(array, dtypes[1 if node.op == "Where" else 0]) for array in moved]
        return [_computed(node, [array.astype(object) for array in arrays if array is not None], dtypes[0])]
    except (GraphError, OverflowError, ZeroDivisionError) as error:
        raise Unresolved from error


def _computed(node: SourceNode, operands: list[Array], dtype: str) -> tuple[Array, str]:
    if node.op == "Cast":
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(node.integer("to", 0))).name
        whole = np.frompyfunc(floor, 1, 1) if dtype.startswith("int") else np.asarray
        return _settled(np.asarray(whole(operands[0]), object), dtype)
    if node.op not in _COMPUTES:
        raise Unresolved
    function, arity = _COMPUTES[node.op]
    if node.op == "Div" and "float" in dtype:
        function = _exactly_divided
    result: Any
    if node.op.startswith("Reduce"):
        total = reduce(function, operands[0].ravel().tolist())
        result = np.full(operands[0].ndim * (1,) if node.flag("keepdims", True) else (), total, object)
    else:
        call: Any = np.frompyfunc(function, arity, 1)
        result = call(operands[0]) if arity == 1 else reduce(call, operands)
    return _settled(np.asarray(result, object), dtype)


def _settled(array: Array, dtype: str) -> tuple[Array, str]:
    """An ordinary array where no element depends on the run any more."""
    elements: list[object] = array.ravel().tolist()
    if any(isinstance(element, Size) and element.number is None for element in elements):
        return array, dtype
    if elements and all(isinstance(element, bool | np.bool_) for element in elements):
        return array.astype(np.bool_), "bool"
    plain = np.empty(array.shape, object)
    plain.ravel()[:] = [float(e.number or 0) if isinstance(e, Size) else e for e in elements]
    return plain.astype(dtype), dtype
