"""Normalizations that an exporter wrote as several ops, recognized by what they compute.

torch, Paddle, TensorFlow and hand-written llamas each spell layer normalization in their own way: with a power or a
product, a division or a reciprocal, the scale before or after the data. Around a square root, values are therefore
followed as polynomials in the data x, its mean M, its mean square S and the inverse root R, with constants
as coefficients: ``gamma R x - gamma R M + beta``, with ``R = (S - M^2 + epsilon)^-1/2``, is layer norm however written.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Attr, Node
from qbench.ir.op import Array
from qbench.passes.canonicalize.rule import fuse, scalar
from qbench.passes.rewrite import Rewriter

ROOTS = ("sqrt", "power")
"""The ops that a normalization is looked for from."""

_REACH = 12
"""Most values before the root that may be the data, and most nodes after it."""

_TERMS = 8
"""No spelling needs more terms at once."""

_X, _MEAN, _SQUARE, _ROOT = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)
_ONE, _MEAN_SQUARED = (0, 0, 0, 0), (0, 2, 0, 0)
_X_ROOT, _MEAN_ROOT = (1, 0, 0, 1), (0, 1, 0, 1)

Powers = tuple[int, int, int, int]
"""Of the data, its mean, its mean square, and the inverse root."""

Coefficient = NDArray[np.float64]
"""Broadcasts to the data's shape."""

Polynomial = dict[Powers, Coefficient]
"""Coefficients by powers."""


def recognize_norm(rw: Rewriter, node: Node) -> bool:
    """Replace the largest group of ops around a square root that is a layer, RMS or instance normalization."""
    values = _values_before(rw, node)
    for centred in (True, False):
        for value in values:
            around = _Around(rw, value)
            if around.of(node.output) is None or around.centred != centred:
                continue
            for last in reversed([*_nodes_after(rw, node)]):
                if _replaced(rw, around, last):
                    return True
    return False


def _values_before(rw: Rewriter, node: Node) -> list[str]:
    """The values that a root is computed from, nearest first."""
    found = list(node.inputs[:1])
    for value in found:  # grows on the way
        producer = rw.producer(value)
        if producer is not None and producer.op in _MEANINGS and len(found) < _REACH:
            found += [name for name in producer.inputs if name not in found and name not in rw.constants]
    return found[1:]


def _nodes_after(rw: Rewriter, node: Node) -> Iterator[Node]:
    """The nodes that a root leads to by ops that can be followed, nearest first."""
    found = [node]
    for known in found:  # grows on the way
        readers = rw.consumers(known.output) if len(found) < _REACH else ()
        found += [reader for reader in readers if reader.op in _MEANINGS and reader not in found]
    yield from found[1:]


class _Around:
    """What values are in terms of one of them, the data."""

    def __init__(self, rw: Rewriter, data: str) -> None:
        self.rw, self.data, self.shape = rw, data, rw.types[data].shape
        self.axes: set[int] | None = None
        self.centred = False
        self.epsilon: float | None = None
        self._known: dict[str, Polynomial | None] = {data: {_X: np.ones(())}}

    def of(self, value: str) -> Polynomial | None:
        """The polynomial of a value; None where it is none, or is too long."""
        if value not in self._known:
            self._known[value] = None
            found = self._followed(value)
            self._known[value] = found if found is not None and len(found) <= _TERMS else None
        return self._known[value]

    def _followed(self, value: str) -> Polynomial | None:
        array, node = self.rw.array(value), self.rw.producer(value)
        if array is not None:
            fits = array.dtype.kind == "f" and array.ndim <= len(self.shape)
            return {_ONE: array.astype(np.float64)} if fits else None
        if node is None or node.op not in _MEANINGS or self.rw.types[value].rank != len(self.shape):
            return None
        operands = [self.of(name) for name in node.inputs]
        known = [operand for operand in operands if operand is not None]
        return _MEANINGS[node.op](self, node, *known) if len(known) == len(operands) else None

    def nodes(self, last: Node) -> list[Node]:
        """The nodes between the data and a node, in order."""
        wanted, names = [last.output], dict[str, None]()
        for value in wanted:  # grows on the way
            node = None if value == self.data else self.rw.producer(value)
            if node is not None and node.name not in names:
                names[node.name] = None
                wanted.extend(node.inputs)
        return [node for node in self.rw if node.name in names]


def _sum(around: _Around, node: Node, lhs: Polynomial, rhs: Polynomial) -> Polynomial:
    return _added(lhs, rhs, 1)


def _difference(around: _Around, node: Node, lhs: Polynomial, rhs: Polynomial) -> Polynomial:
    return _added(lhs, rhs, -1)


def _added(lhs: Polynomial, rhs: Polynomial, sign: int) -> Polynomial:
    total = dict(lhs)
    for powers, coefficient in rhs.items():
        total[powers] = total.get(powers, np.zeros(())) + sign * coefficient
    return {powers: coefficient for powers, coefficient in total.items() if coefficient.any()}


def _product(around: _Around, node: Node, lhs: Polynomial, rhs: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for some, one in lhs.items():
        for others, other in rhs.items():
            a, b, c, d = (x + y for x, y in zip(some, others, strict=True))
            total = _added(total, {(a, b, c, d): one * other}, 1)
    return total


def _quotient(around: _Around, node: Node, lhs: Polynomial, rhs: Polynomial) -> Polynomial | None:
    inverse = _inverse(around, node, rhs)
    return None if inverse is None else _product(around, node, lhs, inverse)


def _inverse(around: _Around, node: Node, data: Polynomial) -> Polynomial | None:
    """Of a constant, and of a root times a constant."""
    if len(data) != 1:
        return None
    ((powers, coefficient),) = data.items()
    if powers[:3] != _ONE[:3] or not coefficient.all():
        return None
    return {(0, 0, 0, -powers[3]): 1 / coefficient}


def _negative(around: _Around, node: Node, data: Polynomial) -> Polynomial:
    return {powers: -coefficient for powers, coefficient in data.items()}


def _mean(around: _Around, node: Node, data: Polynomial) -> Polynomial | None:
    """The means of x and of its square have letters; what does not vary along the axes is its own mean."""
    rank = len(around.shape)
    axes = _axes(around, node)
    if around.axes not in (None, axes) or not around.rw.attr(node, "keepdims"):
        return None
    around.axes, total = axes, Polynomial()
    for (x, mean, square, root), coefficient in data.items():
        sizes = (1,) * (rank - coefficient.ndim) + coefficient.shape
        if x > 2 or any(sizes[axis] != 1 for axis in axes):
            return None
        total = _added(total, {(0, mean + (x == 1), square + (x == 2), root): coefficient}, 1)
    return total


def _axes(around: _Around, node: Node) -> set[int]:
    axes: tuple[int, ...] = around.rw.attr(node, "axes")
    return {axis % len(around.shape) for axis in axes}


def _total(around: _Around, node: Node, data: Polynomial) -> Polynomial | None:
    sizes = [around.shape[axis] for axis in _axes(around, node)]
    count = math.prod(size for size in sizes if isinstance(size, int))
    means = _mean(around, node, data) if all(isinstance(size, int) for size in sizes) else None
    return None if means is None else {powers: count * coefficient for powers, coefficient in means.items()}


def _power(around: _Around, node: Node, data: Polynomial, exponent: Polynomial) -> Polynomial | None:
    number = scalar(around.rw, node.inputs[1])
    if number == 2.0:
        return _product(around, node, data, data)
    root = _root(around, node, data) if number in (0.5, -0.5) else None
    return _inverse(around, node, root) if root is not None and number == -0.5 else root


def _root(around: _Around, node: Node, data: Polynomial) -> Polynomial | None:
    """The root of a mean square or a variance, both perhaps times a number, and of epsilon."""
    epsilon, factor = data.get(_ONE, np.zeros(())), data.get(_SQUARE, np.zeros(()))
    centred = _MEAN_SQUARED in data
    if factor.size != 1 or epsilon.size != 1 or factor.item() <= 0 or epsilon.item() < 0 or around.axes is None:
        return None
    if data.keys() - {_ONE, _SQUARE, _MEAN_SQUARED} or (centred and not np.allclose(data[_MEAN_SQUARED], -factor)):
        return None
    relative = epsilon.item() / factor.item()
    if around.epsilon is not None and (around.centred, around.epsilon) != (centred, relative):
        return None
    around.centred, around.epsilon = centred, relative
    return {(0, 0, 0, -1): np.sqrt(factor)}


_MEANINGS = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _quotient,
    "negative": _negative,
    "reciprocal": _inverse,
    "power": _power,
    "sqrt": _root,
    "mean": _mean,
    "sum": _total,
}
"""What ops make of polynomials; None where they make something else of them."""


def _replaced(rw: Rewriter, around: _Around, last: Node) -> bool:
    """Whether a value is a normalization that nothing else looks into; it is then one node."""
    data, dtype = around.data, rw.types[around.data].dtype
    if rw.types[last.output] != rw.types[data] or around.of(last.output) is None:
        return False
    nodes = around.nodes(last)
    inner = {node.output for node in nodes} - {last.output}
    if any(value in rw.outputs or not {*rw.consumers(value)} <= {*nodes} for value in inner):
        return False
    named = {name for node in nodes for name in node.inputs if name in rw.constants}
    for op, attrs, sizes, parameters in _forms(around, last.output):
        if all(_broadcasts(parameter, sizes) for parameter in parameters):
            names = [
                _constant(rw, f"{last.name}.{kind}", _filled(parameter, sizes).astype(dtype), named)
                for kind, parameter in zip(("gamma", "beta"), parameters, strict=False)
            ]
            return fuse(rw, tuple(nodes), op, (data, *names), epsilon=float(around.epsilon or 0.0), **attrs)
    return False


def _forms(around: _Around, value: str) -> Iterator[tuple[str, dict[str, Attr], tuple[int, ...], list[Coefficient]]]:
    """The normalizations that a value may be: op, attributes, the shape of the parameters, and what these are."""
    found, shape, axes = around.of(value), around.shape, around.axes or set()
    if found is None or _X_ROOT not in found:
        return
    gamma, beta, rank, first = found[_X_ROOT], found.get(_ONE, np.zeros(())), len(shape), min(axes)
    wanted = {_X_ROOT, _MEAN_ROOT, _ONE} if around.centred else {_X_ROOT}
    if not found.keys() <= wanted or (around.centred and not np.array_equal(found.get(_MEAN_ROOT, gamma), -gamma)):
        return
    sizes = tuple(size if isinstance(size, int) else 0 for size in shape)
    if axes == {*range(first, rank)} and all(sizes[first:]):
        op, parameters = ("nn.layer_norm", [gamma, beta]) if around.centred else ("nn.rms_norm", [gamma])
        yield op, {"axis": -1 if first == rank - 1 else first}, sizes[first:], parameters
    if around.centred and axes == {*range(2, rank)} and sizes[1]:
        yield "nn.instance_norm", {}, sizes[1:2], [_of_channels(parameter, rank) for parameter in (gamma, beta)]


def _of_channels(parameter: Coefficient, rank: int) -> Coefficient:
    """A parameter per channel of (batch, channels, ...) as a vector; as it is where it is something else."""
    sizes = (1,) * (rank - parameter.ndim) + parameter.shape
    return parameter.reshape(-1) if max(sizes[0], *sizes[2:]) == 1 else parameter


def _broadcasts(parameter: Coefficient, sizes: tuple[int, ...]) -> bool:
    own = parameter.shape
    while len(own) > len(sizes) and own[0] == 1:
        own = own[1:]
    return len(own) <= len(sizes) and all(
        size in (1, wanted) for size, wanted in zip(reversed(own), reversed(sizes), strict=False)
    )


def _filled(parameter: Coefficient, sizes: tuple[int, ...]) -> Coefficient:
    """A parameter that broadcasts, with each of its numbers; it may have axes of size 1 in front."""
    more = max(parameter.ndim - len(sizes), 0)
    return np.broadcast_to(parameter, (1,) * more + sizes).reshape(sizes)


def _constant(rw: Rewriter, name: str, array: Array, named: set[str]) -> str:
    """The constant of the exporter's that holds this array, else a new one."""
    same = (known for known in sorted(named) if rw.constants[known].shape == array.shape)
    return next((known for known in same if np.array_equal(rw.constants[known].array, array)), "") or rw.constant(
        name, array
    )
