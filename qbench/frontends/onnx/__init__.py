"""ONNX models to graphs; importing this package finds all converters, a file for each family of operators."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from numpy.typing import ArrayLike

from qbench.frontends.onnx.importer import import_model
from qbench.frontends.onnx.reading import read_model
from qbench.ir.graph import Graph
from qbench.ir.types import Dim
from qbench.passes.qdq_to_qnn import QdqToQnnPass
from qbench.quant.semantics import Semantics

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)


def load_onnx(
    path: Path,
    shapes: Mapping[str, Sequence[Dim]],
    semantics: Semantics = "onnx",
    *,
    values: Mapping[str, ArrayLike] | None = None,
    outputs: Sequence[str] | None = None,
) -> Graph:
    """Read an ONNX file (opsets 7 to 28) into a graph; see :func:`qbench.frontends.load`."""
    source = read_model(path)
    source = source if outputs is None else source.with_outputs(outputs)
    return QdqToQnnPass(semantics)(import_model(source, shapes, values))
