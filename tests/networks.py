"""Small networks that the tests of engine and session share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

import qbench.ops  # noqa: F401  fills the registry
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.types import TensorType


def node(op: str, inputs: Iterable[str], output: str, **attrs: Attr) -> Node:
    """A node called like its output and its source."""
    return Node(output, op, tuple(inputs), (output,), FrozenMap(attrs), (output,))


def mlp(seed: int = 0, sizes: tuple[int, ...] = (12, 16, 8, 5), batch: int | str = "N") -> Graph:
    """dense, bias_add and relu per layer, softmax at the end; values and nodes have the same names."""
    rng = np.random.default_rng(seed)
    nodes, constants, value = [], {}, "x"
    last = len(sizes) - 2
    for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        constants[f"dense_{i}.weight"] = rng.normal(size=(outputs, inputs)).astype(np.float32) / inputs**0.5
        constants[f"dense_{i}.bias"] = rng.normal(size=outputs).astype(np.float32) / 4
        nodes.append(node("nn.dense", [value, f"dense_{i}.weight"], f"dense_{i}"))
        nodes.append(node("nn.bias_add", [f"dense_{i}", f"dense_{i}.bias"], f"bias_{i}"))
        nodes.append(
            node("nn.relu", [f"bias_{i}"], f"relu_{i}") if i < last else node("nn.softmax", [f"bias_{i}"], "y")
        )
        value = f"relu_{i}"
    types = {"x": TensorType((batch, sizes[0]), "float32")}
    return build("mlp", types, ["y"], nodes, {name: Constant(array) for name, array in constants.items()})


def samples(count: int, seed: int = 1, width: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


def residual(seed: int = 0, blocks: int = 2, batch: int | str = "N") -> Graph:
    """Convolutions with shortcuts around them, a pooled classifier at the end; values and nodes have the same names."""
    rng = np.random.default_rng(seed)
    nodes, constants, value, inputs = [], {}, "x", 3
    for i in range(blocks + 1):
        constants[f"conv_{i}.weight"] = rng.normal(size=(4, inputs, 3, 3)).astype(np.float32) / 6
        constants[f"conv_{i}.bias"] = rng.normal(size=4).astype(np.float32) / 4
        nodes += [
            node("nn.conv2d", [value, f"conv_{i}.weight"], f"conv_{i}", padding=(1, 1, 1, 1)),
            node("nn.bias_add", [f"conv_{i}", f"conv_{i}.bias"], f"bias_{i}"),
            node("nn.relu", [f"bias_{i}"], f"relu_{i}"),
        ]
        if i:
            nodes.append(node("add", [f"relu_{i}", value], f"add_{i}"))
        value, inputs = nodes[-1].output, 4
    constants["dense.weight"] = rng.normal(size=(5, 4)).astype(np.float32)
    nodes += [
        node("nn.global_avg_pool2d", [value], "pool"),
        node("nn.batch_flatten", ["pool"], "flat"),
        node("nn.dense", ["flat", "dense.weight"], "y"),
    ]
    types = {"x": TensorType((batch, 3, 6, 7), "float32")}
    return build("residual", types, ["y"], nodes, {name: Constant(array) for name, array in constants.items()})
