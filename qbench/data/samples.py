"""Data as the user has it, cut into what a graph is fed: one sample at a time, or its fixed batch."""

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, cast

import numpy as np

from qbench.data.owned import unmasked
from qbench.data.padding import unpadded
from qbench.errors import DataError, nearest, shown
from qbench.ir.batch import batch_symbol
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.ir.sizes import size_of
from qbench.ir.specialize import open_symbols, specialize
from qbench.ir.types import dim_factors

Data = Array | Mapping[str, Array] | Iterable[Array] | Iterable[Mapping[str, Array]]
"""An array (of the only input), arrays by input name, or any number of those one after the other.

Axis 0 counts samples. Statistics do not depend on how many of them come in one array.
"""


def are_whole(graph: Graph, data: object) -> bool:
    """Whether each of many items is one sample: the network does not compute along its open axis 0 sample by sample.

    Of a single item nothing better is known than that axis 0 counts samples, where the network takes one of them.
    """
    if not graph.nodes or not rows_of_a_sample(graph) or batch_symbol(graph) is not None or hasattr(data, "part"):
        return False  # shards say how they are cut
    alone = isinstance(data, (np.ndarray, Mapping))
    if alone or (isinstance(data, (list, tuple)) and len(cast("list[object]", data)) == 1):
        return not _takes_one_row(graph)
    return True


def _takes_one_row(graph: Graph) -> bool:
    """Whether the network makes sense for a size of 1 on axis 0: a window over steps of time does not fit in."""
    rows = {dim_factors(graph.types[name].shape[0])[1] for name in rows_of_a_sample(graph)}
    try:
        specialize(graph, {symbol: 1 if symbol in rows else symbol for symbol in open_symbols(graph)})
    except DataError:
        return False
    return True


def samples(graph: Graph, data: Data, whole: bool | None = None) -> Iterator[dict[str, Array]]:
    """Cut data into the smallest pieces that the graph can be fed.

    Parameters
    ----------
    graph
        Where an input has a symbol as its first size, it is fed one sample at a time (and inputs without one are fed
        whole); where none has, all are fed as many samples as their first size says.
    data
        See `Data`; read once, front to back, no more of it at a time than one array.
    whole
        Whether its items are fed as they are; None: see :func:`are_whole`.

    Raises
    ------
    DataError
        No samples, an unknown or missing input, a number of samples that does not go up in batches, or a mask that
        hides a whole sequence.

    Notes
    -----
    Padding that a mask hides is cut off: see :func:`~qbench.data.padding.unpadded`.
    """
    whole = are_whole(graph, data) if whole is None else whole
    rows = {} if whole else _rows(graph)
    number = 0
    for item in _items(data):
        feeds = _by_name(graph, item)
        pieces = _pieces(graph, feeds, rows)
        for i in range(pieces):
            piece = {name: a[i * rows[name] : (i + 1) * rows[name]] if name in rows else a for name, a in feeds.items()}
            yield unpadded(graph, piece, number)
            number += 1
    if not number:
        raise DataError("the data is empty: give at least one sample")


def count_samples(graph: Graph, data: object) -> int | None:
    """How many pieces `samples` will cut, where that can be known without reading the data."""
    if not isinstance(data, (np.ndarray, Mapping, list, tuple)):
        return None
    rows = {} if are_whole(graph, cast("object", data)) else _rows(graph)
    return sum(_pieces(graph, _by_name(graph, item), rows) for item in _items(cast("object", data)))


def rows_of_a_sample(graph: Graph) -> dict[str, int]:
    """How much of axis 0 one sample takes, by input; inputs that are not there are fed whole.

    Axis 0 counts samples where it is open. It counts something else, as the nodes of a network of nodes and edges do,
    where its size is also that of another axis, or where there is an input of another open size that does not have an
    axis of samples: then whatever is given at once is one sample.
    """
    shapes = {name: kind.shape for name, kind in graph.input_types().items() if kind.shape}
    firsts = {name: dim_factors(shape[0]) for name, shape in shapes.items()}
    symbolic = {name: number for name, (number, symbol) in firsts.items() if symbol is not None}
    counts = frozenset[str]().union(*(size_of(shapes[name][0]).symbols for name in symbolic))
    for name, shape in shapes.items():
        inside = frozenset[str]().union(*(size_of(dim).symbols for dim in shape[1:]))
        if inside & counts or (inside and name not in symbolic and shape[0] != 1):
            return {}
    return symbolic


def _rows(graph: Graph) -> dict[str, int]:
    """The same; where no input has an open size, they are fed as many samples as their first sizes say."""
    firsts = {name: kind.shape[0] for name, kind in graph.input_types().items() if kind.shape}
    if any(isinstance(size, str) for size in firsts.values()):
        return rows_of_a_sample(graph)
    return {name: max(int(size), 1) for name, size in firsts.items()}


def _items(data: object) -> Iterable[object]:
    if isinstance(data, (np.ndarray, Mapping)):
        return (cast("object", data),)
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        kind = type(data).__name__
        file = "; qbench.load_data(path) reads a file" if isinstance(data, (str, PathLike)) else ""
        raise DataError(f"data must be arrays, arrays by input name, or an iterable of those, not {kind}{file}")
    return cast("Iterable[object]", data)


def _by_name(graph: Graph, item: object) -> dict[str, Array]:
    inputs = ", ".join(map(shown, graph.inputs))
    if isinstance(item, np.ndarray):
        if len(graph.inputs) != 1:
            raise DataError(f"the model has {len(graph.inputs)} inputs ({inputs}): give a dict of arrays")
        item = {graph.inputs[0]: cast("Array", item)}
    if not isinstance(item, Mapping):
        kind = type(item).__name__
        made = "; np.asarray(x, np.float32) makes an array" if isinstance(item, (list, tuple)) else ""
        raise DataError(f"data must be NumPy arrays, or dicts of them by input name ({inputs}), not {kind}{made}")
    given = cast("Mapping[str, Any]", item)
    for name in given:
        if name not in graph.inputs:
            raise DataError(f"the model has no input {shown(name)}{nearest(name, graph.inputs)} (it has {inputs})")
    for name in graph.inputs:
        if not isinstance(given.get(name), (np.ndarray, np.generic)):
            found = "is missing" if name not in given else f"is {type(given[name]).__name__}, not a NumPy array"
            raise DataError(f"input {shown(name)} {found}")
    return {name: np.asarray(unmasked(given[name], f"input {shown(name)}")) for name in graph.inputs}


def _pieces(graph: Graph, feeds: Mapping[str, Array], rows: Mapping[str, int]) -> int:
    counts: dict[str, int] = {}
    for name, size in rows.items():
        array, wanted = feeds[name], graph.types[name]
        told = f"input {shown(name)} wants {wanted}, but was given {array.dtype} of shape {array.shape}"
        if array.ndim != wanted.rank:
            axis = "; axis 0 counts samples (x[None] adds it)" if array.ndim == wanted.rank - 1 else ""
            raise DataError(f"{told}: {array.ndim} dimensions, not {wanted.rank}{axis}")
        if len(array) % size:
            more = f"qbench.load(..., shapes={{{shown(name)}: ('N', ...)}}) leaves that open"
            raise DataError(
                f"{told}; it takes {size} samples at a time, and {len(array)} is no multiple of that; {more}"
            )
        counts[name] = len(array) // size
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{shown(name)}: {number}" for name, number in counts.items())
        raise DataError(f"the inputs have different numbers of samples ({told})")
    return next(iter(counts.values()), 1)
