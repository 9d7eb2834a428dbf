"""Any network, quantized in any way, on any level and number of threads: programs give the interpreter's bits.

Each step is judged by itself, on the values that the interpreter made before it: integers are equal, floats within
1e-5. Once with every value kept, so that nothing is fused, and once fused.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.kernels.levels import Level
from qbench.passes.float16 import Float16Pass
from qbench.passes.legalize import LegalizePass
from qbench.runtime.program import Program
from qbench.runtime.programs import plan
from tests.passes.calibrated import Calibrated, Values, calibrated, feeds_of
from tests.passes.quantizable import every_value
from tests.passes.random_graphs import BUILDERS, behind_a_cut, networks
from tests.runtime.lowerings.agree import LEVELS


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    network=calibrated(
        ("uint8", "int8", "uint8", "int8", "int16"), ("int8", "int8", "uint8", "int16", "int4", "uint4")
    ),
    threads=st.integers(1, 3),
)
def test_quantized_networks(level: Level, network: Calibrated, threads: int) -> None:
    check(LegalizePass()(network.realized), network.feeds, level, threads)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=networks(), half=st.booleans(), samples=st.integers(1, 3), threads=st.integers(1, 3))
def test_float_networks(level: Level, graph: Graph, half: bool, samples: int, threads: int) -> None:
    check(Float16Pass()(graph) if half else graph, feeds_of(graph, samples), level, threads)


@pytest.mark.parametrize("builder", range(len(BUILDERS)))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data(), threads=st.integers(1, 3), level=st.sampled_from(LEVELS))
def test_what_is_read_and_made_is_part_of_something_larger(
    builder: int, data: st.DataObject, threads: int, level: Level
) -> None:
    graphs = behind_a_cut(tuple(BUILDERS)[builder])
    network = data.draw(calibrated(("uint8", "int8", "int16"), ("int8", "uint8"), graphs))
    check(LegalizePass()(network.realized), network.feeds, level, threads)
    check(network.graph, network.feeds, level, threads)


def check(graph: Graph, feeds: Values, level: Level, threads: int) -> None:
    values = every_value(graph, feeds)
    assume(all(np.isfinite(array).all() for array in values.values() if array.dtype.kind == "f"))
    everything = [name for node in graph.nodes for name in node.outputs]
    for program in (plan(graph, level=level), plan(graph, keep=everything, level=level)):
        check_steps(program, values, threads)


def check_steps(program: Program, values: Values, threads: int) -> None:
    for step in program.steps:
        made = [name for name in step.outputs if name in program.graph.types]
        known = {name: array for name, array in values.items() if name in step.inputs and name not in made}
        known |= {name: values[name] for name in program.graph.inputs}
        start = {name: array for name, array in known.items() if name not in program.graph.constants}
        outputs = {name: values[name] for name in program.graph.outputs if name not in made}
        if not made or not all(is_made(program, name) for name in (*start, *outputs)):
            continue
        got = program.run(start={**outputs, **start}, keep=made, threads=threads)
        for name in made:
            compare(program.graph, name, got[name], values[name])


def is_made(program: Program, name: str) -> bool:
    return name in program.graph.inputs or any(name in step.outputs for step in program.steps)


def compare(graph: Graph, name: str, got: NDArray[np.generic], wanted: NDArray[np.generic]) -> None:
    assert got.dtype == wanted.dtype, name
    assert got.shape == wanted.shape, name
    if is_float(graph.types[name].dtype):
        largest = np.abs(wanted.astype(np.float64)).max(initial=1e-30)
        steps = 1e-3 if graph.types[name].dtype == "float16" else 1e-5
        np.testing.assert_allclose(got / largest, wanted / largest, rtol=0, atol=steps, err_msg=name)
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=name)
