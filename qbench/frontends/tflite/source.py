"""What a TFLite file says, as plain Python data: nothing after this module touches the parser."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qbench.errors import ModelError, shown
from qbench.ir.qparams import QParams

Array = NDArray[Any]
Option = bool | int | float | str | tuple[int, ...]

ABSENT = -1
"""The number of an optional input that is not there."""


@dataclass(frozen=True, eq=False)
class SourceTensor:
    """A tensor of the file. A size is None where the file leaves it open; constants have an array."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    qparams: QParams | None
    array: Array | None

    def __str__(self) -> str:
        return shown(self.name)


@dataclass(frozen=True, eq=False)
class SourceOperator:
    """An operator; tensors go by their numbers.

    Parameters
    ----------
    name
        The file has none: the name of the first tensor that the operator makes.
    op
        The builtin operator's name, or ``custom.`` and the operator's own.
    options_table
        Name of the table that `options` were read from; empty where there is none.
    options
        Those that differ from the defaults of the file format.
    """

    name: str
    op: str
    inputs: tuple[int, ...]
    output_numbers: tuple[int, ...]
    outputs: tuple[str, ...]
    options_table: str
    options: Mapping[str, Option]

    def __str__(self) -> str:
        return f"{shown(self.name)} ({self.op})"

    def integer(self, name: str, default: int = 0) -> int:
        """An option that is a number."""
        value = self.options.get(name, default)
        if not isinstance(value, int):
            raise ModelError(f"operator {self}: {name} should be an integer")
        return int(value)

    def flag(self, name: str) -> bool:
        """An option that means yes or no."""
        return bool(self.integer(name))

    def real(self, name: str, default: float = 0.0) -> float:
        """An option that is a real number."""
        value = self.options.get(name, default)
        if not isinstance(value, float):
            raise ModelError(f"operator {self}: {name} should be a number")
        return value

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An option that is a list; None where it is absent."""
        value = self.options.get(name)
        if value is not None and not isinstance(value, tuple):
            raise ModelError(f"operator {self}: {name} should be a list")
        return value


@dataclass(frozen=True, eq=False)
class SourceModel:
    """A whole file: tensors by number, operators in the file's order, and by number the functions that these name."""

    name: str
    tensors: tuple[SourceTensor, ...]
    operators: tuple[SourceOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    functions: tuple["SourceModel", ...] = ()
