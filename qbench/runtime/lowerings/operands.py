"""What lowerings of elementwise kernels share: operands as kernels see them, memory without gaps."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qbench.ir.dtypes import dtype_of
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.kernels.walk import strided, walks
from qbench.kernels.widen import widen_kernel
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, natural, shape_of
from qbench.runtime.layout import row_major as in_order
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.lowering import Layouts, Refused, Site, instruction
from qbench.runtime.lowerings.rescaling import storage
from qbench.runtime.step import Instruction, Place, Rows, row_major

_WALKS = 16  # instead of one, each an instruction
_SHORT_ROW = 128  # elements; to begin one costs as much
_REPEATED = 2**16  # bytes of a constant at most, half of what the nearest caches hold at least


@dataclass(frozen=True)
class Operand:
    """An activation or a constant that an elementwise kernel reads.

    Parameters
    ----------
    reference
        Where it lies.
    dtype
        Of its elements in memory, in NumPy's letters.
    strides
        Elements from one index to the next, along the axes of the result in the order of the result's memory; 0 where
        it is repeated.
    """

    reference: int
    dtype: str
    strides: tuple[int, ...]


def plain_layout(layout: Layout) -> Layout:
    """The same order of axes, without a border."""
    return Layout(layout.axes)


def common_layouts(graph: Graph, step: Fused, home: Mapping[str, Layout]) -> Layouts:
    """Of an elementwise step: all lies as its first whole operand does.

    Unless another operand then repeats along the last axis in memory, and would not row by row: each element would be
    read by itself.
    """
    output, inputs = step.outputs[0], step.inputs(graph)
    shape = shape_of(graph, output)
    rank = len(shape)
    like = [name for name in inputs if graph.types[name].rank == rank]
    whole = [name for name in like if shape_of(graph, name) == shape]
    if rank > 4:  # so that axes can be walked as one
        rows = {name: in_order(len(shape_of(graph, name))) for name in inputs}
        return Layouts(rows, {output: in_order(rank)})
    common = next((plain_layout(home[name]) for name in (*whole, *like)), natural(rank))
    inner = next((axis for axis in reversed(common.axes) if shape[axis] != 1), None)
    last = next((axis for axis in reversed(range(rank)) if shape[axis] != 1), None)
    for name in step.head.inputs:
        small = shape_of(graph, name)
        if inner is not None and last is not None:
            sizes = (1,) * (rank - len(small)) + small
            common = in_order(rank) if sizes[inner] == 1 and sizes[last] != 1 else common
    inputs_as = {name: common if name in like else plain_layout(home[name]) for name in inputs}
    return Layouts(inputs_as, {output: common})


def joined_layouts(home: Mapping[str, Layout], parts: Collection[str], output: str) -> Layouts:
    """Of a concatenation: as its parts lie where they agree, else what the result gets where nothing is asked for."""
    common = {plain_layout(home[name]) for name in parts}
    layout = common.pop() if len(common) == 1 else plain_layout(home[output])
    return Layouts(dict.fromkeys(parts, layout), {output: layout})


def need_walks(graph: Graph, step: Fused) -> None:
    """Refuse shapes of more than four axes that row-major memory does not let be walked as a few at most."""
    shape = shape_of(graph, step.outputs[0])
    if len(shape) <= 4:
        return
    whole = Place.dense(0, np.dtype(np.uint8), shape)
    steps = [spread(small, row_major(small), whole) for small in (shape_of(graph, name) for name in step.head.inputs)]
    named = {f"x{i}": strides for i, strides in enumerate(steps)}
    if len(walks(shape, **named, y=whole.strides)) > _WALKS:
        raise Refused("it has more axes than can be walked")


def walks_of(
    shape: Sequence[int], memory: Mapping[str, tuple[int, int]], **strides: Sequence[int]
) -> list[dict[str, int]]:
    """The fields of one instruction for each walk of at most four axes: references and extents.

    Parameters
    ----------
    shape, strides
        As for :func:`~qbench.kernels.walk.walks`.
    memory
        Of each operand: the reference of its first element, and the bytes of one.
    """
    return [
        {**{name: memory[name][0] + memory[name][1] * begin for name, begin in begins.items()}, **fields}
        for begins, fields in walks(shape, **strides)
    ]


def rows_of_walk(
    shape: Sequence[int], sizes: Mapping[str, int], reads: Sequence[str], makes: str, **strides: Sequence[int]
) -> Rows | None:
    """How an instruction of `walks_of` does a few rows of the last axis alone; None where they do not lie evenly.

    Parameters
    ----------
    shape, strides
        As for `walks_of`.
    sizes
        Bytes of an element of each operand.
    reads, makes
        Which operands are read by rows, and the result.
    """
    whole = row_major(tuple(shape))
    if len(shape) < 2 or any(
        size > 1 and strides[name][axis] != whole[axis] for name in (*reads, makes) for axis, size in enumerate(shape)
    ):
        return None
    *batch, count, columns = shape
    groups, steps = 1, dict.fromkeys(strides, 0)
    for axis, size in reversed([*enumerate(batch)]):
        here = {name: along[axis] for name, along in strides.items()}
        if size > 1 and groups > 1 and any(here[name] != groups * steps[name] for name in strides):
            return None
        steps = here if size > 1 and groups == 1 else steps
        groups *= size
    rows = {name: along[-2] for name, along in strides.items()}
    if count == 1:
        count, groups, rows = groups, 1, steps
    elif all(steps[name] == count * rows[name] for name in strides):  # one group begins where another ends
        count, groups = groups * count, 1
    single = {"n0": 1, "n1": 1, "n2": 1, "n3": columns}
    for name, along in strides.items():
        single |= {f"{name}0": 0, f"{name}1": 0, f"{name}2": rows[name], f"{name}3": along[-1]}
    is_one = all(rows[name] == columns * along[-1] for name, along in strides.items())  # long row
    counts = {"n3": columns} if is_one else {"n2": 1}
    for field in counts:
        del single[field]
    pitches = {name: sizes[name] * rows[name] for name in strides} | {
        name: sizes[name] * whole[-2] for name in (*reads, makes)
    }
    jumps = {name: sizes[name] * step for name, step in steps.items()}
    return Rows(groups, count, dict.fromkeys(reads, ()), makes, pitches, counts, jumps=jumps, single=single)


def in_vectors(level: Level, walk: Mapping[str, int], *elements: str) -> bool:
    """Whether two operands and a result that `strided` walks are what `kernels.rows` takes."""
    return level in ISAS and {*elements} <= {"u1", "i2"} and {walk["a3"], walk["b3"]} <= {0, 1}


def as_stored(array: Array) -> Array:
    """A constant as it would lie in memory if it were an activation: row-major, its sign bit as there."""
    array = np.ascontiguousarray(array)
    kind = storage(dtype_of(array.dtype))
    if kind == array.dtype:
        return array
    bits = np.dtype(f"u{kind.itemsize}")
    return (array.view(bits) ^ bits.type(1 << (8 * kind.itemsize - 1))).view(kind)


def operand(site: Site, name: str, result: Place) -> Operand:
    """An operand of an elementwise step, broadcast to its result."""
    constant = site.graph.constants.get(name)
    if constant is None:
        place = site.places[name]
        shape, strides = place.natural_shape, place.natural_strides
        return Operand(place.reference, place.letters, spread(shape, strides, result))
    array = as_stored(constant.array)
    array, strides = repeated(array, spread(array.shape, row_major(array.shape), result), result)
    return Operand(site.constant(array), array.dtype.str[1:], strides)


def repeated(array: Array, strides: tuple[int, ...], result: Place) -> tuple[Array, tuple[int, ...]]:
    """A constant written out as often as a part of the result repeats it, if it would else be walked in short rows.

    Parameters
    ----------
    array
        Row-major.
    strides
        As :func:`spread` gives them.

    Returns
    -------
    The array that is to be walked, and its strides along the axes of the result's memory.
    """
    walk = walks(result.shape, x=strides, y=result.strides)[0][1]
    if walk["n3"] >= min(_SHORT_ROW, math.prod(result.shape)):
        return array, strides
    whole = row_major(result.shape)
    for first in range(len(result.shape)):
        alike = [axis < first and step == 0 for axis, step in enumerate(strides)]
        sizes = tuple(1 if one else size for one, size in zip(alike, result.shape, strict=True))
        rows = math.prod(result.shape[first:])
        if math.prod(sizes) * array.itemsize <= _REPEATED and result.strides[first:] == whole[first:]:
            if rows <= walk["n3"]:
                break
            steps = tuple(stride * array.itemsize for stride in strides)
            made = np.ascontiguousarray(np.lib.stride_tricks.as_strided(array, sizes, steps, writeable=False))
            return made, tuple(0 if one else step for one, step in zip(alike, row_major(sizes), strict=True))
    return array, strides


def spread(shape: Sequence[int], strides: Sequence[int], result: Place) -> tuple[int, ...]:
    """Strides along the axes of the result's memory of something that broadcasts to the result."""
    missing = len(result.shape) - len(shape)
    steps = [0] * missing + [stride if size != 1 else 0 for size, stride in zip(shape, strides, strict=True)]
    return tuple(steps[axis] for axis in result.axes)


@dataclass(frozen=True)
class Gapless:
    """A place without gaps that stands for another, and what brings the elements from the one to the other."""

    place: Place
    copies: Sequence[Instruction]


def gapless(
    site: Site, name: str, axes: tuple[int, ...] | None = None, output: bool = False, plain: bool = False
) -> Gapless:
    """Memory without gaps and borders for a value: its own if it is so already, else workspace that is copied.

    Parameters
    ----------
    axes
        The order that is needed; by default the value's own.
    output
        The elements are made by the step, so the copy goes from the workspace to the value's place.
    plain
        The bytes are needed as the value has them, an int8 value's too.
    """
    place, layout = site.places[name], site.layouts.get(name)
    wanted = axes or place.axes
    bordered = output and layout is not None and any(layout.border)
    flipped = place.flipped and not plain
    if place.contiguous and wanted == place.axes and not bordered and flipped == place.flipped:
        return Gapless(place, ())
    shape = tuple(place.natural_shape[axis] for axis in wanted)
    site.workspace(place.nbytes)
    buffer = site.first_scratch + len(site.scratch) - 1
    scratch = Place(buffer, 0, place.dtype, shape, row_major(shape), wanted, flipped)
    if output:
        return Gapless(scratch, copy_instructions(scratch, place, layout))
    return Gapless(scratch, copy_instructions(place, scratch))


def widened(site: Site, x: Place, output: str) -> tuple[Place, Instruction]:
    """8-bit codes as integers of 16 bits in the workspace, and what puts them there.

    Parameters
    ----------
    site
        Of the step that reads them.
    x
        Where the codes lie; neighbours along the last axis side by side.
    output
        What the step makes.
    """
    start = site.workspace(2 * math.prod(x.shape))
    buffer = site.first_scratch + len(site.scratch) - 1
    wide = Place(buffer, 0, np.dtype(np.int16), x.shape, row_major(x.shape), x.axes)
    walk = strided(x.shape, x=x.strides, y=wide.strides)
    return wide, instruction(widen_kernel(), output, x=x.reference, y=start, **walk)
