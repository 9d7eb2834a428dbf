"""Operators that work on lists of sizes, some of them known only at run time."""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.frontends.sizes import Size, Unresolved, ticketed
from qbench.frontends.tflite.builder import Builder, Value
from qbench.frontends.tflite.source import Array, SourceOperator
from qbench.frontends.tflite.table import Converter

_MOVES: dict[str, Callable[[int], bool]] = {
    # Operators that only move elements, and which of their inputs hold the elements.
    **dict.fromkeys(("CONCATENATION", "PACK"), lambda index: True),
    **dict.fromkeys(
        ("EXPAND_DIMS", "GATHER", "RESHAPE", "SLICE", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE", "UNPACK"),
        lambda index: index == 0,
    ),
    "SPLIT": lambda index: index == 1,
}


def _product(array: Array, axes: Array) -> Array:
    return np.multiply.reduce(array, axis=tuple(map(int, axes.ravel())))


_COMPUTES: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "CAST": np.asarray,
    "DIV": np.floor_divide,
    "FLOOR_DIV": np.floor_divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MUL": np.multiply,
    "REDUCE_PROD": _product,
    "SUB": np.subtract,
}


def fold_sizes(builder: Builder, op: SourceOperator, convert: Converter, values: list[Value | None]) -> list[Value]:
    """The results of an operator on known arrays of which some hold sizes that are known only at run time.

    Raises
    ------
    Unresolved
        The result is no list of such sizes.
    """
    if op.op in _MOVES:
        arrays = _moved(builder, op, convert, values)
    elif op.op in _COMPUTES:
        operands = [value.array.astype(object) for value in values if value is not None and value.array is not None]
        arrays = [np.asarray(_COMPUTES[op.op](*operands), object)]
    else:
        raise Unresolved
    settled = map(_settled, arrays, builder.results)
    return [builder.known(array, tensor.name) for array, tensor in zip(settled, builder.results, strict=True)]


def _moved(builder: Builder, op: SourceOperator, convert: Converter, values: list[Value | None]) -> list[Array]:
    """What the operator's nodes make of the elements that they move."""
    tickets, back = ticketed([value and value.array for value in values], _MOVES[op.op])
    given = [
        builder.known(ticket.astype(builder.result.dtype), value.name)
        if value is not None and ticket is not None and ticket is not value.array
        else value
        for value, ticket in zip(values, tickets, strict=True)
    ]
    made = builder.fold(convert(builder, op, given))
    return [back(value.array) for value in made if value.array is not None]


def _settled(array: Array, tensor: Any) -> Array:
    """An ordinary array where no element depends on the run any more."""
    elements: list[object] = array.ravel().tolist()
    return array if any(isinstance(element, Size) for element in elements) else array.astype(tensor.dtype)
