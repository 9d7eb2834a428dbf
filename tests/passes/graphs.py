"""Small graphs for the tests of passes, and the question whether two graphs compute the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import Array
from qbench.ir.types import Dim, TensorType
from qbench.passes.pipeline import Pass
from qbench.runtime.interpreter import run

IMAGE = (2, 4, 6, 6)


def node(name: str, op: str, *inputs: str, outputs: Sequence[str] = (), **attrs: Attr) -> Node:
    """A node called like its output and its source."""
    return Node(name, op, inputs, tuple(outputs) or (name,), FrozenMap(attrs), sources=(name,))


def graph(
    *nodes: Node,
    x: tuple[Dim, ...] = IMAGE,
    inputs: dict[str, tuple[Dim, ...]] | None = None,
    outputs: Sequence[str] = (),
    **constants: Array,
) -> Graph:
    """A graph of inputs (`x` alone unless given) and of nodes, the last of which makes the output."""
    types = {name: TensorType(shape, "float32") for name, shape in (inputs or {"x": x}).items()}
    outputs = tuple(outputs) or nodes[-1].outputs
    return build("g", types, outputs, nodes, {name: Constant(array) for name, array in constants.items()})


def array(*shape: int, seed: int = 0, low: float = -1, high: float = 1) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def feeds(g: Graph, seed: int = 0, batch: int = 2, high: float = 3) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shapes = {name: [batch if isinstance(d, str) else d for d in t.shape] for name, t in g.input_types().items()}
    return {name: rng.uniform(-high, high, shape).astype(np.float32) for name, shape in shapes.items()}


def difference(before: Graph, after: Graph, seed: int = 0) -> float:
    """The largest difference of any output, relative to the output's largest value."""
    fed = feeds(before, seed)
    wanted, given = run(before, fed), run(after, fed)
    assert wanted.keys() == given.keys()
    worst = [np.max(np.abs(wanted[k] - given[k])) / max(1e-6, float(np.max(np.abs(wanted[k])))) for k in wanted]
    return float(max(worst))


def checked(a_pass: Pass, g: Graph, tolerance: float = 1e-5) -> Graph:
    """The graph after a pass: valid, with the same interface, meaning the same, and not changed by a second run."""
    result = a_pass(g)
    assert rebuild(result) == result
    assert (result.inputs, result.outputs) == (g.inputs, g.outputs)
    assert [result.types[v] for v in g.outputs] == [g.types[v] for v in g.outputs]
    assert difference(g, result) <= tolerance
    assert a_pass(result) == result
    if result == g:
        assert result is g
    return result


def ops(g: Graph) -> list[str]:
    return [n.op for n in g.nodes]


def norm(channels: int, seed: int = 0, prefix: str = "bn") -> dict[str, Array]:
    """Parameters of a batch norm, by the names that `norm_inputs` gives."""
    arrays = [array(channels, seed=seed + i) for i in range(3)]
    values = (1 + 0.5 * arrays[0], arrays[1], arrays[2], array(channels, seed=seed + 3, low=0.5, high=2))
    return dict(zip(norm_inputs(prefix), values, strict=True))


def norm_inputs(prefix: str = "bn") -> tuple[str, str, str, str]:
    return f"{prefix}_gamma", f"{prefix}_beta", f"{prefix}_mean", f"{prefix}_var"
