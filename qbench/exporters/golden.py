"""Golden vectors: what every layer makes of some inputs, for whoever writes its kernels for another machine."""

from os import PathLike
from pathlib import Path

import numpy as np

from qbench.data.arrays import write_arrays
from qbench.data.dataset import Dataset
from qbench.errors import DataError, shown
from qbench.exporters.c_header import write_header
from qbench.files import replacing
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.progress import Progress
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs


def golden(
    program: Graph | Program,
    data: object,
    folder: str | PathLike[str],
    *,
    name: str = "golden",
    constants: bool = False,
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Run some samples, and write every value on the way as ``NAME.npz`` and as the C header ``NAME.h``.

    Parameters
    ----------
    program
        A graph or its program; integers of a quantized one, real numbers of a float one.
    data
        As for a session; keep it small, since every value of every sample is written.
    folder
        Made if need be.
    name
        Of the files, and before every identifier in the header.
    constants
        Whether to write the weights, biases, multipliers and tables as well.
    progress
        Told how many samples are done.

    Returns
    -------
    tuple of Path
        The ``.npz``, which :class:`qbench.parity.Recorded` reads, and the header: an array for each value, all samples
        one after the other, row-major, in the layout of the graph.

    Raises
    ------
    DataError
        Data that do not fit, or a name with folders in it.
    """
    graph, place = program.graph if isinstance(program, Program) else program, Path(folder)
    if not name or Path(name).name != name:
        raise DataError(f"name={shown(name)} is no name of files in a folder")
    place.mkdir(parents=True, exist_ok=True)
    values = _values(graph, data, progress)
    if constants:
        values |= {key: constant.array for key, constant in graph.constants.items()}
    arrays, header = place / f"{name}.npz", place / f"{name}.h"
    plain = {key: _plain(graph, key, array) for key, array in values.items()}
    write_arrays(arrays, plain)
    with replacing(header) as temporary, temporary.open("w", encoding="ascii", newline="\n") as stream:
        write_header(stream, graph, plain, name)
    return arrays, header


def _values(graph: Graph, data: object, progress: Progress | None) -> dict[str, Array]:
    """Inputs and everything made of them, for all samples."""
    dataset = Dataset(graph, data, what="input")
    pieces: dict[str, list[Array]] = {name: [] for name in graph.activations()}
    made = [name for name in pieces if name not in graph.inputs]
    programs = Programs(graph, keep=made)
    for chunk in dataset.chunks():
        for name, array in {**chunk.feeds, **programs.of(chunk.feeds).run(chunk.feeds, keep=made)}.items():
            pieces[name].append(array)
        if progress is not None:
            progress(chunk.stop, dataset.samples)
    return {name: np.concatenate([np.atleast_1d(array) for array in arrays]) for name, arrays in pieces.items()}


def _plain(graph: Graph, name: str, array: Array) -> Array:
    """In a type that NumPy's files and C have: 4 bits in 8, half precision in single."""
    dtype = graph.types[name].dtype
    if is_float(dtype):
        return array.astype(np.float32)
    return array.astype(np.int8 if dtype == "int4" else np.uint8) if dtype in ("int4", "uint4", "bool") else array
