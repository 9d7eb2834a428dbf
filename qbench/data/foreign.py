"""Data that other libraries hold, as what a `Dataset` reads: known by how it behaves, so that none is imported."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.cluster.collections import computed, culled
from qbench.errors import DataError, shown


def readable(data: object, what: str, inputs: Sequence[str]) -> object:
    """Something that can be read again and again.

    Parameters
    ----------
    data, inputs
        As for :func:`adapted`, or anything with ``len`` and ``[i]``.
    what
        Which data it is: for errors.

    Raises
    ------
    DataError
        An iterator, and what :func:`adapted` refuses.
    """
    data = adapted(data, inputs)
    if isinstance(data, Iterator):
        raise DataError(f"the {what} data is an iterator, which can be read once only; give a list, or a re-iterable")
    if not hasattr(data, "__iter__") and hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _Indexed(cast("Sequence[Any]", data))
    return data


def adapted(data: Any, inputs: Sequence[str]) -> Any:
    """The same data as NumPy arrays, read anew on each iteration; what is none of the kinds below is given back.

    Parameters
    ----------
    data
        A dask array (axis 0 counts samples) or bag (of samples, each with a batch axis); a torch ``DataLoader`` (whose
        batches are tensors, tuples that begin with the inputs in their order, or tensors by input name); a Hugging Face
        ``Dataset`` (whose columns are named like the inputs; rows get a batch axis).
    inputs
        Names of the graph's inputs.

    Raises
    ------
    DataError
        A loader that shuffles, or a data set without the columns.
    """
    kind: Any = type(cast("object", data))
    if hasattr(kind, "to_delayed"):
        return DaskArray(data) if hasattr(kind, "rechunk") else DaskBag(data.to_delayed())
    if hasattr(data, "batch_size") and hasattr(data, "dataset") and hasattr(kind, "__iter__"):
        return Loader(data, inputs)
    if hasattr(data, "column_names") and hasattr(kind, "__getitem__"):
        return Columns(data, inputs)
    return data


class _Indexed:
    """Something with ``len`` and ``[i]``, read anew on each iteration."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return (self._items[i] for i in range(len(self._items)))


class DaskArray(Sequence[NDArray[Any]]):
    """The rows of a dask array; whoever gets a part of it computes that part alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def part(self, first: int, last: int) -> DaskArray:
        """Some of the rows."""
        return DaskArray(culled(self._array[first:last]))

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def __getitem__(self, index: int) -> NDArray[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] no slices
        if not 0 <= index < len(self):
            raise IndexError(index)
        return _array(computed(self._array[index : index + 1]))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        counts: Sequence[int] = self._array.chunks[0]
        for stop, count in zip(accumulate(counts), counts, strict=True):
            yield _array(computed(self._array[stop - count : stop]))


class DaskBag:
    """The items of a dask bag, each of them one sample; a partition is computed by whoever reads of it."""

    def __init__(self, partitions: Sequence[Any], skip: int = 0, take: int | None = None) -> None:
        self._partitions, self._skip, self._take = partitions, skip, take
        self._counts: list[int] | None = None

    def part(self, first: int, last: int) -> DaskBag:
        """Some of the items."""
        stops = [*accumulate(self._known())]
        low, high = bisect_right(stops, first), bisect_left(stops, last) + 1
        return DaskBag(self._partitions[low:high], first - (stops[low - 1] if low else 0), last - first)

    def __len__(self) -> int:
        return sum(self._known()) if self._take is None else self._take

    def __iter__(self) -> Iterator[Any]:
        counts = list[int]()
        items = (item for partition in self._partitions for item in _counted(partition, counts))
        yield from items if self._take is None else islice(items, self._skip, self._skip + self._take)
        if self._take is None:
            self._counts = counts

    def _known(self) -> list[int]:
        if self._counts is None:
            self._counts = [len(computed(partition)) for partition in self._partitions]
        return self._counts


class Loader:
    """The batches of a torch ``DataLoader``."""

    def __init__(self, loader: Any, inputs: Sequence[str]) -> None:
        if type(getattr(loader, "sampler", None)).__name__ == "RandomSampler":
            raise DataError(
                "the DataLoader shuffles, but data is read more than once and must be the same: give shuffle=False"
            )
        self._loader, self._inputs = loader, inputs

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            if isinstance(batch, Mapping):
                by_name = cast("Mapping[str, Any]", batch)
                yield {name: _array(by_name[name]) for name in self._inputs if name in by_name}
            elif isinstance(batch, (list, tuple)):
                each = zip(self._inputs, cast("Sequence[Any]", batch), strict=False)  # what follows are labels
                yield {name: _array(tensor) for name, tensor in each}
            else:
                yield _array(batch)


class Columns(Sequence[Mapping[str, NDArray[Any]]]):
    """The rows of a Hugging Face ``Dataset``, as far as they are inputs."""

    def __init__(self, rows: Any, inputs: Sequence[str]) -> None:
        missing = [name for name in inputs if name not in rows.column_names]
        if missing:
            has = ", ".join(map(shown, rows.column_names))
            raise DataError(f"the data set has no column {shown(missing[0])} for that input (it has {has}); rename one")
        self._rows, self._inputs = rows, inputs

    def part(self, first: int, last: int) -> Columns:
        """Some of the rows; they lie in files that are mapped to memory."""
        return Columns(self._rows.select(range(first, last)), self._inputs)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Mapping[str, NDArray[Any]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        row = self._rows[index]
        return {name: _array(row[name])[np.newaxis] for name in self._inputs}


def _counted(partition: Any, counts: list[int]) -> Iterator[Any]:
    items = computed(partition)
    counts.append(len(items))
    return map(_item, items)


def _item(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {name: _array(value) for name, value in cast("Mapping[str, Any]", item).items()}
    return _array(item)


def _array(value: Any) -> NDArray[Any]:
    """An array, a tensor of torch, or nested lists of numbers; doubles become floats."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array
