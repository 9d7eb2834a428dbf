"""Reading a flatbuffer that may be damaged or hostile.

The classes of the `tflite` package trust every offset in a file. Each reads through a table object; here that object
is another one, which checks that each place it is led to lies within the file, and that the file is not read many
times over: a small one can point at the same bytes again and again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import ModelError

_OFFSET = 4
"""Bytes of an offset, and of a vector's length."""


def damaged(what: str) -> ModelError:
    """The error for what no writer of flatbuffers makes."""
    return ModelError(f"the file is damaged or cut off: {what}")


class Budget:
    """How many bytes may still be read from vectors and strings."""

    def __init__(self, size: int) -> None:
        self.left = 64 * size + 2**16

    def spend(self, count: int) -> None:
        """Count bytes; ModelError where a file is read too often."""
        self.left -= count
        if self.left < 0:
            raise ModelError("the file refers to the same bytes too often to be a model")


class Guard:
    """A table at a position, with the methods that generated classes call; their names are flatbuffers' own."""

    def __init__(self, data: bytes, position: int, budget: Budget) -> None:
        self.Bytes, self.Pos, self.budget = data, position, budget

    def Get(self, flags: Any, place: int) -> Any:
        """A number."""
        if not 0 <= place <= len(self.Bytes) - flags.bytewidth:
            raise damaged(f"something at byte {place} of {len(self.Bytes)}")
        return flags.py_type(flags.packer_type.unpack_from(self.Bytes, place)[0])

    def _number(self, place: int, size: int, signed: bool = False) -> int:
        if not 0 <= place <= len(self.Bytes) - size:
            raise damaged(f"something at byte {place} of {len(self.Bytes)}")
        return int.from_bytes(self.Bytes[place : place + size], "little", signed=signed)

    def Offset(self, slot: int) -> int:
        """Where a field lies within the table; 0 where it is absent."""
        table = self.Pos - self._number(self.Pos, _OFFSET, signed=True)
        return self._number(table + slot, 2) if slot < self._number(table, 2) else 0

    def int32(self, slot: int) -> int:
        """A field of 32 bits; 0 where it is absent."""
        field = self.Offset(slot)
        return self._number(self.Pos + field, 4, signed=True) if field else 0

    def Indirect(self, place: int) -> int:
        """Where the offset at a place leads."""
        target = place + self._number(place, _OFFSET)
        if target > len(self.Bytes):
            raise damaged(f"something at byte {target} of {len(self.Bytes)}")
        return target

    def Vector(self, field: int) -> int:
        """Where the elements of a vector begin."""
        return self.Indirect(self.Pos + field) + _OFFSET

    def VectorLen(self, field: int) -> int:
        """How many elements a vector has; each takes a byte at least."""
        length = self._number(self.Indirect(self.Pos + field), _OFFSET)
        if length > len(self.Bytes):
            raise damaged(f"a list of {length} elements")
        return length

    def String(self, place: int) -> bytes:
        """The bytes of a string."""
        start = self.Indirect(place)
        return self._span(start + _OFFSET, self._number(start, _OFFSET)).tobytes()

    def GetVectorAsNumpy(self, flags: Any, field: int) -> NDArray[Any]:
        """A view of a vector of numbers."""
        size = self.VectorLen(field) * flags.bytewidth
        return self._span(self.Vector(field), size).view(np.dtype(flags.packer_type.format))

    def Union(self, table: Any, field: int) -> None:
        """Lead a table to the one that a field refers to."""
        table.Bytes, table.Pos = self.Bytes, self.Indirect(self.Pos + field)

    def _span(self, start: int, size: int) -> NDArray[np.uint8]:
        if not 0 <= start <= len(self.Bytes) - size:
            raise damaged(f"{size} bytes at byte {start} of {len(self.Bytes)}")
        self.budget.spend(size)
        return np.frombuffer(self.Bytes, np.uint8, size, start)


def guarded(table: Any, data: bytes, position: int, budget: Budget) -> Any:
    """An object of a generated class, reading through a guard."""
    table._tab = Guard(data, position, budget)
    return table
