"""Outputs that say how likely each of several classes is, and what of that another model loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from qbench.evaluate.text import blank_of, misread
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array, QuantRule, bind, is_op
from qbench.ops.float.softmax import LogSoftmax, Softmax

_VOCABULARY = 256  # scores in a row
_LEAST = 1e-9  # a probability; less is as good as none


@dataclass(frozen=True)
class Chances:
    """How probabilities follow from an output.

    Parameters
    ----------
    of
        They are its elements, these are their logarithms, or scores that a softmax over the last axis makes them of.
    blank
        Of a recognizer that reads texts, the class that stands for no letter: its texts are what it chooses.
    """

    of: Literal["elements", "logarithms", "scores"]
    blank: int | None = None

    def seen_in(self, outputs: Sequence[Array]) -> Chances:
        """With the blank, where a model that answered these to some samples has one."""
        return replace(self, blank=blank_of([np.exp(self._logarithms(array)) for array in outputs]))

    def lost(self, wanted: Array, given: Array) -> tuple[float, float]:
        """What is lost of one model's choices by another: its sum, and how many choices.

        Of classes, the divergence (Kullback and Leibler) in nats. Of texts, the share that is no longer read: by how
        much each is less likely than it was, in parts of that, those that it is sure of before others.
        """
        if not np.isfinite(given).all():
            return float("inf"), 1.0
        if self.blank is not None:
            lost, read = np.sum([self._misread(*text, self.blank) for text in zip(wanted, given, strict=True)], axis=0)
            return float(lost), float(read)
        p, q = self._logarithms(wanted), self._logarithms(given)
        chances = np.exp(p)
        return float((chances * (p - q)).sum()), float(chances.sum())

    def _misread(self, wanted: Array, given: Array, blank: int) -> tuple[float, float]:
        """What :func:`~qbench.evaluate.text.misread` says of one text: of thousands of classes, those that it has."""
        classes = np.unique([blank, *wanted.argmax(axis=-1)])
        p, q = self._logarithms(wanted, classes), self._logarithms(given, classes)
        return misread(p, q, int(np.searchsorted(classes, blank)))

    def _logarithms(self, values: Array, classes: Array | None = None) -> Array:
        """Of all classes, or of some."""
        real = (values if classes is None else values[..., classes]).astype(np.float64)
        if self.of == "scores":
            whole = values.astype(np.float64)
            most = whole.max(axis=-1, keepdims=True)
            real = real - most - np.log(np.exp(whole - most).sum(axis=-1, keepdims=True))
        elif self.of == "elements":
            real = np.log(np.maximum(real, _LEAST))
        return np.maximum(real, np.log(_LEAST))


def chances_of(graph: Graph, value: str) -> Chances | None:
    """What an output says of chances; None where it is none of them: boxes, masks, features, signals, states.

    A softmax made them, or a product whose result is a vocabulary: many numbers in a row, more than it reads.
    """
    wide, made = graph.types[value], graph.producers.get(value)
    while made is not None and made.inputs and (bind(made).moves or OPS[made.op].rule == QuantRule.BIAS):
        made = graph.producers.get(made.inputs[0])
    if is_op(made, Softmax):
        return Chances("elements")
    if is_op(made, LogSoftmax):
        return Chances("logarithms")
    if made is None or OPS[made.op].rule != QuantRule.MAC or wide.rank < 2:
        return None
    rank = graph.types[made.outputs[0]].rank
    if bind(made).channel_axis_of("output", rank) not in (None, rank - 1):
        return None  # an image, whose rows are wide
    classes, read = wide.shape[-1], graph.types[made.inputs[0]].shape[-1]
    many = isinstance(classes, int) and classes >= _VOCABULARY and isinstance(read, int) and classes > read
    return Chances("scores") if many and wide.rank > 2 else None
