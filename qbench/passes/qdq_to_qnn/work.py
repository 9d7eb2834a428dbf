"""A graph on its way from dequantize, float op, quantize to ops on integers: what the pattern families share."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from qbench.errors import shown
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.names import fresh
from qbench.ir.op import OPS, Array
from qbench.ir.qparams import QParams
from qbench.passes.rewrite import Rewriter, joined_sources
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import Semantics, rounding_of

__all__ = ["TABLES", "Float", "Pattern", "Work"]

_CLAMPS = ("clip", "nn.relu")
TABLES = ("int8", "uint8", "int16", "uint16")
"""Types over all of whose integers a table can be made."""

_LARGEST = float(np.finfo(np.float32).max)


class Float(Exception):
    """Why a node cannot be turned into integers."""


class Work:
    """A graph being edited: a pattern looks at it, emits new nodes, and puts them in the place of old ones.

    Parameters
    ----------
    rewriter
        The graph.
    semantics
        Whose arithmetic the integers get.
    fused
        Whether onnxruntime's 8-bit kernels are meant, which its default optimizations bring in.
    """

    def __init__(self, rewriter: Rewriter, semantics: Semantics, fused: bool = True) -> None:
        self.rw, self.fused = rewriter, fused
        self.semantics: Semantics = semantics
        self._old: tuple[Node, ...] = ()
        self._new: list[Node] = []

    # what is there

    def integers(self, value: str) -> str | None:
        """The integers that a value of real numbers is dequantized from; None for any other."""
        producer = self.rw.producer(value)
        return producer.inputs[0] if producer is not None and producer.op == "qnn.dequantize" else None

    def need_integers(self, value: str) -> str:
        """As `integers`; raises `Float` where there are none."""
        found = self.integers(value)
        if found is None:
            what = "constant" if value in self.rw.constants else "input"
            raise Float(f"neighbour of float: its {what} {shown(value)} is not quantized")
        return found

    def per_tensor(self, value: str) -> tuple[str, QParams]:
        """The integers of a value and their qparams; raises `Float` where they have a scale per channel."""
        found = self.need_integers(value)
        q = self.rw.qparams[found]
        if q.axis is not None:
            raise Float(f"unsupported: {shown(value)} has a scale for each index of axis {q.axis}")
        return found, q

    def reals(self, value: str) -> Array | None:
        """The array of a constant as real numbers, also where it is stored as integers; None for any other value."""
        integers = self.integers(value)
        array = self.rw.array(value if integers is None else integers)
        return array if array is None or integers is None else dequantize(array, self.rw.qparams[integers])

    def rank(self, value: str) -> int:
        """Number of axes of a value."""
        return self.rw.types[value].rank

    def quantizes(self, value: str) -> tuple[Node, ...]:
        """The nodes that quantize a value, where nothing else reads it; else none."""
        readers = self.rw.consumers(value)
        alone = value not in self.rw.outputs and all(reader.op == "qnn.quantize" for reader in readers)
        return readers if alone and all(self.rw.qparams[reader.output].axis is None for reader in readers) else ()

    def need_quantizes(self, value: str) -> tuple[Node, ...]:
        """As `quantizes`; raises `Float` where there are none."""
        found = self.quantizes(value)
        if not found:
            raise Float(f"neighbour of float: its result {shown(value)} is read as real numbers")
        return found

    def follower(self, value: str, ops: Collection[str]) -> Node | None:
        """The node of these ops that alone reads a value, as its first operand."""
        reader = self.rw.sole_consumer(value)
        return reader if reader is not None and reader.op in ops and reader.inputs[0] == value else None

    def clamps(self, value: str) -> tuple[Node, ...]:
        """The relu and clip nodes that follow a value, one after the other."""
        found: list[Node] = []
        while (reader := self.follower(value, _CLAMPS)) is not None:
            found.append(reader)
            value = reader.output
        return tuple(found)

    def result(self, head: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """The clamps behind a node, and the nodes that quantize what comes out of them; raises `Float` for none."""
        clamps = self.clamps(head.output)
        return clamps, self.need_quantizes(clamps[-1].output if clamps else head.output)

    def bounds(self, clamps: Sequence[Node], q: QParams) -> tuple[int, int]:
        """The smallest and the largest integer that clamps let through: exact, for rounding keeps the order."""
        low, high = -math.inf, math.inf
        for node in clamps:
            op = self.rw.op(node)
            floor, ceiling = getattr(op, "a_min", 0.0), getattr(op, "a_max", math.inf)
            low, high = min(max(low, floor), ceiling), min(max(high, floor), ceiling)
        smallest, largest = quantize(np.asarray([low, high], np.float32), q)
        return int(smallest), int(largest)

    def need_ratios(self, source: QParams, targets: Sequence[Node]) -> None:
        """Raises `Float` where integers of a scale cannot be brought to what these quantize: float32 would overflow."""
        largest = max(source.scales) / min(self.rw.qparams[target.output].scales[0] for target in targets)
        if max(largest, *source.scales) > _LARGEST:
            raise Float(f"unsupported: scales as far apart as a factor of {largest:.3g}")

    def rounding(self, op: str) -> Rounding:
        """How results of a qnn op are rounded."""
        return rounding_of(self.semantics, op)

    # what is made

    def begin(self, *old: Node) -> None:
        """Start to emit what will replace these nodes; what has no `like` of its own is made from all of them."""
        self._old, self._new = old, []

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        output: str,
        q: QParams | None,
        *,
        attrs: Mapping[str, Attr] | None = None,
        name: str = "",
        like: Sequence[Node] = (),
    ) -> str:
        """Add a node; gives its output.

        Parameters
        ----------
        output
            A name that nothing has, or that of a value that an old node makes.
        q
            qparams of the output, where it is quantized.
        attrs
            Those equal to the op's default are left out.
        name
            What the node should be called: it is where that is free, or an old node's.
        like
            The nodes that it is made from, by default all old ones.
        """
        return self.emit_many(op, inputs, (output,), q, attrs=attrs, name=name, like=like)[0]

    def emit_many(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        q: QParams | None,
        *,
        attrs: Mapping[str, Attr] | None = None,
        name: str = "",
        like: Sequence[Node] = (),
    ) -> tuple[str, ...]:
        """As `emit`, for an op with several outputs."""
        fields = OPS[op].attributes()
        kept = {key: value for key, value in (attrs or {}).items() if value != fields[key].default}
        name = self._label(name or f"{outputs[0]}.{op.removeprefix('qnn.').removeprefix('nn.')}")
        if q is not None:
            self.rw.qparams.update(dict.fromkeys(outputs, q))
        sources = joined_sources(*(like or self._old))
        self._new.append(Node(name, op, tuple(inputs), tuple(outputs), FrozenMap(kept), sources))
        return tuple(outputs)

    def emit_clamped(
        self,
        op: str,
        inputs: Sequence[str],
        target: Node,
        clamps: Sequence[Node],
        *,
        attrs: Mapping[str, Attr] | None = None,
        name: str = "",
        like: Sequence[Node] = (),
    ) -> None:
        """Add a node that makes what a quantize made, and a clip where the clamps between the two narrow its range."""
        output, q = target.output, self.rw.qparams[target.output]
        low, high = self.bounds(clamps, q)
        if (low, high) == (q.qmin, q.qmax):
            self.emit(op, inputs, output, q, attrs=attrs, name=name, like=(*like, *clamps, target) if like else ())
            return
        made = self.value(f"{output}.unclamped")
        self.emit(op, inputs, made, q, attrs=attrs, name=name, like=like)
        self.emit(
            "clip",
            (made,),
            output,
            q,
            attrs={"a_min": float(low), "a_max": float(high)},
            name=clamps[-1].name,
            like=(*clamps, target),
        )

    def requantized(self, source: str, target: Node) -> str:
        """Integers at the qparams that a quantize gives; a requantize of them where they have others."""
        q = self.rw.qparams[target.output]
        if self.rw.qparams[source] == q:
            return source
        self.need_ratios(self.rw.qparams[source], (target,))
        attrs: dict[str, Attr] = {"rounding": self.rounding("qnn.requantize"), "semantics": self.semantics}
        return self.emit("qnn.requantize", (source,), self.value(f"{source}.for.{target.output}"), q, attrs=attrs)

    def value(self, wish: str) -> str:
        """A name like this one that no value has."""
        pending = {output: node for node in self._new for output in node.outputs}
        return fresh(wish, ChainMap[str, Any](self.rw.types, pending))

    def finish(self) -> None:
        """Put what was emitted in the place of the old nodes."""
        self.rw.replace(self._old, self._new)

    def _label(self, wish: str) -> str:
        pending = {node.name for node in self._new}
        if wish in {node.name for node in self._old} - pending:
            return wish
        base, count = wish, 1
        while wish in pending or self.rw.find(wish) is not None:
            count += 1
            wish = f"{base}.{count}"
        return wish


Pattern = Callable[[Work, Node], None]
"""Turns one node into integers, together with what belongs to it; raises `Float` where it cannot."""
