"""Programs against the interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.ir.build import build
from qbench.ir.dtypes import is_float
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.kernels.levels import Level, supported
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan

LEVELS = supported()


def assert_agree(
    graph: Graph,
    feeds: Mapping[str, NDArray[np.generic]],
    *,
    keep: Iterable[str] = (),
    level: Level | None = None,
    threads: int = 1,
    fallbacks: int = 0,
    sizes: Mapping[str, int] | None = None,
    magnitude: float = 1e-30,
    exact: bool = False,
) -> None:
    """A program gives the interpreter's integers, bit for bit, and its floats within 1e-5 of the largest.

    float16 within 2e-3, since a rounding to it may go the other way. So many steps are left to the interpreter. Where
    terms cancel, `magnitude` is how large they were; with `exact` floats have the same bits. The same where its images
    are parts of larger ones.
    """
    kept = tuple(keep)
    for here, fed in ((graph, feeds), *([] if sizes else [cut(graph, feeds, axis) for axis in (1, 2, 3)])):
        program = plan(here, keep=kept, level=level, sizes=sizes)
        assert len(program.fallbacks) == fallbacks, program.fallbacks
        wanted = run(here, fed, kept)
        got = program.run(fed, keep=kept, threads=threads)
        assert list(got) == list(wanted)
        for name, array in wanted.items():
            assert got[name].dtype == array.dtype
            assert got[name].shape == array.shape
            if is_float(graph.types[name].dtype) and not exact:
                step = 2e-3 if array.dtype == np.float16 else 1e-5
                largest = np.abs(array.astype(np.float64)).max(initial=magnitude)
                np.testing.assert_allclose(got[name] / largest, array / largest, rtol=0, atol=step)
            else:
                np.testing.assert_array_equal(got[name], array)


def cut(
    graph: Graph, feeds: Mapping[str, NDArray[np.generic]], axis: int
) -> tuple[Graph, Mapping[str, NDArray[np.generic]]]:
    """The same where images that enter are cut out of others, of three more elements along an axis."""
    inputs, cuts, fed, qparams = graph.input_types(), list[Node](), dict(feeds), dict(graph.qparams)
    for name, kind in graph.input_types().items():
        array = fed[name]
        if len(kind.shape) != 4 or array.size == 0:
            continue
        whole, size = f"{name}.whole", array.shape[axis]
        del inputs[name], fed[name]
        around = np.take(array, np.arange(-1, size + 2) % size, axis)
        fed[whole], inputs[whole] = around, TensorType(around.shape, kind.dtype)
        ends = {"begin": (1,), "end": (1 + size,), "strides": (1,), "axes": (axis,)}
        cuts.append(Node(f"{name}.cut", "strided_slice", (whole,), (name,), FrozenMap(ends)))
        if name in qparams:
            qparams[whole] = qparams[name]
    return build("cut", inputs, graph.outputs, [*cuts, *graph.nodes], graph.constants, qparams), fed
