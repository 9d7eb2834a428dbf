"""Reading models: the only rooms that know file formats."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from qbench.errors import ModelError, check_kind
from qbench.frontends.onnx import load_onnx
from qbench.frontends.tflite import is_tflite, load_tflite
from qbench.ir import archive
from qbench.ir.graph import Graph
from qbench.ir.types import Dim
from qbench.quant.semantics import SEMANTICS, Semantics


def load(
    path: str | PathLike[str],
    *,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
    outputs: Sequence[str] | None = None,
    semantics: Semantics | None = None,
    layout: Literal["NCHW"] | None = None,
) -> Graph:
    """Read a model file; what it holds decides, not what it is called.

    Parameters
    ----------
    path
        An ONNX model (external data must lie in the same folder), a TFLite model, or the folder of a qbench archive.
    shapes
        Shapes of inputs by name, in place of those that the file states: for files that leave sizes open.
    values
        Inputs of an ONNX model that always have the same value, by name: a sampling rate, a flag that says which half
        of a merged decoder runs. They become constants, and what hangs on them is folded.
    outputs
        Values of an ONNX model to end at, by name, in place of the file's outputs: what lies behind them is left out.
        Without it, a graph ends by itself before what makes as many values as only the run knows, such as a detector's
        choice among its boxes; that stays with it as it is, and :func:`qbench.export_onnx` puts it back.
    semantics
        Whose arithmetic the quantized ops get: by default that of TFLite's reference kernels for a TFLite model, and of
        onnxruntime for an ONNX model.
    layout
        ``"NCHW"`` turns the images that a TFLite model takes and gives, whose channels are last, to channels first.
        Everything between is so in any case.

    Returns
    -------
    Graph
        Float ops, and for files that are quantized already ops of the qnn dialect; names are the file's.

    Raises
    ------
    ModelError
        The file cannot be read or says something that qbench does not understand.
    UnsupportedOpsError
        The model uses ops without a meaning in qbench; the message lists all such nodes.
    """
    if semantics not in (None, *SEMANTICS):
        raise ModelError(f"semantics={semantics!r} is none of {', '.join(SEMANTICS)}")
    if layout not in (None, "NCHW"):
        raise ModelError(f"layout={layout!r} is not 'NCHW'; without one, images keep the file's layout")
    check_kind(path, (str, PathLike), ModelError, "a model is read from a path, not {}")
    for what, given in (("shapes", shapes), ("values", values)):
        check_kind(given, (Mapping, NoneType), ModelError, f"{what}= goes by the names of inputs: a dict, not {{}}")
    check_kind(outputs, (list, tuple, NoneType), ModelError, "outputs= takes the names of values in a list, not {}")
    if archive.is_archive(path):
        return archive.load(path)
    # Scales at the ends of float32 give infinity or zero on the way to an error, and no warning.
    with np.errstate(all="ignore"):
        if is_tflite(Path(path)):
            if values:
                raise ModelError("values: inputs of a TFLite model cannot be fixed; export the function that is wanted")
            if outputs is not None:
                raise ModelError("outputs: those of a TFLite model are the file's")
            graph = load_tflite(Path(path), shapes or {}, semantics or "tflite", to_nchw=layout == "NCHW")
        else:
            graph = load_onnx(Path(path), shapes or {}, semantics or "onnx", values=values, outputs=outputs)
    stem = Path(path).stem.encode("utf-8", "replace")  # a file's name may be bytes that are no text
    return replace(graph, file=stem.decode())
