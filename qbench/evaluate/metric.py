"""The user's own measure of quality: what may be said for it, and asking it without being fooled."""

from __future__ import annotations

import hashlib
import importlib
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError, shown
from qbench.ir.op import Array

MetricFunction = Callable[[Mapping[str, Array], Any], float]
"""(outputs by name, truths) -> a number, the higher the better."""


@dataclass(frozen=True)
class Metric:
    """A measure of quality and the truths that it compares with.

    Parameters
    ----------
    name
        How reports call it.
    function
        Given the outputs by name, one sample after the other along axis 0, and the truths; the higher the better.
    truths
        With one entry for each sample, so that parts can be asked about; None: the function knows them itself, or
        needs none, and is only ever asked about all samples.
    identity
        Equal only where the function is the same: answers are remembered under it.
    """

    name: str
    function: MetricFunction
    truths: Sequence[Any] | NDArray[Any] | None = None
    identity: str = field(default_factory=secrets.token_hex)

    def __call__(self, outputs: Mapping[str, Array], rows: Sequence[int] | None = None) -> float:
        """The number for these outputs; `rows` picks samples, of a metric with truths.

        Raises
        ------
        DataError
            It raised, or gave NaN, infinity or no number at all.
        """
        truths = self.truths
        if rows is not None:
            outputs = {name: array[[*rows]] for name, array in outputs.items()}
            truths = None if truths is None else picked(truths, rows)
        try:
            answer = self.function({name: _locked(array) for name, array in outputs.items()}, _locked(truths))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            shapes = ", ".join(f"{shown(name)} {array.dtype} {array.shape}" for name, array in outputs.items())
            if "read-only" in said:
                said += " (others read what it is given: copy what it changes)"
            raise DataError(f"the metric {shown(self.name)} raised {said}; it was given {shapes}") from error
        kind = np.asarray(answer)
        if kind.size != 1 or kind.dtype.kind not in "iuf":
            raise DataError(f"the metric {shown(self.name)} gave {shown(repr(answer))}; it must give one number")
        number = float(kind.item())
        if not math.isfinite(number):
            raise DataError(f"the metric {shown(self.name)} gave {number}; it must be finite to compare models by it")
        return number

    def about(self, truths: Sequence[Any] | NDArray[Any] | None) -> Metric:
        """The same measure with the truths of other data; with its own where that data has none."""
        return self if truths is None else replace(self, truths=truths)

    def check(self, exact: Mapping[str, Array], quantized: Mapping[str, Array]) -> None:
        """Raise DataError if the metric says the same whatever it is given: nothing can be chosen by it."""
        right = self(exact)
        wrong = {name: np.roll(-array, 1, axis=0) if array.ndim else -array for name, array in exact.items()}
        if self(quantized) == right and self._says(wrong) == right:
            raise DataError(
                f"the metric {shown(self.name)} is constant: it gave {right:g} for the float model, for the quantized "
                "one, and for wrong outputs; nothing can be chosen by it"
            )

    def _says(self, outputs: Mapping[str, Array]) -> float | None:
        """What it says of nonsense, which it may refuse."""
        try:
            return self(outputs)
        except DataError:
            return None


def _locked(given: Any) -> Any:
    """The same, whose arrays cannot be written to: labels are the user's, outputs are asked about again."""
    if isinstance(given, np.ndarray):
        view = cast("Array", given).view()
        view.flags.writeable = False
        return view
    return [_locked(one) for one in cast("list[Any]", given)] if isinstance(given, list) else given


def resolve_metric(given: str | MetricFunction, truths: Sequence[Any] | NDArray[Any] | None = None) -> Metric:
    """A metric from a callable, or from ``"module:function"``.

    Raises
    ------
    DataError
        No such module or function, or it is not callable.
    """
    if callable(given):
        return Metric(getattr(given, "__name__", type(given).__name__), given, truths)
    place, _, name = str(given).partition(":")  # anything may come at run time
    if not (place and name):
        raise DataError(f"a metric is a callable or 'module:function', not {shown(str(given))}")
    try:
        module = importlib.import_module(place)
    except ImportError as error:
        raise DataError(f"the metric's module {shown(place)} cannot be imported: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise DataError(f"module {shown(place)} has no function {shown(name)}")
    source = Path(getattr(module, "__file__", None) or "")
    code = hashlib.sha256(source.read_bytes()).hexdigest() if source.is_file() else ""
    return Metric(given, cast("MetricFunction", function), truths, f"{given} {code}")


def picked(truths: Sequence[Any] | NDArray[Any], rows: Sequence[int]) -> Sequence[Any] | NDArray[Any]:
    """Some entries of what was given, as the same kind of thing."""
    return truths[[*rows]] if isinstance(truths, np.ndarray) else [truths[row] for row in rows]
