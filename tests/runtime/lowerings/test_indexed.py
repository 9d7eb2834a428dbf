"""Parts picked by indices that a run brings, against the interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.errors import DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.layers import node

RNG = np.random.default_rng(0)


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    axis=st.integers(0, 3),
    places=st.lists(st.integers(1, 4), max_size=2),
    constant=st.booleans(),
    kind=st.sampled_from(["int32", "int64"]),
)
def test_take(shape: list[int], axis: int, places: list[int], constant: bool, kind: str) -> None:
    axis %= len(shape)
    data = RNG.normal(size=shape).astype(np.float32)
    arrays = {"i": RNG.integers(-shape[axis], shape[axis], places).astype(kind)}
    held = {"d": data} if constant else {}
    arrays |= {} if constant else {"d": data}
    assert_agree(graph_of(arrays, [node("take", "d i", "y", axis=axis)], "y", **held), arrays, threads=2)


@pytest.mark.parametrize("shape, batch", [((2, 6, 2), 0), ((3, 2, 1), 1), ((3, 5, 4, 1), 2), ((4,), 0)])
def test_gather_nd(shape: tuple[int, ...], batch: int) -> None:
    data = RNG.normal(size=(3, 5, 4, 6)).astype(np.float32)
    limits = np.array(data.shape[batch : batch + shape[-1]])
    arrays = {"d": data, "i": RNG.integers(-limits, limits, shape)}
    assert_agree(graph_of(arrays, [node("gather_nd", "d i", "y", batch_dims=batch)], "y"), arrays, threads=2)


@pytest.mark.parametrize("bad", [7, -8, 2**40])
def test_what_points_beyond_is_told_with_its_sample(bad: int) -> None:
    indices = RNG.integers(-7, 7, (3, 4))
    nodes = [node("take", "w i", "t"), node("nn.relu", "t", "y")]
    kind, table = TensorType(("N", 4), "int64"), Constant(np.eye(7, dtype=np.float32))
    program = plan(build("test", {"i": kind}, ("y",), nodes, {"w": table}))
    good = program.run({"i": indices})["y"]
    indices[2, 1] = bad
    with pytest.raises(DataError, match="step 't': indices 'i' point beyond the size 7, in sample 2 of the run"):
        program.run({"i": indices})
    indices[2, 1] = 0
    assert np.array_equal(program.run({"i": indices})["y"][:2], good[:2])
