"""The types of a model's inputs: the file's, or the user's, every open size with a name."""

import re
from collections.abc import Iterable, Mapping, Sequence

from qbench.errors import ModelError, shown
from qbench.frontends.onnx.source import SourceInput
from qbench.frontends.sizes import check_shape
from qbench.ir.dtypes import DTYPES, is_dtype
from qbench.ir.types import Dim, TensorType, dims_replaced


def input_types(
    inputs: Iterable[SourceInput], shapes: Mapping[str, Sequence[Dim]], known: Mapping[str, Dim]
) -> dict[str, TensorType]:
    """The type of each input by name.

    Parameters
    ----------
    inputs
        As the file has them.
    shapes
        Shapes in place of the file's.
    known
        What symbols must stand for, as the network showed.
    """
    symbols = _Symbols()
    return {one.name: _type_of(one, shapes.get(one.name), symbols, known) for one in inputs}


def _type_of(
    source: SourceInput, override: Sequence[Dim] | None, symbols: "_Symbols", known: Mapping[str, Dim]
) -> TensorType:
    if not is_dtype(source.dtype):
        raise ModelError(f"input {shown(source.name)} is {source.dtype}, which is not one of {', '.join(DTYPES)}")
    if override is not None:
        check_shape(source.name, override, None if source.shape is None else len(source.shape))
        return TensorType(dims_replaced(override, known), source.dtype)
    if source.shape is None:
        raise ModelError(f"input {shown(source.name)} has no shape: give one with shapes={{name: (...)}}")
    rank = len(source.shape)
    sizes: list[Dim] = []
    for axis, size in enumerate(source.shape):
        told = isinstance(size, int) and (size > 0 or (size == 0 and axis > 0))
        sizes.append(size if isinstance(size, int) and told else symbols.of(size, axis, rank))
    return TensorType(dims_replaced(sizes, known), source.dtype)


_NAMELESS = re.compile(r"[^A-Za-z0-9]*|none|unk__[0-9]+", re.IGNORECASE)
"""What exporters write for a size that has no name; tf2onnx counts them."""


class _Symbols:
    """Names for sizes that the file leaves open. The first size of every input is the same batch unless named."""

    def __init__(self) -> None:
        self._by_param: dict[str, str] = {}

    def of(self, size: int | str | None, axis: int, rank: int) -> str:
        if isinstance(size, str) and not re.fullmatch(_NAMELESS, size):
            return self._named(size)
        if axis == 0:
            return self._named("N")
        return self._named(
            f"?{len(self._by_param)}", {2: "H", 3: "W"}.get(axis, f"D{axis}") if rank == 4 else f"D{axis}"
        )

    def _named(self, param: str, wish: str | None = None) -> str:
        if param not in self._by_param:
            base = symbol = re.sub(r"[^A-Za-z0-9_]", "_", wish or param)[:60]
            if base[0].isdigit():
                base = symbol = f"_{base}"
            count = 0
            while symbol in self._by_param.values():
                count += 1
                symbol = f"{base}_{count}"
            self._by_param[param] = symbol
        return self._by_param[param]
