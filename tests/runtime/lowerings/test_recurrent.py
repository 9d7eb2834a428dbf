"""Recurrent layers as programs, against the interpreter."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.kernels.levels import Level
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree

SIZES = st.integers(1, 9)
CELLS = [
    ("lstm", 4, None, ()),
    ("lstm", 4, None, ("p",)),
    ("rnn", 1, None, ()),
    ("gru", 3, False, ()),
    ("gru", 3, True, ()),
]
Stored = tuple[Node, dict[str, np.ndarray], tuple[str, ...]]


@pytest.mark.parametrize("cell, gates, linear, peepholes", CELLS)
@settings(max_examples=15)
@given(
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    sizes=st.tuples(SIZES, st.integers(1, 3), SIZES, SIZES),
    threads=st.integers(1, 2),
)
def test_each_cell(
    cell: str,
    gates: int,
    linear: bool | None,
    peepholes: tuple[str, ...],
    direction: str,
    sizes: tuple[int, int, int, int],
    threads: int,
) -> None:
    (steps, n, inputs, units), rng = sizes, np.random.default_rng(0)
    ways, rows = 2 if direction == "bidirectional" else 1, gates * units
    shapes = {"k": (ways, rows, inputs), "r": (ways, rows, units), "o": (ways, 2 * rows), "second": (ways, n, units)}
    shapes |= dict.fromkeys(peepholes, (ways, 3 * units))
    held = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    held["r"] /= np.float32(np.sqrt(units))  # larger ones multiply what is rounded from one step to the next
    fed = {"x": (steps, n, inputs), "first": (ways, n, units)}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in fed.items()}
    states = ("first", "second") if cell == "lstm" else ("first",)
    attrs = {"direction": direction} if linear is None else {"direction": direction, "linear_before_reset": linear}
    made = ("y", *(f"last {state}" for state in states))
    layer = Node("layer", f"nn.{cell}", ("x", "k", "r", "o", *states, *peepholes), made, FrozenMap(attrs))
    used = {name: array for name, array in held.items() if name in layer.inputs}
    graph = graph_of(feeds, [layer], "y", **used)
    assert_agree(graph, feeds, keep=made[1:], threads=threads, magnitude=1.0)  # of the states, whose terms cancel


@pytest.mark.parametrize("cell, gates", [("lstm", 4), ("gru", 3)])
@pytest.mark.parametrize("threads", [1, 2])
def test_samples_that_go_through_the_steps_together_are_what_each_is_alone(cell: str, gates: int, threads: int) -> None:
    """Bit for bit, though the tiles of their products are of other shapes."""
    steps, n, inputs, units, rng = 5, 11, 3, 37, np.random.default_rng(0)
    rows, states = gates * units, ("first", "second") if cell == "lstm" else ("first",)
    shapes = {"k": (2, rows, inputs), "r": (2, rows, units), "o": (2, 2 * rows)}
    held = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    feeds = {"x": rng.normal(size=(steps, n, inputs)).astype(np.float32)}
    feeds |= {name: rng.normal(size=(2, n, units)).astype(np.float32) for name in states}
    made = ("y", *(f"last {state}" for state in states))
    layer = Node("layer", f"nn.{cell}", ("x", "k", "r", "o", *states), made, FrozenMap({"direction": "bidirectional"}))
    together = plan(graph_of(feeds, [layer], "y", **held)).run(feeds, threads=threads)["y"]
    for i in range(n):
        alone = {name: array[:, i : i + 1] for name, array in feeds.items()}
        program = plan(graph_of(alone, [layer], "y", **held))
        np.testing.assert_array_equal(program.run(alone)["y"], together[:, :, i : i + 1])


def stored(cell: str, gates: int, ways: int, units: int, rng: np.random.Generator, **attrs: Attr) -> Stored:
    """A node of weights in 8 bits, with what it holds: x and the first states are fed."""
    rows = gates * units
    held = {
        "r": rng.integers(-127, 128, (ways, rows, units)).astype(np.int8),
        "s": (rng.uniform(0.1, 1, (ways, rows)) / 127 / np.sqrt(units)).astype(np.float32),
        "o": rng.normal(size=(ways, rows)).astype(np.float32),
    }
    states = ("first", "second") if cell == "lstm" else ("first",)
    made = ("y", *(f"last {state}" for state in states))
    return Node("layer", f"integer.{cell}", ("x", "r", "s", "o", *states), made, FrozenMap(attrs)), held, states


@pytest.mark.parametrize("cell, gates, linear, peepholes", CELLS)
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=8)
@given(
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    sizes=st.tuples(SIZES, st.integers(1, 5), st.integers(1, 70)),
    threads=st.integers(1, 2),
)
def test_each_cell_of_weights_in_8_bits(
    level: Level,
    cell: str,
    gates: int,
    linear: bool | None,
    peepholes: tuple[str, ...],
    direction: str,
    sizes: tuple[int, int, int],
    threads: int,
) -> None:
    (steps, n, units), rng = sizes, np.random.default_rng(0)
    ways = 2 if direction == "bidirectional" else 1
    attrs = {"direction": direction} if linear is None else {"direction": direction, "linear_before_reset": linear}
    layer, held, states = stored(cell, gates, ways, units, rng, **attrs)
    layer = replace(layer, inputs=(*layer.inputs, *peepholes))
    held |= {name: rng.normal(size=(ways, 3 * units)).astype(np.float32) for name in peepholes}
    feeds = {"x": rng.normal(size=(steps, n, ways * gates * units)).astype(np.float32)}
    feeds |= {name: rng.normal(size=(ways, n, units)).astype(np.float32) for name in states}
    graph = graph_of(feeds, [layer], "y", **held)
    assert_agree(graph, feeds, keep=layer.outputs[1:], level=level, threads=threads, magnitude=1.0)


@pytest.mark.parametrize("cell, gates", [("lstm", 4), ("gru", 3)])
def test_the_largest_state_of_a_row_is_rounded_like_the_others(cell: str, gates: int) -> None:
    """Whatever it is: times what brings it to the largest integer, some become one more than that in float32."""
    units, rng = 3, np.random.default_rng(0)
    layer, held, states = stored(cell, gates, 1, units, rng)
    n = 200
    feeds = {"x": np.zeros((1, n, gates * units), np.float32)}
    feeds |= {name: rng.uniform(0.1, 9, size=(1, n, units)).astype(np.float32) for name in states}
    assert_agree(graph_of(feeds, [layer], "y", **held), feeds, magnitude=1.0)


@pytest.mark.parametrize("cell, gates", [("lstm", 4), ("gru", 3)])
@pytest.mark.parametrize("threads", [1, 2])
def test_samples_with_weights_in_8_bits_are_what_each_is_alone(cell: str, gates: int, threads: int) -> None:
    steps, n, units, rng = 5, 11, 37, np.random.default_rng(0)
    layer, held, states = stored(cell, gates, 2, units, rng, direction="bidirectional")
    feeds = {"x": rng.normal(size=(steps, n, 2 * gates * units)).astype(np.float32)}
    feeds |= {name: rng.normal(size=(2, n, units)).astype(np.float32) for name in states}
    together = plan(graph_of(feeds, [layer], "y", **held)).run(feeds, threads=threads)["y"]
    for i in range(n):
        alone = {name: array[:, i : i + 1] for name, array in feeds.items()}
        program = plan(graph_of(alone, [layer], "y", **held))
        np.testing.assert_array_equal(program.run(alone)["y"], together[:, :, i : i + 1])


@settings(max_examples=15)
@given(
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 3), SIZES, SIZES),
    threads=st.integers(1, 2),
)
@pytest.mark.parametrize("peepholes", [(), ("p",)])
def test_a_cell_that_rounds_what_it_multiplies(
    peepholes: tuple[str, ...], direction: str, sizes: tuple[int, int, int, int], threads: int
) -> None:
    """With states of several samples, which are rounded by the range that they have together.

    The seed is one of which no state lies so near to half a step, in any case drawn here, that both ways are right.
    """
    (steps, n, inputs, units), rng = sizes, np.random.default_rng(4)
    ways, rows = 2 if direction == "bidirectional" else 1, 4 * units
    shapes = {"k": (ways, rows, inputs), "r": (ways, rows, units), "o": (ways, 2 * rows)}
    shapes |= dict.fromkeys(peepholes, (ways, 3 * units))
    held = {name: rng.integers(-9, 10, shape).astype(np.float32) / 32 for name, shape in shapes.items()}
    fed = {"x": (steps, n, inputs), "first": (ways, n, units), "second": (ways, n, units)}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in fed.items()}
    attrs = {"direction": direction, "steps": (1 / 32,) * (2 * ways)}
    made = ("y", "last first", "last second")
    operands = ("x", "k", "r", "o", "first", "second", *peepholes)
    layer = Node("layer", "nn.dynamic_lstm", operands, made, FrozenMap(attrs))
    graph = graph_of(feeds, [layer], "y", **held)
    assert_agree(graph, feeds, keep=made[1:], threads=threads, magnitude=1.0)
