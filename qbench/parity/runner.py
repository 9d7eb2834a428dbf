"""Whoever runs a network and shows the values on the way."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qbench.ir.graph import Node
from qbench.ir.op import Array
from qbench.ir.types import TensorType
from qbench.parity.theory import Mode


class Made(NamedTuple):
    """Where a value comes from, in the words of whoever runs it."""

    op: str
    dtype: str


@dataclass(frozen=True)
class Portion:
    """Some of the samples: what to feed, which of them it is, and of how many."""

    feeds: Mapping[str, Array]
    start: int
    stop: int
    samples: int


class Runner(ABC):
    """Runs a network, and gives any value of it by the name that it has in the model file.

    Values are laid out as in qbench's graphs: see :func:`qbench.load`.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """What tables call it."""

    @property
    def caveat(self) -> str:
        """What tells, where its values are not those of the model file, why; nothing where they always should be."""
        return ""

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, TensorType]:
        """What it wants to be fed."""

    @property
    @abstractmethod
    def made(self) -> Mapping[str, Made]:
        """The values that it can give, in the order in which they are made."""

    @abstractmethod
    def run(self, portion: Portion, names: Iterable[str]) -> Mapping[str, Array]:
        """Some of those values."""

    @abstractmethod
    def rounding(self, head: Node, requantize: Node) -> Mode | None:
        """How it rounds what this requantize does to the result of that node; None where that is not known."""
