"""Small integer graphs, and the comparison of their programs with the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.build import build
from qbench.ir.dtypes import integer_range, numpy_dtype
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.quant.rounding import POWER_OF_TWO, Rounding
from qbench.runtime import interpreter
from qbench.runtime.programs import plan
from tests.kernels.harness import WITH_MATRICES

LEVELS = WITH_MATRICES


def graph_of(
    inputs: Mapping[str, tuple[str, Sequence[int | str]]],
    *nodes: tuple,
    constants: Mapping[str, np.ndarray] | None = None,
    qparams: Mapping[str, QParams] | None = None,
    outputs: Sequence[str] | None = None,
) -> Graph:
    """Nodes are (op, inputs, output or outputs, attributes); the last one's outputs are the graph's."""
    made = []
    for op, reads, makes, attrs in nodes:
        makes = (makes,) if isinstance(makes, str) else tuple(makes)
        made.append(Node(f"{op} {makes[0]}", op, tuple(reads.split()), makes, FrozenMap(attrs)))
    types = {name: TensorType(tuple(shape), dtype) for name, (dtype, shape) in inputs.items()}
    held = {name: Constant(array) for name, array in (constants or {}).items()}
    return build("small", types, outputs or made[-1].outputs, made, held, qparams)


def numbers(seed: int, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Random integers of the whole range, or real numbers."""
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return (random.normal(size=shape) * 3).astype(dtype)
    low, high = integer_range(dtype)
    return random.integers(low, high, shape, np.int64, endpoint=True).astype(numpy_dtype(dtype))


def check(graph: Graph, seed: int = 0, samples: int = 2, threads: int = 2, fallbacks: int = 0) -> None:
    """The program's outputs have the interpreter's bits, at every level."""
    feeds = {}
    for number, name in enumerate(graph.inputs):
        shape = [samples if isinstance(size, str) else size for size in graph.types[name].shape]
        feeds[name] = numbers(seed + number, graph.types[name].dtype, shape)
    wanted = interpreter.run(graph, feeds)
    for level in LEVELS:
        program = plan(graph, level=level)
        assert len(program.fallbacks) == fallbacks, program.fallbacks
        got = program.run(feeds, threads=threads)
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name], array, err_msg=f"{name} at {level}")
            assert got[name].dtype == array.dtype


def requantize(
    data: str, output: str, rounding: Rounding | None, dtype: str, seed: int, shape: Sequence, axis: int | None = None
) -> tuple[list[tuple], dict[str, np.ndarray]]:
    """The node that requantizes accumulators, in any mode, and its constants; nothing without a mode."""
    if rounding is None:
        return [], {}
    random = np.random.default_rng(seed)
    sizes = [size if i == axis else 1 for i, size in enumerate(shape)]
    mantissa = random.integers(2**30, 2**31, sizes).astype(np.int32)
    shift = random.integers(-12, 1, sizes).astype(np.int32)
    attrs = {"dtype": dtype, "zero_point": int(numbers(seed, dtype, ()))}
    if rounding == "fp32_rne":
        held = {f"{output}.multiplier": np.ldexp(mantissa, shift - 31).astype(np.float32)}
        op = "integer.requantize_float32"
    elif rounding == "fp64_away":
        bits = mantissa.astype(np.int64) * 2**22 + random.integers(0, 2**22, sizes)
        op, held = "integer.requantize_float64", {f"{output}.mantissa": bits, f"{output}.shift": shift}
    elif rounding in POWER_OF_TWO:
        op, held, attrs["rounding"] = "integer.rounding_shift", {f"{output}.shift": -shift}, rounding
    else:
        held = {f"{output}.mantissa": mantissa, f"{output}.shift": shift}
        op, attrs["rounding"] = "integer.requantize", rounding
    return [(op, " ".join((data, *held)), output, attrs)], held
