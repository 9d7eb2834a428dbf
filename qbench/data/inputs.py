"""Data for models whose inputs are integers: real numbers are quantized as the model says, integers stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np

from qbench.errors import DataError
from qbench.ir.dtypes import is_float, is_integer
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.quant.arithmetic import quantize


def first(data: Any, limit: int | None) -> Any:
    """The first samples of what :func:`qbench.load_data` gives."""
    if limit is None:
        return data
    if limit < 1:
        raise DataError(f"the first {limit} samples are none; give at least 1")
    if isinstance(data, Mapping):
        return {name: array[:limit] for name, array in cast("Mapping[str, Array]", data).items()}
    if isinstance(data, np.ndarray):
        return cast("Array", data)[:limit]
    return list(islice(cast("Sequence[Any]", data), limit))


def quantized_inputs(graph: Graph, data: Any) -> Any:
    """The same data, real numbers turned into integers wherever an input of the graph holds those.

    Parameters
    ----------
    graph
        Its inputs have qparams where they are quantized.
    data
        An array, arrays by input name, or a sequence of either, such as a folder of images.
    """
    if not any(is_integer(kind.dtype) and name in graph.qparams for name, kind in graph.input_types().items()):
        return data
    if isinstance(data, (np.ndarray, Mapping)):
        return _quantized(graph, data)
    return _Quantized(graph, data)


def _quantized(graph: Graph, data: Any) -> Any:
    if isinstance(data, Mapping):
        arrays = cast("Mapping[str, Array]", data)
        return {name: _integers(graph, name, array) for name, array in arrays.items()}
    return _integers(graph, graph.inputs[0], data) if len(graph.inputs) == 1 else data


def _integers(graph: Graph, name: str, array: Any) -> Any:
    q = graph.qparams.get(name)
    if q is None or not isinstance(array, np.ndarray) or is_float(graph.types[name].dtype):
        return cast("object", array)
    values = cast("Array", array)
    return quantize(values, q) if values.dtype == np.float32 else values


@dataclass(frozen=True)
class _Quantized(Sequence[Any]):
    """Quantizes each item when it is read."""

    graph: Graph
    items: Sequence[Any]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return _quantized(self.graph, self.items[index])

    def part(self, first: int, last: int) -> _Quantized:
        """Some of the items."""
        part = getattr(self.items, "part", lambda first, last: self.items[first:last])  # pyright: ignore
        return _Quantized(self.graph, part(first, last))

    def __iter__(self) -> Iterator[Any]:
        return (_quantized(self.graph, item) for item in self.items)
