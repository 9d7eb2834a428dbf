"""Checks of what a caller feeds to a graph: everything that could be wrong with data is found here, by name."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from qbench.errors import DataError, nearest, shown
from qbench.ir.dtypes import DTYPES, is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.ir.sizes import Size, size_of
from qbench.ir.types import TensorType, dim_factors


def check_feeds(
    graph: Graph,
    feeds: Mapping[str, Array],
    start: Mapping[str, Array] | None = None,
    needed: Iterable[str] | None = None,
    finite: bool = True,
) -> dict[str, int]:
    """Raise DataError unless the feeds are exactly the graph's inputs, with their types and finite values.

    Parameters
    ----------
    graph
        Any graph.
    feeds
        An array for each input. A symbol such as ``N`` must mean the same size wherever it occurs.
    start
        Further values that are known, checked alike.
    needed
        The inputs that must be fed: all, unless given.
    finite
        Whether values are looked at, too.

    Returns
    -------
    dict
        The size that each symbol stands for.

    Raises
    ------
    DataError
        It names the input, the type that it wants and the one it was given.
    """
    start = start or {}
    needed = graph.inputs if needed is None else tuple(needed)
    kinds = needed, *[tuple([(name, _kind(array)) for name, array in known.items()]) for known in (feeds, start)]
    accepted: dict[Hashable, dict[str, int]] = vars(graph).setdefault("_accepted", {})
    sizes = accepted.get(kinds)
    if sizes is None:
        sizes = _sizes(graph, feeds, start, needed)
        if len(accepted) >= _REMEMBERED:
            accepted.clear()
        accepted[kinds] = sizes
    for name, array in (*feeds.items(), *start.items()) if finite else ():
        if is_float(graph.types[name].dtype) and not np.isfinite(array).all():
            role = "input" if name in feeds else "value"
            raise DataError(f"{role} {shown(name)} has {_bad(array)}; remove or replace them")
    return sizes.copy()


_REMEMBERED = 64
"""Dtypes and shapes that a graph was found to take."""


def _kind(array: Array) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
    return (array.dtype, array.shape) if type(array) is np.ndarray else None  # at run time anything may come


def _bad(array: Array) -> str:
    bad = np.argwhere(~np.isfinite(array))
    return f"{len(bad)} NaN or infinite values, the first at index {tuple(map(int, bad[0]))}"


def _sizes(
    graph: Graph, feeds: Mapping[str, Array], start: Mapping[str, Array], needed: Iterable[str]
) -> dict[str, int]:
    """What the symbols stand for; DataError where names, dtypes or shapes are not the graph's."""
    for name in feeds:
        if name not in graph.inputs:
            inputs = ", ".join(map(shown, graph.inputs))
            raise DataError(f"the model has no input {shown(name)}{nearest(name, graph.inputs)} (it has {inputs})")
    known = (*feeds.items(), *start.items())
    sizes = open_sizes((graph.types[name], array.shape) for name, array in known if hasattr(array, "shape"))
    for name in needed:
        if name not in feeds:
            raise DataError(f"input {shown(name)} is missing: feed it {graph.types[name]}")
    for name, given in feeds.items():
        _check(f"input {shown(name)}", graph.types[name], given, sizes)
    for name in feeds:
        _check_length(graph, name, sizes)
    for name, given in start.items():
        _check(f"value {shown(name)}", graph.types[name], given, sizes)
    return sizes


def _check_length(graph: Graph, name: str, sizes: Mapping[str, int]) -> None:
    """No size but the batch may be zero, unless something is joined to it: a cache is empty at first."""
    for axis, dim in enumerate(graph.types[name].shape[1:], 1):
        for symbol in () if isinstance(dim, int) else sorted(size_of(dim).symbols):
            if sizes.get(symbol) == 0 and not _is_joined(graph, symbol):
                raise DataError(f"input {shown(name)} has a length of zero: axis {axis} ({symbol}) must be 1 or more")


def _is_joined(graph: Graph, symbol: str) -> bool:
    dims = {dim for kind in graph.types.values() for dim in kind.shape if isinstance(dim, str)}
    leasts = [size_of(dim).replaced({symbol: 0}).least for dim in dims if symbol in size_of(dim).symbols]
    return any(least is not None and least >= 1 for least in leasts)


def _check(name: str, wanted: TensorType, given: Array, sizes: dict[str, int]) -> None:
    if type(given) is not np.ndarray:  # at run time anything may come
        raise DataError(f"{name} wants {wanted}, not {type(given).__name__}; make it a NumPy array")
    if wrong := _wrong(wanted, given, sizes):
        raise DataError(f"{name} wants {wanted}, but was given {given.dtype} of shape {given.shape}{wrong}")


def _wrong(wanted: TensorType, given: Array, sizes: dict[str, int]) -> str:
    """What is wrong with an array's type, if anything."""
    if given.dtype != numpy_dtype(wanted.dtype):
        cast = given.dtype.name in (*DTYPES, "float64")
        made = "; np.stack([*x]) makes one array of objects that are arrays" if given.dtype == object else ""
        return f"; use x.astype({wanted.dtype!r})" if cast else f", not {wanted.dtype}{made}"
    if given.ndim != wanted.rank:
        return f": {given.ndim} dimensions, not {wanted.rank}"
    for axis, (dim, size) in enumerate(zip(wanted.shape, given.shape, strict=True)):
        number, rest = dim_factors(dim)
        if rest is None and size != number:
            return f": axis {axis} has size {size}, not {number}"
        if rest is not None and size % number:
            return f": size {size} of axis {axis} is not a multiple of {number}"
        fits = number if rest is None else number * sizes[rest] if rest in sizes else size_of(dim).replaced(sizes).dim
        if fits != size:
            if rest in sizes:
                return f": {rest} is {sizes[rest]} elsewhere, but {size // number} at axis {axis}"
            symbols = sorted(size_of(dim).symbols)
            if not sizes.keys() >= {*symbols}:
                unknown = " and ".join(symbol for symbol in symbols if symbol not in sizes)
                return (
                    f": no input says what {unknown} are in {dim}; qbench.load(..., shapes=...) takes numbers for them"
                )
            told = ", ".join(f"{symbol}={sizes[symbol]}" for symbol in symbols)
            return f": axis {axis} has size {size}, not {dim} = {fits} ({told})"
    return ""


def open_sizes(values: Iterable[tuple[TensorType, Sequence[int]]]) -> dict[str, int]:
    """What the symbols of types stand for, by the shapes that values have.

    Each is read where it stands in a size with no other that is unknown yet; shapes of another rank are ignored.
    """
    sizes: dict[str, int] = {}
    waiting = [
        (size_of(dim), size)
        for kind, shape in values
        if len(shape) == kind.rank
        for dim, size in zip(kind.shape, shape, strict=True)
        if isinstance(dim, str)
    ]
    while waiting:
        left: list[tuple[Size, int]] = []
        for dim, size in waiting:
            dim = dim.replaced(sizes)
            terms = [(monomial, factor) for monomial, factor in dim.terms if monomial]
            if len(terms) == 1 and terms[0][0] in [((symbol, 1),) for symbol in dim.symbols]:
                (symbol,), factor = dim.symbols, int(terms[0][1])
                number = int(dict(dim.terms).get((), 0))
                sizes[symbol] = max((size - number) // factor, 0)
            elif terms:
                left.append((dim, size))
        if len(left) == len(waiting):
            break
        waiting = left
    return sizes
