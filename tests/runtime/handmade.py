"""Programs made by hand: tiny graphs in random layouts, with kernels that have no purpose but to be right."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

import qbench.ops  # noqa: F401  fills the registry
from qbench.ir.build import build
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.specialize import open_symbols, specialize
from qbench.ir.types import TensorType, dim_factors
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.memory import reference, view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array
from qbench.runtime.program import Program
from qbench.runtime.step import EXTERNAL, Instruction, Place, Step

RANK = 4


@cache
def larger(dtype: str) -> Kernel:
    """``out = min(max(x, y, low), high)``, element by element between strided places."""
    element = np.dtype(dtype).type

    def function(args: Any, bases: Any, thread: int, threads: int) -> None:
        size, count, extent = args.sizes, 1, stack_array(3, np.int64)
        extent[:] = 1
        for axis in range(RANK):
            count *= size[axis]
            for i in range(3):
                extent[i] += (size[axis] - 1) * args.stride[i * RANK + axis]
        if count == 0:
            return
        x, y = view(bases, args.x, extent[0], element), view(bases, args.y, extent[1], element)
        out = view(bases, args.out, extent[2], element)
        first, last = share(count, thread, threads)
        for index in range(first, last):
            rest, a, b, c = index, 0, 0, 0
            for axis in range(RANK - 1, -1, -1):
                digit = rest % size[axis]
                rest //= size[axis]
                a += digit * args.stride[axis]
                b += digit * args.stride[RANK + axis]
                c += digit * args.stride[2 * RANK + axis]
            out[c] = element(min(max(max(x[a], y[b]), args.low), args.high))

    arguments = record(x="i8", y="i8", out="i8", sizes=f"{RANK}i8", stride=f"{3 * RANK}i8", low=f"f{4}", high=f"f{4}")
    return Kernel(f"test.larger.{dtype}", arguments, function)


def graph_of(shape: tuple[int | str, ...], dtype: str, sources: list[tuple[int, int]], outputs: list[int]) -> Graph:
    """Node i makes value ``vi`` of two values before it: clip(v) where they are the same, else maximum(v, w)."""
    nodes: list[Node] = []
    for i, (a, b) in enumerate(sources, start=1):
        if a == b:
            attrs = FrozenMap({"a_min": float(-90 + i), "a_max": float(90 - i)})
            nodes.append(Node(f"n{i}", "clip", (f"v{a}",), (f"v{i}",), attrs))
        else:
            nodes.append(Node(f"n{i}", "maximum", (f"v{a}", f"v{b}"), (f"v{i}",)))
    return build("handmade", {"v0": TensorType(shape, dtype)}, [f"v{i}" for i in outputs], nodes)


def planned(graph: Graph, seed: int, interpreted: frozenset[str] = frozenset()) -> Program:
    """Random axis orders and gaps; buffers are used again as soon as no later step reads them."""
    random = np.random.default_rng(seed)
    shape = tuple(dim_factors(dim)[0] for dim in graph.types["v0"].shape)
    dtype = numpy_dtype(graph.types["v0"].dtype)
    storage = np.dtype(np.uint8) if dtype == np.int8 else dtype
    last_use = {name: i for i, node in enumerate(graph.nodes) for name in (*node.inputs, *node.outputs)}
    last_use |= dict.fromkeys(graph.outputs, len(graph.nodes))
    offsets, inputs, outputs, places = [0], {}, {}, {}
    free: list[tuple[int, int]] = []
    top = 0

    def external(name: str) -> None:
        (inputs if name in graph.inputs else outputs)[name] = len(offsets)
        places[name] = Place.dense(len(offsets), dtype, shape)
        offsets.append(EXTERNAL)

    def internal(name: str) -> None:
        nonlocal top
        axes = (0, *map(int, 1 + random.permutation(max(len(shape) - 1, 0))))[: len(shape)]
        sizes = tuple(shape[axis] for axis in axes)
        strides, stride = [0] * len(sizes), 1
        for axis in range(len(sizes) - 1, -1, -1):
            strides[axis] = stride
            stride *= sizes[axis] + (int(random.integers(3)) if axis else 0)
        nbytes = -(-stride * dtype.itemsize // 64) * 64
        slot = next((slot for slot in free if slot[1] >= nbytes), None)
        if slot is None:
            slot, top = (top, nbytes), top + nbytes
        else:
            free.remove(slot)
        slots[name] = slot
        places[name] = Place(len(offsets), 0, storage, sizes, tuple(strides), axes, dtype == np.int8)
        offsets.append(slot[0])

    slots: dict[str, tuple[int, int]] = {}
    external("v0")
    steps: list[Step] = []
    if dtype == np.int8:  # codes are made first, since all kernels work on them
        steps.append(_convert(places, "v0", internal, offsets))
    for i, node in enumerate(graph.nodes):
        name = node.output
        internal(name)
        free += [slots[value] for value in {*node.inputs, name} if last_use[value] == i and value in slots]
        if node.name in interpreted:
            steps.append(Step(node.name, (node.name,), node.inputs, node.outputs, (), 0, "a test"))
            continue
        instruction = _larger(graph, node, places, storage)
        steps.append(Step(node.name, (node.name,), node.inputs, node.outputs, (instruction,), math.prod(shape)))
    arrays = np.array(offsets, np.int64)
    single, values = specialize(graph, dict.fromkeys(open_symbols(graph), 1)), map(FrozenMap, (places, inputs, outputs))
    return Program(graph, single, tuple(steps), *values, arrays, top)


def _larger(graph: Graph, node: Node, places: dict[str, Place], dtype: np.dtype[Any]) -> Instruction:
    kernel = larger(dtype.name)
    arguments = np.recarray(1, kernel.arguments)
    values = (node.inputs[0], node.inputs[-1], node.output)
    low, high = (node.attrs.get(key, bound) for key, bound in (("a_min", -np.inf), ("a_max", np.inf)))
    shift = 128 if places[node.output].flipped else 0
    arguments[0]["low"], arguments[0]["high"] = low + shift, high + shift
    sizes, strides = np.ones(RANK, np.int64), np.zeros((3, RANK), np.int64)
    for i, (field, value) in enumerate(zip(("x", "y", "out"), values, strict=True)):
        place = places[value]
        arguments[0][field] = reference(place.buffer, place.offset)
        sizes[: len(place.shape)] = place.natural_shape
        strides[i, : len(place.shape)] = place.natural_strides
    arguments[0]["sizes"], arguments[0]["stride"] = sizes, strides.ravel()
    return Instruction(kernel, arguments, node.output)


def _convert(places: dict[str, Place], name: str, internal: Any, offsets: list[int]) -> Step:
    from qbench.kernels.move import copy_fields, copy_kernel

    source = places[name]
    internal(name)
    target = places[name]
    kernel = copy_kernel(1)
    arguments = np.recarray(1, kernel.arguments)
    fields = copy_fields(source.shape, source.strides, target.natural_strides)
    fields |= {"x": reference(source.buffer), "out": reference(target.buffer), "flip": 0x80}
    for field, value in fields.items():
        arguments[0][field] = value
    return Step("codes", (), (name,), (name,), (Instruction(kernel, arguments, name),))


__all__ = ["graph_of", "larger", "planned"]
