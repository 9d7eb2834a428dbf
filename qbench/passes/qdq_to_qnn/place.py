"""A form in the place of the nodes that it stands for, its values named after theirs."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.forms import Form, Integers, Step
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.names import fresh
from qbench.ir.op import OPS
from qbench.ir.qparams import QParams
from qbench.passes.qdq_to_qnn.match import Match, integers_behind
from qbench.passes.rewrite import Rewriter, joined_sources


def place(rw: Rewriter, match: Match, form: Form) -> None:
    """Put a form in the place of the nodes that it stands for; clips that bound nothing are left out.

    Where real numbers are read from the result, its integers are dequantized for them.
    """
    _Placed(rw, match, form.without_idle()).place()


class Placing:
    """Nodes that will replace old ones.

    Parameters
    ----------
    rewriter
        The graph.
    old
        What is replaced: new nodes have its sources.
    """

    def __init__(self, rewriter: Rewriter, old: Sequence[Node]) -> None:
        self.rw = rewriter
        self._old, self._new = tuple(old), list[Node]()

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        q: QParams | None,
        attrs: Mapping[str, Attr] | None = None,
        name: str = "",
        like: Sequence[Node] = (),
    ) -> None:
        """Add a node.

        Parameters
        ----------
        outputs
            Names that nothing has, or those of values that an old node makes.
        q
            qparams of the outputs, where they are quantized.
        attrs
            Those equal to the op's default are left out.
        name
            What the node should be called: it is where that is free, or an old node's.
        like
            The nodes that it is made from, by default all old ones.
        """
        fields = OPS[op].attributes()
        kept = {key: value for key, value in (attrs or {}).items() if value != fields[key].default}
        name = self._label(name or f"{outputs[0]}.{op.removeprefix('qnn.').removeprefix('nn.')}")
        if q is not None:
            self.rw.qparams.update(dict.fromkeys(outputs, q))
        sources = joined_sources(*(like or self._old))
        self._new.append(Node(name, op, tuple(inputs), tuple(outputs), FrozenMap(kept), sources))

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


class _Placed:
    """A form on its way into the graph."""

    def __init__(self, rw: Rewriter, match: Match, form: Form) -> None:
        self.rw, self.match, self.form = rw, match, form
        self._ends = self._find_ends()
        self._targets = tuple(target for ends in self._ends.values() for target in ends if target is not None)
        self._placing = Placing(rw, (*match.members, *self._targets))
        self._made: dict[Step, str] = {}

    def _find_ends(self) -> dict[Step, tuple[Node | None, ...]]:
        """By result: for each of its outputs the quantize node whose place it takes."""
        found: dict[Step, tuple[Node | None, ...]] = {}
        for result, target in zip(self.form.results, self.match.targets or (None,), strict=True):
            outputs = self.match.members[-1].outputs
            if len(outputs) == 1 and target is not None:
                if result not in found and result.q == self.rw.qparams[target.output]:
                    found[result] = (target,)
            elif result not in found:
                found[result] = tuple(self._same_scale(value, result.q) for value in outputs)
        return found or {self.form.results[0]: (None,)}

    def _same_scale(self, value: str, q: QParams | None) -> Node | None:
        if value in self.rw.outputs:
            return None
        readers = self.rw.consumers(value)
        return next((r for r in readers if r.op == "qnn.quantize" and self.rw.qparams[r.output] == q), None)

    def place(self) -> None:
        """Emit all steps, and what real numbers are still read."""
        for step in self.form.steps:
            inputs = [self._input(given) for given in step.inputs]
            outputs = self._outputs(step)
            name, like = self._origin(step)
            self._placing.emit(step.op, inputs, outputs, step.q, step.attrs, name, like)
            self._made[step] = outputs[0]
            if step in self._ends:
                self._dequantize(step, outputs)
        self._placing.finish()

    def _dequantize(self, result: Step, integers: Sequence[str]) -> None:
        ends = self._ends[result]
        for value, made, end in zip(self.match.members[-1].outputs, integers, ends, strict=True):
            others = [reader for reader in self.rw.consumers(value) if reader not in self._targets]
            if made != value and (value in self.rw.outputs or others or end is None):
                self._placing.emit("qnn.dequantize", (made,), (value,), None)

    def _input(self, given: int | Step | Integers) -> str:
        if isinstance(given, Step):
            return self._made[given]
        if isinstance(given, Integers):
            return self._stored(given)
        value = self.match.head.inputs[given]
        return integers_behind(self.rw, value) or value

    def _outputs(self, step: Step) -> tuple[str, ...]:
        """What the values of a step are called."""
        if step in self._ends:
            return tuple(
                end.output if end is not None else self._inner(step, value)
                for value, end in zip(self.match.members[-1].outputs, self._ends[step], strict=True)
            )
        return (self._inner(step, self._end_after(step)),)

    def _inner(self, step: Step, value: str) -> str:
        """A value beside that of which the form is made."""
        last = step in self._ends
        if last and (step.q is None or step.q == self.rw.qparams.get(value)):
            return value
        first = next((target.output for target in self._targets), value)
        wishes = {
            "accumulator": f"{first}.accumulator",
            "biased": f"{first}.summed",
            "wide": f"{first}.wide",
            "averaged": f"{value}.averaged" if self._next(step) != "clamped" else f"{value}.unclamped",
            "operand": f"{self._input(step.inputs[0])}.for.{value}" if step.what == "operand" else "",
        }
        return self._placing.value(wishes.get(step.what, f"{value}.quantized" if last else f"{value}.unclamped"))

    def _next(self, step: Step) -> str:
        place = self.form.steps.index(step)
        return self.form.steps[place + 1].what if place + 1 < len(self.form.steps) else ""

    def _end_after(self, step: Step) -> str:
        """The value of the result that a step leads to."""
        later = self.form.steps[self.form.steps.index(step) :]
        ends = next((self._ends[other] for other in later if other in self._ends), ())
        return next((end.output for end in ends if end is not None), self.match.members[-1].outputs[0])

    def _origin(self, step: Step) -> tuple[str, tuple[Node, ...]]:
        """The name that a step's node would have, and the nodes that it is made from (none: all)."""
        match = self.match
        if step.what == "accumulator":
            return match.head.name, (match.head,)
        if step.what == "biased" and match.bias is not None:
            return match.bias.name, (match.bias,)
        if step.what == "clamped" and match.clamps:
            return match.clamps[-1].name, (*match.clamps, *(end for end in self._ends.get(step, ()) if end is not None))
        return match.head.name if step.what in ("made", "averaged", "clamped", "biased") else "", ()

    def _stored(self, bias: Integers) -> str:
        """The constant that holds a bias; the file's own where that has these integers and stands for nothing else."""
        rw, node = self.rw, self.match.bias or self.match.head
        name = node.inputs[1]
        stored = integers_behind(rw, name)
        if stored is not None:
            known, alone = rw.constants[stored].array, rw.sole_consumer(stored) and rw.sole_consumer(name)
            name = stored
            if known.dtype == bias.array.dtype and np.array_equal(known, bias.array) and alone:
                rw.qparams[stored] = bias.q
                return stored
        if name in rw.constants and rw.sole_consumer(name) is not None:
            rw.set_constant(name, bias.array)
        else:
            name = rw.constant(name, bias.array)
        rw.qparams[name] = bias.q
        return name
