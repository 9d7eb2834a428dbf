"""Comparing an imported graph with LiteRT, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.runtime.interpreter import run
from tests.tflite_files import Resolver, litert

Array = np.ndarray[Any, Any]


def save(data: bytes, folder: Path, name: str = "model.tflite") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def in_file_layout(graph: Graph, name: str, array: Array) -> Array:
    """What the graph has as NCHW, as the file has it."""
    inner = name not in (*graph.inputs, *graph.outputs)
    return array.transpose(0, 2, 3, 1) if inner and array.ndim == 4 else array


def shared_values(graph: Graph, theirs: Mapping[str, Array]) -> list[str]:
    """Activations that the graph and the runtime both have, by name."""
    return [name for name in graph.activations() if name in theirs]


def check(
    path: Path,
    feeds: Mapping[str, Array],
    tolerance: float = 1e-5,
    resolver: Resolver = "BUILTIN_REF",
    **options: Any,
) -> Graph:
    """Import, run, and compare every tensor: floats within `tolerance` of the largest, integers to the last bit."""
    graph = load(path, **options)
    theirs = litert(path.read_bytes(), feeds, resolver)
    names = shared_values(graph, theirs)
    assert set(graph.outputs) <= set(names)
    ours = run(graph, feeds, keep=names)
    for name in names:
        got, want = in_file_layout(graph, name, ours[name]), theirs[name]
        assert (got.shape, got.dtype) == (want.shape, want.dtype), name
        if got.dtype.kind != "f":
            assert np.array_equal(got, want), f"{name}: {(got != want).sum()} of {got.size} differ"
            continue
        largest = np.abs(want).max(initial=1e-30)
        error = np.abs(got.astype(np.float64) - want).max(initial=0)
        assert error <= tolerance * largest, f"{name}: {error} of {largest}"
    return graph
