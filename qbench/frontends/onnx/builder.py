"""Growing a graph node by node, with types known at every step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.growth import Grown, Growth, Open, Unsupported, has_damage
from qbench.frontends.onnx.source import Array
from qbench.frontends.onnx.stored import Stored
from qbench.frontends.sizes import dim_of
from qbench.ir.dtypes import DTYPES, is_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr
from qbench.ir.op import OPS
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim, TensorType


@dataclass(frozen=True, eq=False)
class Value(Grown):
    """What an ONNX tensor became.

    Real numbers that the file stores as integers have no array, but `stored`; a sequence of tensors has `items`.
    """

    stored: Stored | None = None
    items: tuple[Value, ...] = ()
    """The tensors of a sequence; it has no others, as its length is known."""
    repeated: Dim | None = None
    """The size that each element is, where it is known of a value that has no array since its shape is open."""

    @staticmethod
    def known(name: str, array: Array, dtype: str = "") -> Value:
        """A value known while importing; `dtype` says what an object array stands for."""
        kind = (dtype or "int64") if array.dtype == object else array.dtype.name
        return Value(name, tuple(array.shape), kind, array)

    @staticmethod
    def dequantized(name: str, stored: Stored) -> Value:
        """Real numbers that the file stores as integers."""
        return Value(name, tuple(stored.integers.shape), stored.dtype, stored=stored)

    @property
    def fixed(self) -> bool:
        """Whether its elements are known, as real numbers or as integers that stand for them."""
        return self.stored is not None or self.constant is not None

    def size(self, axis: int) -> int:
        """A size that must be known; Unsupported where it is symbolic."""
        size = self.shape[self.axis(axis)]
        if not isinstance(size, int):
            raise Unsupported(f"size {axis} of {shown(self.name)} is {size}, but must be known: fix it with shapes=")
        return size

    def number(self) -> float:
        """The one element of a known array; Unsupported where it is computed at run time."""
        if self.constant is None or self.constant.size != 1:
            raise Unsupported(f"{shown(self.name)} must be one constant number")
        return float(str(np.float32(self.constant.item())))

    def dims(self) -> tuple[Dim, ...]:
        """The elements of a known list of sizes; Unsupported where they do not follow from the input's sizes."""
        if self.array is None:
            raise Open(f"the sizes in {shown(self.name)} must follow from the model's input shapes")
        found = [dim_of(element) for element in self.array.ravel().tolist()]
        if None in found:
            raise Unsupported(f"{shown(self.name)} holds fractions of sizes known only at run time")
        return tuple(dim for dim in found if dim is not None)

    def same(self) -> Dim | None:
        """The size that all elements are; None where they differ, or are computed at run time."""
        if self.array is None:
            return self.repeated
        found = set(self.dims())
        return found.pop() if len(found) == 1 else None


class Builder(Growth):
    """The graph so far. Converters emit nodes into it; the importer calls `begin` and `finish` around each of them."""

    def __init__(self, inputs: Mapping[str, TensorType], taken: Iterable[str]) -> None:
        super().__init__(inputs, taken)
        self.doubles: list[str] = []
        """Nodes of the file that make numbers of 64 bits, which have 32 here."""
        self._reals: dict[str, str] = {}
        """The real numbers of stored constants, by the name of their integers."""
        self._constants: dict[int, tuple[Array, Constant]] = {}
        self._transposed: dict[int, tuple[Array, Array]] = {}
        """By identity of an array, which stays for as long: what is made of it once, however many nodes read it."""

    def emit(self, op: str, *operands: Value | Array, **attrs: Attr) -> Value:
        """Add a node with one output."""
        return self.emit_many(op, operands, 1, **attrs)[0]

    def emit_quantized(self, op: str, data: Value, q: QParams, **attrs: Attr) -> Value:
        """Add a node that makes integers of these qparams."""
        return self._emit(op, (data,), 1, attrs, q)[0]

    def emit_many(self, op: str, operands: Sequence[Value | Array], count: int, **attrs: Attr) -> tuple[Value, ...]:
        """Add a node with `count` outputs; attributes equal to the op's default are left out."""
        return self._emit(op, operands, count, attrs)

    def _emit(
        self,
        op: str,
        operands: Sequence[Value | Array],
        count: int,
        attrs: Mapping[str, Attr],
        q: QParams | None = None,
    ) -> tuple[Value, ...]:
        source = self.now()
        values = [self._operand(operand) for operand in operands]
        base = next(filter(None, source.outputs), source.name)
        outputs = tuple(self.fresh(f"{base}.{op.split('.')[-1]}") for _ in range(count))
        types = self.add(op, [(value.name, _type(value)) for value in values], attrs, outputs, (q,) * count)
        return tuple(Value(name, t.shape, t.dtype) for name, t in zip(outputs, types, strict=True))

    def finish(self, results: Sequence[Value]) -> dict[str, Value]:
        """Name what was emitted: the first main node gets the source's name, the results its outputs' names.

        Returns
        -------
        dict
            Value by ONNX tensor name. A result that was not made just now (Identity) is an alias.
        """
        source, made = self.now(), self.made()
        renamed: dict[str, str] = {}
        for output, result in zip(source.outputs, results, strict=False):
            if output and result.name in made and result.name not in renamed:
                renamed[result.name] = output
        self.settle(renamed)
        dequantized = [
            node for node in self._pending if node.op == "qnn.dequantize" and node.inputs[0] in self.constants
        ]
        self._reals |= {node.inputs[0]: renamed.get(node.output, node.output) for node in dequantized}
        return {
            output: dataclasses.replace(result, name=renamed.get(result.name, result.name))
            if result.array is None
            else dataclasses.replace(result, name=output)
            for output, result in zip(source.outputs, results, strict=False)
            if output
        }

    def producer(self, value: Value) -> str | None:
        """The op that made a value."""
        return self._producers[value.name].op if value.name in self._producers else None

    def tell_table(self, value: str, q: QParams) -> None:
        """Integers that are only moved from a constant mean there what they mean in `value`."""
        while value in self._producers and OPS[self._producers[value].op].moves and q.axis is None:
            value = self._producers[value].inputs[0]
        if value in self.constants and self.constants[value].dtype == q.dtype:
            self.qparams.setdefault(value, q)

    def meaning(self, value: Value) -> QParams | None:
        """What integers mean that were made with a scale, and moved at most; None where nothing says it."""
        name = value.name
        while name not in self.qparams and name in self._producers and OPS[self._producers[name].op].moves:
            name = self._producers[name].inputs[0]
        q = self.qparams.get(name)
        return q if q is not None and q.axis is None else None

    def known(self, like: Value, array: Array) -> Value:
        """The same constant in another layout; it keeps its name."""
        return Value.known(like.name, np.asarray(array, order="C"))

    def moved(self, value: Value, move: Callable[[Array], Array]) -> Value:
        """A `fixed` value in another layout; it keeps its name, and integers stay integers."""
        if value.stored is None:
            return self.known(value, move(np.asarray(value.constant)))
        try:
            return Value.dequantized(value.name, value.stored.moved(move))
        except ValueError as error:
            raise Unsupported(str(error)) from None

    def transposed(self, value: Value) -> Value:
        """A `fixed` matrix as its transpose; it keeps its name."""
        if value.array is None:
            return self.moved(value, np.transpose)
        made = self._transposed.get(id(value.array))
        if made is None:
            made = self._transposed[id(value.array)] = value.array, np.array(value.array.T, order="C")
            made[1].flags.writeable = False  # so that its constant is no copy
        return Value.known(value.name, made[1])

    def materialize(self, value: Value) -> Value:
        """Make sure that a value is in the graph: a known array becomes a constant."""
        if value.stored is not None:
            return self._dequantize(value.name, value.stored)
        if value.array is None:
            return value
        if value.array.dtype == object:
            name = value.name if value.name not in self._producers else self.fresh(value.name)
            attrs = {"values": value.dims(), "shape": value.array.shape, "dtype": value.dtype}
            (made,) = self.add("sizes", [], attrs, (name,))
            return Value(name, made.shape, made.dtype)
        known = self._constants.get(id(value.array))
        if known is None:
            known = self._constants[id(value.array)] = value.array, _constant(value.name, value.array)
        constant = known[1]
        return Value(self.constant(value.name, constant), constant.shape, constant.dtype)

    def _dequantize(self, name: str, stored: Stored) -> Value:
        """The real numbers, by a node that comes before the first one that reads them."""
        kind, wish = Constant(stored.integers), stored.name
        if self.qparams.get(wish, stored.q) != stored.q:  # the same integers stand for other numbers elsewhere
            wish = self.fresh(wish)
        integers = self.constant(wish, kind)
        self.qparams[integers] = stored.q
        real = self._reals.get(integers)
        if real is None:
            real = self.fresh(name) if name in self._producers else name
            self.add("qnn.dequantize", [(integers, kind.type)], {}, (real,))
        value = Value(real, kind.shape, "float32")
        return value if stored.dtype == "float32" else self.emit("cast", value, dtype=stored.dtype)

    def _operand(self, operand: Value | Array) -> Value:
        if isinstance(operand, np.ndarray):
            operand = Value.known(self.fresh(f"{self.now().name}.constant"), operand)
        return self.materialize(operand)


def _constant(name: str, array: Array) -> Constant:
    array = array.astype(np.float32) if array.dtype == np.float64 else array
    if not is_dtype(array.dtype.name):
        raise ModelError(f"constant {shown(name)} is {array.dtype}, which is not one of {', '.join(DTYPES)}")
    if has_damage(array):
        raise ModelError(f"constant {shown(name)} contains NaN: the model is damaged, export it again")
    return Constant(array)


def _type(value: Value) -> TensorType:
    if not is_dtype(value.dtype):
        raise ModelError(f"{shown(value.name)} is {value.dtype}, which is not one of {', '.join(DTYPES)}")
    return TensorType(value.shape, value.dtype)
