"""Sizes that are known only at run time, in the chains of Shape, Gather, Mul... that exporters write.

A chain is evaluated on NumPy object arrays that hold ints, floats, bools and :class:`~qbench.ir.sizes.Size`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from qbench.errors import ModelError, check_kind, shown
from qbench.ir.op import Array
from qbench.ir.sizes import Number, Size, size_of
from qbench.ir.types import Dim, TensorType


class Unresolved(Exception):
    """The value depends on a size that is known only at run time."""


def ticketed(
    arrays: Iterable[Array | None], holds: Callable[[int], bool]
) -> tuple[list[Array | None], Callable[[Array], Array]]:
    """Numbered tickets in place of elements, for what moves numbers alone; and what hands each ticket's element back.

    Parameters
    ----------
    arrays
        What an op reads; None where it reads something else.
    holds
        Whether the input at an index holds elements that are moved; others stay as they are.

    Raises
    ------
    Unresolved
        Sizes that are known only at run time decide where elements go.
    """
    elements: list[object] = []
    tickets: list[Array | None] = []
    for index, array in enumerate(arrays):
        if array is not None and holds(index):
            tickets.append(np.arange(len(elements), len(elements) + array.size).reshape(array.shape))
            elements.extend(array.ravel().tolist())
        elif array is not None and array.dtype == object:
            raise Unresolved
        else:
            tickets.append(array)
    lookup = np.empty(len(elements), object)
    lookup[:] = elements
    return tickets, lambda numbers: np.asarray(lookup[numbers], object)


def element_of(dim: Dim) -> int | Size:
    """The length of an axis as an element of an object array."""
    return dim if isinstance(dim, int) else replace(size_of(dim), positive=True)


def size_array(dims: Sequence[Dim], dtype: str = "int64") -> Array:
    """Sizes as an array of that type where all are known, else of objects."""
    sizes = np.empty(len(dims), object)
    sizes[:] = list(map(element_of, dims))
    return sizes if any(isinstance(dim, str) for dim in dims) else sizes.astype(dtype)


def dim_of(element: object) -> Dim | None:
    """The size that an element of an object array stands for; None for a fraction."""
    if isinstance(element, Size):
        return element.dim if element.is_whole else None
    return int(element)  # pyright: ignore[reportArgumentType] a number


def floor(element: Size | Number) -> Size | int:
    """Rounded down; Unresolved for what has no floor."""
    return element.floor() if isinstance(element, Size) else math.floor(element)


def ceil(element: Size | Number) -> Size | int:
    """Rounded up."""
    return element.ceil() if isinstance(element, Size) else math.ceil(element)


def equal(left: Size | Number, right: Size | Number) -> bool:
    """Whether two elements are equal, as sizes are positive; Unresolved where the run decides."""
    return left == right or not (greater(left, right) or greater(right, left))


def greater(left: Size | Number, right: Size | Number, *, by: int = 1) -> bool:
    """Whether one element is larger than another, by 1 or more."""
    if not isinstance(left, Size) and not isinstance(right, Size):
        return left > right if by else left >= right
    above, below = _least_difference(left, right), _least_difference(right, left)
    if above is not None and above >= by:
        return True
    if below is not None and below >= 1 - by:
        return False
    raise Unresolved


def _least_difference(left: Size | Number, right: Size | Number) -> Number | None:
    """The least that `left` less `right` can be; None where that cannot be said."""
    if isinstance(right, Size):
        return (left - right).least
    least = left.least if isinstance(left, Size) else left
    return None if least is None else least - right


def check_shape(name: str, shape: object, rank: int | None) -> None:
    """Raise ModelError where the shape that a caller gives an input is none, or has another rank than the file says."""
    what = f"shapes: that of input {shown(name)} is a tuple of {'sizes' if rank is None else f'{rank} sizes'}, not "
    check_kind(shape, (tuple, list), ModelError, f"{what}{{}}")
    count = len(cast("Sequence[Dim]", shape))
    if count != (rank or count):
        raise ModelError(f"{what}{count}")


def symbols_of(types: Iterable[TensorType]) -> list[str]:
    """The symbols in the sizes of types, in the order in which they come."""
    return list(dict.fromkeys(s for kind in types for dim in kind.shape for s in sorted(size_of(dim).symbols)))


def solved(left: Dim, right: Dim, order: Iterable[str]) -> dict[str, Dim] | None:
    """What a symbol must stand for so that two sizes are equal, which a network asks for; None where that is unclear.

    Either a symbol stands for the other sizes (``T`` for ``P + S``, or for 512), or its size is a multiple: for
    ``2*(H//2)`` and ``H``, ``H`` becomes ``2*H``; or a number stays what it is divided by it: for ``4//B`` and 4, ``B``
    is 1.

    Parameters
    ----------
    left, right
        The sizes.
    order
        All symbols; later ones are solved for first.
    """
    symbols = [*order]
    difference = _primitive(size_of(left) - size_of(right))
    found: list[tuple[bool, int, str, Dim]] = []
    for monomial, factor in difference.terms:
        if len(monomial) != 1 or abs(factor) != 1 or monomial[0][1] != 1 or monomial[0][0] not in symbols:
            continue
        symbol = str(monomial[0][0])
        value = size_of(symbol) - difference * int(factor)
        if symbol not in value.symbols and value.is_whole and (value.number is None or value.number >= 1):
            found.append((value.least is None, -symbols.index(symbol), symbol, value.dim))
    if found:
        _, _, symbol, dim = min(found)
        return {symbol: dim}
    asked = sorted(difference.symbols & {*symbols}, key=symbols.index)
    each = (_multiple(difference, s) or _rounded(difference, s) or _undivided(difference, s) for s in asked)
    found_one = next(filter(None, each), None)
    return found_one or _multiple(difference, *asked)


def _primitive(size: Size) -> Size:
    """The size without the factors that all of its terms have in common."""
    if not size.terms:
        return size
    common = dict(size.terms[0][0])
    for monomial, _ in size.terms:
        powers = dict(monomial)
        common = {atom: min(power, powers[atom]) for atom, power in common.items() if atom in powers}
    factor = math.gcd(*(Fraction(factor).numerator for _, factor in size.terms))
    return size / Size(((tuple(common.items()), factor),))


_LARGEST_MULTIPLE = 1024
"""Networks halve an image a few times; more is asked for by damaged files alone."""


def _multiple(difference: Size, *symbols: str) -> dict[str, Dim] | None:
    whole = math.lcm(*(divisor for symbol in symbols for divisor in _divisors(difference, symbol)))
    for factor in range(2, min(whole, _LARGEST_MULTIPLE) + 1):
        made: dict[str, Dim] = {symbol: f"{factor}*{symbol}" for symbol in symbols}
        if whole % factor == 0 and difference.replaced(made).number == 0:
            return made
    return None


def _rounded(difference: Size, symbol: str) -> dict[str, Dim] | None:
    """The size whose quotient, rounded, is the number asked for: 48 for ``(H + 15)//48 = 1``, as nothing is cut off."""
    terms = dict(difference.terms)
    number = terms.pop((), 0)
    if len(terms) != 1 or len(quotients := difference.quotients) != 1:
        return None
    size = int(-number / next(iter(terms.values()))) * int(quotients[0].below.number or 0)
    return {symbol: size} if size > 0 and difference.replaced({symbol: size}).number == 0 else None


def _undivided(difference: Size, symbol: str) -> dict[str, Dim] | None:
    """1 for what divides a number that should stay as it is: an exporter's batch, which was 1."""
    ones: Mapping[str, Dim] = {symbol: 1}
    divisors = [*_below(symbol, difference)]
    if not divisors or not all(divisor.replaced(ones).terms for divisor in divisors):
        return None
    return dict(ones) if difference.replaced(ones).number == 0 else None


def _below(symbol: str, size: Size) -> Iterator[Size]:
    """Whatever with this symbol something is divided by; what such divisors are divided by first."""
    for part in size.quotients:
        yield from _below(symbol, part.above)
        yield from _below(symbol, part.below)
        yield from (part.below,) if symbol in part.below.symbols else ()


def _divisors(size: Size, symbol: str) -> Sequence[int]:
    return [int(quotient.below.number or 1) for quotient in size.quotients if symbol in quotient.above.symbols] or [1]


def substituted(known: Mapping[str, Dim], new: Mapping[str, Dim]) -> dict[str, Dim]:
    """Substitutions one after the other, as one."""
    return dict(new) | {symbol: size_of(dim).replaced(new).dim for symbol, dim in known.items()}
