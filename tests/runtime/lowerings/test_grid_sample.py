"""Images read at places that a run brings, against the interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.kernels.levels import Level
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import node

RNG = np.random.default_rng(0)
METHODS = st.sampled_from(["linear", "nearest"])
PADDINGS = st.sampled_from(["zeros", "border", "reflection"])


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 3), channels=st.sampled_from([1, 3, 17]), size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    out=st.tuples(st.integers(1, 5), st.integers(1, 5)), wide=st.sampled_from([1.0, 1.3, 40.0, 1e6]), method=METHODS,
    padding=PADDINGS, align_corners=st.booleans(), level=st.sampled_from(LEVELS), threads=st.integers(1, 3),
    constant=st.sampled_from(["", "x", "g"]),
)  # fmt: skip
def test_grid_sample(
    n: int, channels: int, size: tuple[int, int], out: tuple[int, int], wide: float, method: str, padding: str,
    align_corners: bool, level: Level, threads: int, constant: str,
) -> None:  # fmt: skip
    feeds = {"x": RNG.normal(size=(n, channels, *size)).astype(np.float32)}
    feeds["g"] = (RNG.uniform(-wide, wide, (n, *out, 2)) if wide > 1 else RNG.integers(-2, 3, (n, *out, 2)) / 2).astype(
        "f4"
    )
    made = node("image.grid_sample", "x g", "y", method=method, padding=padding, align_corners=align_corners)
    constants = {constant: feeds.pop(constant)} if constant else {}
    assert_agree(graph_of(feeds, [made], "y", **constants), feeds, level=level, threads=threads)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_places_that_are_no_numbers_read_within_the_image(method: str, padding: str) -> None:
    """NaN and infinity are made on the way; what is read there does not matter, but that it is read inside does."""
    feeds = {"x": np.ones((1, 2, 3, 4), np.float32), "g": np.zeros((1, 2, 2, 2), np.float32)}
    feeds["g"][0, 0] = [[-1, -1], [-1, 1]]
    feeds["g"][0, 1, 0] = 1
    nodes = [
        node("log", "g", "l"),
        node("divide", "l g", "p"),
        node("image.grid_sample", "x p", "y", method=method, padding=padding),
    ]
    program = plan(graph_of(feeds, nodes, "y"))
    assert not program.fallbacks
    y = program.run(feeds)["y"]
    assert np.isin(y[np.isfinite(y)], [0, 0.25, 0.5, 1]).all()
