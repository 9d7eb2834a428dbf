"""The options of operators: whichever table of the schema they are in, read by the names of its fields."""

import re
import struct
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from qbench.frontends.tflite.guard import Budget, guarded
from qbench.frontends.tflite.source import Array, Option

_EMPTY = bytes((4, 0, 4, 0, 4, 0, 0, 0))
"""A table without fields, at byte 4: it tells the defaults."""


def read_options(kind: Any, data: bytes, position: int, budget: Budget) -> dict[str, Option]:
    """The fields of a table that differ from their defaults.

    Parameters
    ----------
    kind
        The generated class of the table.
    position
        Where the table lies.
    """
    given = guarded(kind(), data, position, budget)
    plain = guarded(kind(), _EMPTY, 4, budget)
    read = {field: (_option(given, field), _option(plain, field)) for field in _fields(kind)}
    return {_snake(field): value for field, (value, default) in read.items() if value != default}


def custom_options(content: bytes) -> dict[str, Option]:
    """The options of an operator that is not TFLite's own: a FlexBuffer with a map of numbers, as TensorFlow writes it.

    MediaPipe stores padding and strides as three words. Whatever else there is stands under ``content``.
    """
    if len(content) == _WORDS.size:
        padding, width, height = _WORDS.unpack(content)
        return {"padding": padding - 1, "stride_w": width, "stride_h": height}  # none, SAME, VALID
    try:
        return _numbers(import_module("flatbuffers.flexbuffers").GetRoot(content))
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, struct.error):  # of damaged bytes
        return {"content": content.hex()}


_WORDS = struct.Struct("<iii")
_MOST_OPTIONS = 64


def _numbers(root: Any) -> dict[str, Option]:
    """The numbers of a FlexBuffer's map, by name."""
    if not root.IsMap or len(root.AsMap) > _MOST_OPTIONS:
        raise ValueError("no map of options")
    values = {name.AsKey: root.AsMap[name.AsKey] for name in root.AsMap.Keys}
    return {name: value.AsFloat if value.IsFloat else int(value.AsInt) for name, value in values.items()}


@cache
def names_of(enumeration: Any) -> dict[int, str]:
    """The names of an enumeration of the schema, by number."""
    members = cast("dict[str, Any]", vars(enumeration))
    return {number: name for name, number in members.items() if isinstance(number, int)}


def array_of(vector: Any) -> Array | None:
    """A vector's elements; the parser gives 0 for one that is absent."""
    return cast("Array", vector) if isinstance(vector, np.ndarray) else None


def ints(vector: Any) -> tuple[int, ...]:
    """A vector's elements as ints; none where it is absent."""
    array = array_of(vector)
    return () if array is None else tuple(int(element) for element in array)


@cache
def _fields(table: Any) -> tuple[str, ...]:
    """Names of a table's fields that are numbers, lists of numbers or text."""
    members = cast("dict[str, Any]", vars(table))
    names = [name for name in members if name[0].isupper() and not re.match("GetRootAs|Init$", name)]
    helpers = re.compile("(AsNumpy|Length|IsNone|BufferHasIdentifier)$")
    lists = {name.removesuffix("Length") for name in names if name.endswith("Length")}
    plain = [name for name in names if not helpers.search(name)]
    return tuple(name for name in plain if name not in lists or f"{name}AsNumpy" in names)


def _option(table: Any, field: str) -> Option:
    if hasattr(table, f"{field}AsNumpy"):
        return ints(getattr(table, f"{field}AsNumpy")())
    value = getattr(table, field)()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _snake(name: str) -> str:
    return re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower()
