"""A session of a model whose names try everything that a name can do."""

from __future__ import annotations

import itertools

import numpy as np

from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.session.session import Session
from tests.networks import node, samples

NAMES = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "line\nbreak\ttab\x1b[31m",
    "größe 尺寸 🙂 \u202etxt",
    "$x^2$ \\frac{1}{0} $",
    "long" * 2500,
)


def hostile_session() -> tuple[Session, list[str]]:
    """The session, and the names of its layers."""
    rng = np.random.default_rng(0)
    values = ["x", *NAMES]
    weights = [f"{name}.weight" for name in NAMES]
    nodes = [node("nn.dense", [a, w], b) for (a, b), w in zip(itertools.pairwise(values), weights, strict=True)]
    constants = {name: Constant(rng.normal(size=(6, 6)).astype(np.float32)) for name in weights}
    graph = build("</script><b>", {"x": TensorType(("N", 6), "float32")}, [NAMES[-1]], nodes, constants)
    return Session(graph, samples(20, width=6), samples(10, seed=2, width=6)), list(NAMES)
