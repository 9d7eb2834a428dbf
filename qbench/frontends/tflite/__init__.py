"""TFLite models to graphs; importing this package finds all converters, a file for each family of operators."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from qbench.errors import ModelError, shown
from qbench.frontends.tflite.importer import import_model
from qbench.frontends.tflite.reading import read_model
from qbench.ir.graph import Graph
from qbench.ir.types import Dim
from qbench.passes.qdq_to_qnn import QdqToQnnPass
from qbench.quant.semantics import Semantics

_IDENTIFIER = b"TFL3"

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)


def is_tflite(path: Path) -> bool:
    """Whether a file says that it is a TFLite model."""
    try:
        with path.open("rb") as file:
            return file.read(8)[4:] == _IDENTIFIER
    except (OSError, ValueError):  # whoever reads it next says why it cannot be read
        return False


def load_tflite(
    path: Path, shapes: Mapping[str, Sequence[Dim]], semantics: Semantics = "tflite", *, to_nchw: bool = False
) -> Graph:
    """Read a TFLite file into a graph; see :func:`qbench.frontends.load`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {shown(str(path))}: {error.strerror or error}") from None
    try:
        model = read_model(data, path.stem)
    except ModelError as error:
        raise ModelError(f"{shown(str(path))}: {error}") from error
    graph = import_model(model, shapes, semantics, to_nchw=to_nchw)
    return graph if semantics == "tflite" else QdqToQnnPass(semantics)(graph)
