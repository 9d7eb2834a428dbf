"""An import made again with what the network shows of its open sizes: that two of them are equal, or one a number."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeVar

from qbench.errors import GraphError, ModelError
from qbench.frontends.sizes import solved, substituted, symbols_of
from qbench.ir.types import Dim, TensorType
from qbench.ops.rules import Unequal

EQUATIONS = 64
"""Equations of sizes that a network may ask for; so many that only a damaged file asks for more."""


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Importer(Protocol[T_co]):
    """One try to import a model."""

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """Types of the inputs, as far as their sizes are known."""
        ...

    def run(self) -> T_co:
        """What is made of the model."""
        ...


def imported(start: Callable[[Mapping[str, Dim]], Importer[T]]) -> T:
    """What the importer gives that gets to the end.

    Parameters
    ----------
    start
        A new importer, given what symbols of the inputs' sizes must stand for.

    Raises
    ------
    GraphError, ModelError
        Of the last try.
    """
    known: dict[str, Dim] = {}
    for last in (*(False,) * EQUATIONS, True):
        importer = start(known)
        try:
            return importer.run()
        except (GraphError, ModelError) as error:
            new = _told_by(error, importer.inputs)
            if new is None or last:
                raise
        known = substituted(known, new)
    raise AssertionError("the last try returns or raises")


def _told_by(error: Exception, inputs: Mapping[str, TensorType]) -> dict[str, Dim] | None:
    """What symbols must stand for, where the error is that the network asks for equal sizes; else None."""
    cause = next((each for each in _causes(error) if isinstance(each, Unequal)), None)
    return None if cause is None or len(cause.sizes) != 2 else solved(*cause.sizes, symbols_of(inputs.values()))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
