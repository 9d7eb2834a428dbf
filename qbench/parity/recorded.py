"""Values that somebody saved: of a device, or of an earlier run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

from qbench.data.arrays import read_arrays
from qbench.errors import DataError, shown
from qbench.ir.graph import Node
from qbench.ir.op import Array
from qbench.ir.types import TensorType
from qbench.parity.runner import Made, Portion, Runner
from qbench.parity.theory import Mode


@dataclass(frozen=True)
class Recorded(Runner):
    """An ``.npz`` with an array for each value, by name; the samples of all data along the first axis.

    Parameters
    ----------
    path
        The file, such as the one that :func:`qbench.exporters.golden` writes.
    """

    path: str | PathLike[str]

    @property
    def label(self) -> str:
        """What tables call it."""
        return Path(self.path).name

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """Unknown: a recording can be compared with what runs."""
        raise DataError(f"{self.path} cannot run: give it as the second of the two that are compared")

    @property
    def made(self) -> Mapping[str, Made]:
        """All arrays."""
        return {name: Made("recorded", array.dtype.name) for name, array in self._arrays.items()}

    def run(self, portion: Portion, names: Iterable[str]) -> Mapping[str, Array]:
        """The rows that belong to these samples."""
        found: dict[str, Array] = {}
        for name in names:
            array = self._arrays[name]
            rows = len(array) if array.ndim else 0
            if rows % portion.samples:
                told = f"{self.path} has {rows} rows of {shown(name)}"
                raise DataError(f"{told}, which is no multiple of the {portion.samples} samples")
            each = rows // portion.samples
            found[name] = array[portion.start * each : portion.stop * each]
        return found

    def rounding(self, head: Node, requantize: Node) -> Mode | None:
        """A recording does not say."""
        return None

    @cached_property
    def _arrays(self) -> Mapping[str, Array]:
        return read_arrays(Path(self.path))
