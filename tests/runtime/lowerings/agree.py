"""Programs against the interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level, supported
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan

LEVELS = [level for level in supported() if level in ISAS or level is Level.PORTABLE]


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
) -> None:
    """A program gives the interpreter's integers, bit for bit, and its floats within 1e-5 of the largest.

    float16 within 2e-3, since a rounding to it may go the other way. So many steps are left to the interpreter. Where
    terms cancel, `magnitude` is how large they were.
    """
    program = plan(graph, keep=keep, level=level, sizes=sizes)
    assert len(program.fallbacks) == fallbacks, program.fallbacks
    wanted = run(graph, feeds, keep)
    got = program.run(feeds, keep=keep, threads=threads)
    assert list(got) == list(wanted)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        if is_float(graph.types[name].dtype):
            step = 2e-3 if array.dtype == np.float16 else 1e-5
            largest = np.abs(array.astype(np.float64)).max(initial=magnitude)
            np.testing.assert_allclose(got[name] / largest, array / largest, rtol=0, atol=step)
        else:
            np.testing.assert_array_equal(got[name], array)
