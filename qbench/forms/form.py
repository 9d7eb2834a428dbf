"""What a form is: a few qnn ops that read the node's operands and each other, still without names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qbench.forms.site import Site
from qbench.ir.graph import Attr, Node
from qbench.ir.op import OPS, Array, bind
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import quantize

What = Literal["accumulator", "biased", "wide", "operand", "made", "averaged", "requantized", "clamped", "narrowed"]
"""What a step makes: sums, sums and a bias, the input in finer units, an operand at another scale, what the op itself
makes, an average still at the scale of its input, integers of a few bits, those clamped, and 8 bits made of 16."""


@dataclass(frozen=True, eq=False)
class Integers:
    """A constant of a form: a bias in units of the sums that it is added to, or integers for a real operand.

    Parameters
    ----------
    array, q
        The integers, and what they mean.
    operand
        The place of the site's operand that they stand for; None: the bias.
    """

    array: Array
    q: QParams
    operand: int | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One op of a form.

    Parameters
    ----------
    what
        What it makes; clients name values and nodes by it.
    op
        Name of the op.
    inputs
        Operands of the site by their place, earlier steps, and constants.
    q
        What the integers that it makes mean; None where they stand for themselves.
    attrs
        Of the op.
    """

    what: What
    op: str
    inputs: tuple[int | Step | Integers, ...]
    q: QParams | None
    attrs: Mapping[str, Attr]

    @property
    def is_idle(self) -> bool:
        """Whether it is a clip that the type of its integers makes needless."""
        if self.what != "clamped" or self.q is None or isinstance(self.inputs[0], int):
            return False
        return (self.attrs["a_min"], self.attrs["a_max"]) == (self.q.qmin, self.q.qmax)


@dataclass(frozen=True, eq=False)
class Form:
    """The qnn ops that stand for a float node and what is fused behind it.

    Parameters
    ----------
    steps
        In execution order.
    results
        The step that makes the integers of each target; of a site without targets the one step whose integers stand
        for the result.
    """

    steps: tuple[Step, ...]
    results: tuple[Step, ...]

    def without_idle(self) -> Form:
        """The form without clips that bound nothing."""
        before = {step: step.inputs[0] for step in self.steps if step.is_idle}
        results = [before.get(step, step) for step in self.results]
        kept = tuple(step for step in self.steps if step not in before)
        return Form(kept, tuple(step for step in results if isinstance(step, Step)))


def said(op: str, attrs: Mapping[str, Attr]) -> dict[str, Attr]:
    """The attributes that differ from the op's defaults."""
    fields = OPS[op].attributes()
    return {key: value for key, value in attrs.items() if value != fields[key].default}


def clamp_bounds(clamps: Iterable[Node], q: QParams) -> tuple[int, int]:
    """The smallest and the largest integer that clamps let through: exact, for rounding keeps the order."""
    low, high = -math.inf, math.inf
    for node in clamps:
        op = bind(node)
        floor, ceiling = getattr(op, "a_min", 0.0), getattr(op, "a_max", math.inf)
        low, high = min(max(low, floor), ceiling), min(max(high, floor), ceiling)
    smallest, largest = quantize(np.asarray([low, high], np.float32), q)
    return int(smallest), int(largest)


def single(site: Site, op: str, inputs: Sequence[int], q: QParams | None, attrs: Mapping[str, Attr]) -> Form:
    """One op, whatever the result is quantized to."""
    step = Step("made", op, tuple(inputs), q, attrs)
    return Form((step,), (step,) * max(1, len(site.targets)))


def straight(
    site: Site,
    op: str,
    inputs: Sequence[int | Step | Integers],
    attrs: Mapping[str, Attr],
    *,
    before: Sequence[Step] = (),
    what: What = "made",
) -> Form:
    """An op that makes integers at the scale of each target, and the clamps behind it.

    Parameters
    ----------
    before
        Steps that come first.
    what
        What the op makes.
    """
    site.need_targets()
    steps, results = [*before], list[Step]()
    for q in site.targets:
        steps.append(Step(what, op, tuple(inputs), q, attrs))
        if site.clamps:
            steps.append(clipped(site.clamps, steps[-1], q))
        results.append(steps[-1])
    return Form(tuple(steps), tuple(results))


def clipped(clamps: Iterable[Node], source: int | Step, q: QParams) -> Step:
    """What is left of integers within clamps."""
    low, high = clamp_bounds(clamps, q)
    return Step("clamped", "clip", (source,), q, {"a_min": float(low), "a_max": float(high)})


def narrowed(site: Site, source: int | Step, after: str, *, before: Sequence[Step] = (), **attrs: Attr) -> Form:
    """One rounding to the scale of each target, and the clamps behind it.

    Parameters
    ----------
    source
        What is rounded.
    after
        The qnn op that made it.
    attrs
        Of the requantize.
    """
    given = said("qnn.requantize", {"rounding": site.arithmetic.after(after), **attrs})
    return straight(site, "qnn.requantize", (source,), given, before=before, what="requantized")
