"""What is run under stress: random networks, and real ones in float and in integers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from numpy.typing import NDArray

import qbench as qb
from qbench.errors import QBenchError
from qbench.ir.batch import batch_symbol
from qbench.ir.dtypes import is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.specialize import open_symbols, specialize
from qbench.passes.annotate import AnnotatePass
from qbench.passes.legalize import LegalizePass
from qbench.passes.realize import RealizePass
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams
from tests.passes.random_graphs import networks

OPEN_SIZE = 8
_ROUNDING, _DTYPES = "tflite_single", ("uint8", "int8", "int16")


@dataclass(frozen=True)
class Case:
    """A graph, and what is fed to it."""

    name: str
    graph: Graph
    feeds: dict[str, NDArray[np.generic]]


def random_cases(seed: int, count: int, samples: int) -> list[Case]:
    """Random networks, in float and in integers by turns, that give finite numbers."""
    drawn: list[Graph] = []
    settings_ = settings(
        max_examples=2 * count, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    hypothesis.seed(seed)(settings_(hypothesis.given(graph=networks())(lambda graph: drawn.append(graph))))()
    found: list[Case] = []
    for number, graph in enumerate(drawn[-count:]):  # the first are the simplest
        feeds = numbers(graph, samples, seed + number)
        values = every_value(graph, feeds)
        if not all(np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e6 for array in values.values()):
            continue
        if number % 2:
            annotated = AnnotatePass()(graph)
            q = min_max_qparams(annotated, values, _DTYPES[number % len(_DTYPES)], True, "int8", (False, True))
            graph = LegalizePass()(RealizePass(_ROUNDING)(bind_qparams(annotated, q)))
        found.append(Case(f"random {number} of seed {seed}", graph, feeds))
    return found


def real_cases(paths: list[Path], samples: int) -> Iterator[Case]:
    """Each model, with a number for each size that it leaves open: as it is, and quantized where it is not."""
    for path in paths:
        try:
            graph = qb.load(path)
            batch = batch_symbol(graph)
            sizes = {symbol: symbol if symbol == batch else OPEN_SIZE for symbol in open_symbols(graph)}
            graph = specialize(graph, sizes)
            feeds = numbers(graph, samples, 0)
            session = qb.Session(graph, feeds)
            integers = session.graph
        except QBenchError:  # tests of the importers say what is wrong
            continue
        yield Case(path.name, graph, feeds)
        if not session.is_imported:
            yield Case(f"{path.name} in int8", integers, feeds)


def numbers(graph: Graph, samples: int, seed: int) -> dict[str, NDArray[np.generic]]:
    """So many random samples of a graph whose other sizes are known."""
    rng = np.random.default_rng(seed)

    def made(name: str) -> NDArray[np.generic]:
        kind = graph.types[name]
        shape = tuple(samples if isinstance(size, str) else size for size in kind.shape)
        real = rng.normal(size=shape) if is_float(kind.dtype) else rng.integers(0, 100, shape)
        return real.astype(numpy_dtype(kind.dtype))

    return {name: made(name) for name in graph.inputs}


def models(folder: Path, seed: int) -> list[Path]:
    """The models that there are, in an order of the seed's choice; none where the folder is absent."""
    found = sorted(path for path in folder.glob("models/*/*") if path.suffix in (".onnx", ".tflite"))
    random.Random(seed).shuffle(found)
    return found
