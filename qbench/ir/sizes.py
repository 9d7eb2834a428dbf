"""Sizes as exact expressions: polynomials of symbols, with quotients rounded down where a size is divided.

    H, 4*N, P + S, (H + 1)//2, 8*H*W

A size has one canonical form, in which equal sizes are the same text nearly always: terms in a fixed order, and what
divides evenly taken out of a quotient, so that ``(H - 1)//2 + 1`` is ``(H + 1)//2`` and half of that ``(H + 3)//4``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

from qbench.errors import GraphError

_TOKEN = re.compile(r"\s*(?:(?P<symbol>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]{1,19})|(?P<mark>//|[-+*()]))")
_MOST_TERMS = 200
_MOST_CHARACTERS = 2000

Number = int | Fraction


@dataclass(frozen=True)
class Quotient:
    """One size divided by another, rounded down."""

    above: Size
    below: Size

    def __str__(self) -> str:
        return f"{_wrapped(self.above)}//{_wrapped(self.below)}"


Atom = str | Quotient
Monomial = tuple[tuple[Atom, int], ...]
"""Atoms and their powers, in the order of their texts; nothing for the number 1."""


@dataclass(frozen=True)
class Size:
    """A sum of monomials times numbers. On the way a size may have fractions; `floor` and `ceil` make it whole.

    Parameters
    ----------
    terms
        Canonical: make sizes with `size_of` and arithmetic.
    positive
        It is 1 or more, whatever its terms say: the length of an axis. What is computed from it isn't known to be.
    """

    terms: tuple[tuple[Monomial, Number], ...]
    positive: bool = field(default=False, compare=False)

    @property
    def number(self) -> Number | None:
        """The number that it is, None where it has symbols."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () else None

    @property
    def is_whole(self) -> bool:
        """Whether it has no fractions."""
        return all(isinstance(factor, int) for _, factor in self.terms)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols in it."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                found |= {atom} if isinstance(atom, str) else atom.above.symbols | atom.below.symbols
        return frozenset(found)

    @property
    def quotients(self) -> tuple[Quotient, ...]:
        """The quotients among its factors."""
        return tuple(atom for monomial, _ in self.terms for atom, _ in monomial if isinstance(atom, Quotient))

    @cached_property
    def dim(self) -> int | str:
        """An int, or the canonical text; GraphError for a fraction."""
        if not self.is_whole:
            raise GraphError(f"{self} is no whole size")
        number = self.number
        return str(self) if number is None else int(number)

    @cached_property
    def least(self) -> Number | None:
        """The least that it can be, symbols and quotients being 1 or more; None where that cannot be said."""
        told = not any(factor < 0 for monomial, factor in self.terms if monomial)
        least = sum((factor for _, factor in self.terms), 0) if told else None
        return max(least or 1, 1) if self.positive else least

    def replaced(self, values: Mapping[str, int | str]) -> Size:
        """The same with other sizes in place of symbols."""
        if self.symbols.isdisjoint(values):
            return self
        total = _ZERO
        for monomial, factor in self.terms:
            product = _constant(factor)
            for atom, power in monomial:
                if isinstance(atom, str):
                    value = size_of(values.get(atom, atom))
                else:
                    value = atom.above.replaced(values) // atom.below.replaced(values)
                for _ in range(power):
                    product = product * value
            total = total + product
        return total

    def __add__(self, other: Size | Number) -> Size:
        found = dict(self.terms)
        for monomial, factor in _of(other).terms:
            found[monomial] = found.get(monomial, 0) + factor
        return _sum(found)

    def __pos__(self) -> Size:
        return self

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size | Number) -> Size:
        return self + _of(other) * -1

    def __rsub__(self, other: Size | Number) -> Size:
        return _of(other) - self

    def __mul__(self, other: Size | Number) -> Size:
        found: dict[Monomial, Number] = {}
        for left, factor in self.terms:
            for right, by in _of(other).terms:
                monomial = _product(left, right)
                found[monomial] = found.get(monomial, 0) + factor * by
        return _sum(found)

    def __truediv__(self, other: Size | Number) -> Size:
        """The exact quotient; GraphError where there is none, ZeroDivisionError for 0."""
        exact = self._divided(_of(other))
        if exact is None:
            raise GraphError(f"{self} cannot be divided by {other}")
        return exact

    def __rtruediv__(self, other: Size | Number) -> Size:
        return _of(other) / self

    def __floordiv__(self, other: Size | Number) -> Size:
        """The quotient rounded down, whatever it is; ZeroDivisionError for 0."""
        divisor = _of(other)
        exact = self._divided(divisor)
        return _sum({((Quotient(self, divisor), 1),): 1}) if exact is None else exact.floor()

    def __rfloordiv__(self, other: Size | Number) -> Size:
        return _of(other) // self

    def __mod__(self, other: Size | Number) -> Size:
        return self - self // other * other

    __radd__ = __add__
    __rmul__ = __mul__

    def floor(self) -> Size:
        """Rounded down to a whole size."""
        scale = math.lcm(*(Fraction(factor).denominator for _, factor in self.terms))
        if scale == 1:
            return self
        whole: dict[Monomial, Number] = {}
        rest: dict[Monomial, Number] = {}
        for monomial, factor in self.terms:
            whole[monomial], rest[monomial] = divmod(int(factor * scale), scale)
        return _sum(whole) + _quotient(_sum(rest), scale)

    def ceil(self) -> Size:
        """Rounded up to a whole size."""
        scale = math.lcm(*(Fraction(factor).denominator for _, factor in self.terms))
        return (self + Fraction(scale - 1, scale)).floor()

    def _divided(self, other: Size) -> Size | None:
        """The exact quotient by polynomial division, None where something is left over."""
        if not other.terms:
            raise ZeroDivisionError("a size is divided by 0")
        (lead, by), rest, result = other.terms[0], self, _ZERO
        while rest.terms:
            monomial = _without(rest.terms[0][0], lead)
            if monomial is None or len(result.terms) > _MOST_TERMS:
                return None
            part = _sum({monomial: Fraction(rest.terms[0][1]) / Fraction(by)})
            result, rest = result + part, rest - part * other
        return result

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = "".join(_signed(monomial, factor) for monomial, factor in self.terms)
        return text[3:] if text.startswith(" + ") else f"-{text[3:]}"


def _signed(monomial: Monomial, factor: Number) -> str:
    factors = [] if abs(factor) == 1 and monomial else [str(abs(factor))]
    for atom, power in monomial:
        text = atom if isinstance(atom, str) else str(atom)
        alone = len(monomial) == power == 1 and not factors
        factors += [text if isinstance(atom, str) or alone else f"({text})"] * power
    return f"{' - ' if factor < 0 else ' + '}{'*'.join(factors)}"


def _wrapped(size: Size) -> str:
    text = str(size)
    return text if text.isalnum() or text.replace("_", "a").isalnum() else f"({text})"


def _order(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    """Highest degree first, then by atoms: an order that products keep, as polynomial division wants it."""
    atoms = tuple(text for atom, power in monomial for text in [str(atom)] * power)
    return -len(atoms), atoms


def _sum(found: Mapping[Monomial, Number]) -> Size:
    whole = {m: int(f) if isinstance(f, Fraction) and f.denominator == 1 else f for m, f in found.items() if f}
    if len(whole) > _MOST_TERMS:
        raise GraphError(f"a size has more than {_MOST_TERMS} terms")
    return Size(tuple(sorted(whole.items(), key=lambda term: _order(term[0]))))


def _constant(number: Number) -> Size:
    return _sum({(): number})


_ZERO = Size(())


def _of(value: Size | Number) -> Size:
    return value if isinstance(value, Size) else _constant(value if isinstance(value, int) else Fraction(value))


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda pair: str(pair[0])))


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    powers = dict(monomial)
    for atom, power in divisor:
        powers[atom] = powers.get(atom, 0) - power
    if any(power < 0 for power in powers.values()):
        return None
    return tuple((atom, power) for atom, power in powers.items() if power)


def _quotient(above: Size, below: int) -> Size:
    """``above // below`` for whole numbers within 0 and `below` as factors: common factors go, quotients are merged."""
    common = math.gcd(below, *(int(factor) for monomial, factor in above.terms if monomial))
    if common == below:
        return _ZERO  # nothing but a number, which is less than `below`
    above = _sum({m: factor // common for m, factor in above.terms})
    below //= common
    inner = above.quotients
    if len(inner) == 1 and (m := ((inner[0], 1),)) in dict(above.terms) and len(above.terms) <= 2:
        number, divisor = above - _sum({m: 1}), inner[0].below.number
        if number.number is not None and isinstance(divisor, int):
            return (inner[0].above + number * divisor) // (divisor * below)
    return _sum({((Quotient(above, _constant(below)), 1),): 1})


def size_of(dim: int | str) -> Size:
    """The size that an int or a text means.

    Raises
    ------
    GraphError
        It is no size.
    """
    if isinstance(dim, str):
        return _read(dim)
    if type(dim) is int:  # bool is an int to Python, but not a size
        return _constant(dim)
    raise _refused(dim)


@lru_cache(maxsize=4096)
def _read(text: str) -> Size:
    if not 0 < len(text) <= _MOST_CHARACTERS:
        raise _refused(text)
    return _Reader(text).read()


def _refused(dim: object) -> GraphError:
    return GraphError(f"{dim!r} is neither a size nor an expression like N, 4*N or (H + 1)//2")


class _Reader:
    """Reads ``sum = product (+- product)*``, ``product = factor (*, // factor)*``, a factor being one mark or (sum)."""

    def __init__(self, text: str) -> None:
        self.text, self.marks, place = text, list[str](), 0
        while match := _TOKEN.match(text, place):
            self.marks.append(match[0].strip())
            place = match.end()
        if text[place:].strip(" ") or not text.isascii():
            raise _refused(text)
        self.marks.append("")
        self.depth = 0

    def read(self) -> Size:
        try:
            size = self.sum()
        except ZeroDivisionError:
            raise _refused(self.text) from None
        if self.marks != [""]:
            raise _refused(self.text)
        return size

    def sum(self) -> Size:
        negative = self.accept("-")
        total = self.product()
        total = -total if negative else total
        while (plus := self.accept("+")) or self.accept("-"):
            total = total + self.product() if plus else total - self.product()
        return total

    def product(self) -> Size:
        result = self.factor()
        while (times := self.accept("*")) or self.accept("//"):
            result = result * self.factor() if times else result // self.factor()
        return result

    def factor(self) -> Size:
        mark = self.marks.pop(0)
        if mark == "(" and self.depth < 50:
            self.depth += 1
            inner = self.sum()
            self.depth -= 1
            if self.accept(")"):
                return inner
        elif mark.isdecimal():
            return _constant(int(mark))
        elif mark and mark[0] not in "+-*/()":
            return _sum({((mark, 1),): 1})
        raise _refused(self.text)

    def accept(self, mark: str) -> bool:
        found = self.marks[:1] == [mark]
        if found:
            del self.marks[0]
        return found
