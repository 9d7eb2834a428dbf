"""What outputs say to those whom they are made for, and what of that another model loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add

import numpy as np

from qbench.data.dataset import Dataset
from qbench.evaluate.by_sample import by_sample
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.chances import Chances, chances_of
from qbench.evaluate.columns import Columns, powers_of
from qbench.evaluate.detections import Finds, is_of_chances, worst_db
from qbench.evaluate.exponentials import Exponential, exponential_of
from qbench.evaluate.keys import value_keys
from qbench.evaluate.measure import Deviation
from qbench.evaluate.picked import judged
from qbench.evaluate.text import text_of
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array

_SAMPLES = 4
"""By so many of the float model's answers it is told what an output is."""


@dataclass(frozen=True, slots=True)
class Said:
    """Sums that add up over samples.

    Parameters
    ----------
    found
        Of detections: how far parts of them are from what they should be, as far as something is found.
    nats, choices
        Of choices between classes: their divergence (Kullback and Leibler), and how many there are.
    alike, texts
        Of texts: those that both models read alike, and all.
    logarithms
        Of exponentials: how far their logarithms are apart.
    """

    found: tuple[Deviation, ...] = ()
    nats: float = 0.0
    choices: float = 0.0
    alike: int = 0
    texts: int = 0
    logarithms: Columns = field(default_factory=Columns)

    def __add__(self, other: Said) -> Said:
        found = tuple(map(add, self.found, other.found)) if self.found and other.found else self.found or other.found
        return Said(
            found,
            self.nats + other.nats,
            self.choices + other.choices,
            self.alike + other.alike,
            self.texts + other.texts,
            self.logarithms + other.logarithms,
        )

    @property
    def found_db(self) -> float | None:
        """Signal to noise of the worst part where something is found; None where the output is no detection."""
        return worst_db([self.found]) if self.found else None

    @property
    def nats_lost(self) -> float | None:
        """Of a usual choice; None where the output is none, or not finite."""
        return self.nats / self.choices if self.choices and np.isfinite(self.nats) else None

    @property
    def texts_alike(self) -> float | None:
        """Share of the texts; None where there are none."""
        return self.alike / self.texts if self.texts else None


@dataclass(frozen=True)
class Judging:
    """What the outputs of a float model are, beside numbers.

    Parameters
    ----------
    chances
        Of those that say how likely each class is: how probabilities follow from them.
    finds
        Which of them say what is where.
    powers
        Of those that say nothing of the kind, but a few numbers: the signal of each (:mod:`qbench.evaluate.columns`).
    vectors
        Of the others, those of one vector for each sample.
    exponentials
        Of those that say nothing of the kind, the ones whose logarithms count, too.
    """

    chances: Mapping[str, Chances]
    finds: Finds
    powers: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    vectors: frozenset[str] = frozenset()
    exponentials: Mapping[str, Exponential] = field(default_factory=dict[str, Exponential])

    @classmethod
    def of(cls, graph: Graph, answers: Mapping[str, Sequence[Array]]) -> Judging:
        """Of a float graph that answered these to some samples."""
        chances = {name: made for name in answers if (made := chances_of(graph, name)) is not None}
        seen = {name: made.seen_in(answers[name]) for name, made in chances.items()}
        finds = Finds.of(graph, answers)
        others = [name for name in answers if name not in seen and name not in finds and not is_of_chances(graph, name)]
        powers = {name: powers_of(answers[name]) for name in others}
        vectors = (name for name in others if all(a.ndim == 2 and np.isfinite(a).all() for a in answers[name]))
        grown = {name: each.seen_in(answers[name]) for name in others if (each := exponential_of(graph, name))}
        return cls(seen, finds, {name: each for name, each in powers.items() if any(each)}, frozenset(vectors), grown)

    def needs(self, name: str) -> tuple[str, ...]:
        """The outputs that tell what one of them says; none where it says numbers."""
        beside = self.finds.beside.get(name)
        if beside is not None:
            return name, beside.finder
        return (name,) if name in self.chances or name in self.finds else ()

    def said(self, name: str, wanted: Mapping[str, Array], given: Mapping[str, Array]) -> Said:
        """What another model makes of an output.

        Parameters
        ----------
        name
            Of the output.
        wanted, given
            What both models answer to the same samples: real numbers, of all outputs that it :meth:`needs`.
        """
        if name in self.finds:
            return Said(found=self.finds.deviations(name, wanted, given))
        if name in self.exponentials:
            return Said(logarithms=self.exponentials[name].columns(wanted[name], given[name]))
        made = self.chances.get(name)
        if made is None:
            return Said()
        if made.blank is None:
            return Said((), *made.lost(wanted[name], given[name]))
        read, other = (
            [text_of(winners, made.blank) for winners in array.argmax(axis=-1)] for array in (wanted[name], given[name])
        )
        return Said(alike=sum(map(np.array_equal, read, other)), texts=len(read))


def judging_of(graph: Graph, data: Dataset, cache: ValueCache) -> Judging:
    """What the outputs of a float graph are, as its answers to a few samples tell.

    Parameters
    ----------
    graph
        A float graph.
    data
        What it eats.
    cache
        Knows it from before.
    """
    names = [name for name in judged(graph) if is_float(graph.types[name].dtype)]
    keys = value_keys(graph, cache.memo)
    key = ("judging", tuple(keys[name] for name in names), data.digest)
    known: Judging | None = cache.get_result(key)
    if known is None:
        programs = cache.programs("float", graph, tuple(graph.activations()))
        runs = [programs.of(feeds).run(feeds, keep=names) for feeds in data.pick(data.spread(_SAMPLES))]
        known = Judging.of(graph, {name: [by_sample(graph, name, run[name]) for run in runs] for name in names})
        cache.put_result(key, known)
    return known
