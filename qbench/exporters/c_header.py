"""Arrays as a C header that any C99 or C++ compiler takes, whatever the model's names are."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import TextIO

import numpy as np

from qbench.errors import shown
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.ir.qparams import QParams

_LONGEST = 60
_ROW = 4096  # elements that are written at a time
_WIDTH = 110


def write_header(stream: TextIO, graph: Graph, arrays: Mapping[str, Array], prefix: str) -> None:
    """Write an array for each value, with what it is and what its integers mean in a comment before it.

    Parameters
    ----------
    stream
        Takes ASCII.
    graph
        Says where each value comes from.
    arrays
        By value name; integers of 8, 16, 32 or 64 bits, or float32.
    prefix
        Before each identifier.
    """
    names = _Names(prefix)
    guard = f"{names.prefix}_H_INCLUDED".upper()
    integers = any(array.dtype.kind in "iu" for array in arrays.values())
    special = any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in arrays.values())
    _comment(stream, f"Golden vectors of the model {shown(graph.name)}: all samples one after the other, row-major.")
    stream.write(f"#ifndef {guard}\n#define {guard}\n\n")
    stream.write("#include <stdint.h>\n" * integers + "#include <math.h>\n" * special)
    for name, array in arrays.items():
        identifier = names.of(name)
        stream.write("\n")
        _comment(stream, _told(graph, name, array))
        stream.write(f"#define {identifier.upper()}_SIZE {array.size}\n")
        if array.size:
            stream.write(f"static const {_type(array)} {identifier}[{array.size}] = {{\n")
            for row in _rows(array):
                stream.write(f"{row}\n")
            stream.write("};\n")
    stream.write(f"\n#endif /* {guard} */\n")


class _Names:
    """Makes names of values into identifiers: letters, digits and underscores, no two alike even in capitals."""

    def __init__(self, prefix: str) -> None:
        self.prefix = re.sub(r"[^0-9a-z_]", "_", prefix.lower()) or "golden"  # lower: no macro is called so
        if self.prefix[0] in "0123456789_":
            self.prefix = f"golden_{self.prefix}"
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        """The identifier of one more value."""
        base = f"{self.prefix}_{re.sub(r'[^0-9A-Za-z]+', '_', name).strip('_')[:_LONGEST] or 'value'}"
        result, count = base, 1
        while result.upper() in self._taken:
            count += 1
            result = f"{base}_v{count}"
        self._taken.add(result.upper())
        return result


def _told(graph: Graph, name: str, array: Array) -> str:
    producer = graph.producers.get(name)
    made = "constant" if name in graph.constants else "input" if producer is None else f"made by {producer.op}"
    shape = "x".join(map(str, array.shape)) or "scalar"
    q = graph.qparams.get(name)
    return f"{shown(name)}: {made}, {graph.types[name].dtype}, {shape}{'' if q is None else f'; {_meaning(q)}'}"


def _meaning(q: QParams) -> str:
    if q.axis is None:
        return f"scale {q.scales[0]!r}, zero point {q.zero_points[0]}"
    scales, zero_points = (", ".join(map(repr, values)) for values in (q.scales, q.zero_points))
    return f"along axis {q.axis}: scales {scales}; zero points {zero_points}"


def _comment(stream: TextIO, text: str) -> None:
    """A comment that its text cannot end, nor begin another one in."""
    plain = text.encode("ascii", "backslashreplace").decode("ascii")
    plain = plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
    lines = textwrap.wrap(plain, _WIDTH, break_on_hyphens=False)
    stream.write("/* " + "\n * ".join(line.rstrip("\\") for line in lines) + " */\n")


def _type(array: Array) -> str:
    return "float" if array.dtype.kind == "f" else f"{array.dtype.name}_t"


def _rows(array: Array) -> Iterator[str]:
    """The elements as literals, some of them at a time."""
    flat = array.reshape(-1)
    literal = _real if array.dtype.kind == "f" else _wide if array.dtype.itemsize == 8 else _integer
    for start in range(0, flat.size, _ROW):
        literals = [literal(value) for value in flat[start : start + _ROW].tolist()]
        yield textwrap.fill(", ".join(literals) + ",", _WIDTH, break_long_words=False)


def _integer(value: int) -> str:
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)


def _wide(value: int) -> str:
    return "INT64_MIN" if value == -(2**63) else f"INT64_C({value})"


def _real(value: float) -> str:
    """Nine digits give a float32 back exactly."""
    if not np.isfinite(value):
        return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    text = f"{value:.9g}"
    return f"{text}f" if set(text) & set(".en") else f"{text}.0f"
