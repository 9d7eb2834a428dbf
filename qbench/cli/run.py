"""``qbench run ARCHIVE --input X --output Y.npz``: run a saved graph on data."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.cli.options import (
    DATA,
    add_image_options,
    add_shape_option,
    check_image_options,
    check_writable,
    read_data,
    read_graph,
)
from qbench.data.arrays import write_arrays
from qbench.data.dataset import Dataset
from qbench.errors import shown
from qbench.ir.dtypes import dtype_of, is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import is_op
from qbench.ir.types import dim_factors
from qbench.ops.qnn.border import Dequantize
from qbench.progress import showing
from qbench.runtime.programs import Programs

_ALL = 1 << 62


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help=".qbench archive: its integers run as they are")
    parser.add_argument("--input", type=Path, required=True, metavar="X", help=DATA)
    parser.add_argument("--output", type=Path, required=True, metavar="Y.npz", help="an array for each output, by name")
    parser.add_argument("--raw", action="store_true", help="write the integers that stand for the outputs")
    add_image_options(parser)
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    check_image_options(options, options.input)
    check_writable("--output", options.output)
    graph = read_graph(options.archive, options)
    names = _with_integers(graph) if options.raw else {name: name for name in graph.outputs}
    data = read_data(options.input, options, graph).x
    is_open = all(shape and dim_factors(shape[0])[1] for shape in (graph.types[v].shape for v in names.values()))
    dataset = Dataset(graph, data, what="input", batch=None if is_open else _ALL)
    programs = Programs(graph, names.values())
    pieces: list[dict[str, NDArray[Any]]] = []
    with showing() as told:
        for chunk in dataset.chunks():
            found = programs.of(chunk.feeds).run(chunk.feeds, keep=names.values())
            pieces.append({value: found[value] for value in names.values()})
            told("running", chunk.stop, dataset.samples)
    write_arrays(options.output, {name: _joined([piece[value] for piece in pieces]) for name, value in names.items()})


def _with_integers(graph: Graph) -> dict[str, str]:
    """For each output the value that holds its integers; for one computed in float, also the integers it comes from."""
    names: dict[str, str] = {}
    for name in graph.outputs:
        borders = _borders(graph, name)
        producer = graph.producers.get(name)
        if producer is not None and is_op(producer, Dequantize):
            names[name] = producer.inputs[0]
            continue
        names |= {name: name} | {border: border for border in borders}
        if is_float(graph.types[name].dtype):
            told = f" and the integers that they come from, {', '.join(map(shown, borders))}" if borders else ""
            print(f"qbench: output {shown(name)} is computed in float: writing its real values{told}", file=sys.stderr)
    return names


def _borders(graph: Graph, output: str) -> list[str]:
    """The integer values from which the float part of a graph computes an output."""
    found: dict[str, None] = {}
    seen, waiting = {output}, [output]
    while waiting:
        producer = graph.producers.get(waiting.pop())
        if producer is None:
            continue
        if is_op(producer, Dequantize):
            found[producer.inputs[0]] = None
            continue
        waiting += [value for value in producer.inputs if value not in seen]
        seen.update(producer.inputs)
    return list(found)


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    whole = pieces[0] if len(pieces) == 1 else np.concatenate([np.atleast_1d(piece) for piece in pieces])
    if dtype_of(whole.dtype) in ("int4", "uint4"):  # NumPy's files have neither them nor bfloat16
        return whole.astype(np.int8)
    return whole.astype(np.float32) if whole.dtype == numpy_dtype("bfloat16") else whole
