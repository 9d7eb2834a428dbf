"""Round weights one layer after the other, each so that its output is the float network's as nearly as can be."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from qbench.calibration.moments import Moments
from qbench.calibration.patches import unit_of
from qbench.cluster.where import Cluster
from qbench.data.dataset import Dataset
from qbench.data.portions import Feeds
from qbench.errors import Cancelled
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, QuantRule, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.elementwise import Add
from qbench.passes.groups import Group, find_groups, rule_of
from qbench.passes.round_weights import RoundedWeight
from qbench.progress import Cancel, Progress, stopped
from qbench.quant import least_squares
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.blas import one_blas_thread
from qbench.quant.encodings import Encoding
from qbench.quant.least_squares import Levels, best_scales, loss, targets
from qbench.quantize.flow import Both, Flow
from qbench.quantize.unfold import can_unfold, folded, placed, places, unfolded, unfolded_weight

_BUDGET = 1 << 29  # bytes of values that are kept at a time
_CHUNK, _FEWEST = 8, 3  # samples that run together; and chunks
_FEW_RIDGE = 0.3  # where there is nothing to hold back
_DAMPING = (0.01, 0.1)  # at least so much, and so much of the ridge
_HELD = 4  # each such chunk is held back to choose the ridge
_DEAD = 0.1  # of the scale given: a channel of zeros keeps it, since it suits the bias


@dataclass(frozen=True)
class Effort:
    """How much data weights are rounded by: the finer their levels are, the less there is to gain.

    Parameters
    ----------
    samples
        Of calibration data.
    inputs
        Rows of inputs that moments are taken of: so many, and so many more for each input of a sum.
    ridges
        Which one is best is seen on data held back.
    sweeps
        How often each weight is looked at once more.
    scales
        Whether scales are chosen anew.
    apart
        Whether each weight is rounded as if all others were the float network's: what it loses by itself.
    most
        Products that it may take where nobody has asked for it: seconds.
    """

    samples: int
    inputs: tuple[int, int]
    ridges: Sequence[float]
    sweeps: int
    scales: bool
    apart: bool = False
    most: int = 1 << 37


_BITS = 8
LIGHT = Effort(32, (768, 1), (1.0,), 0, scales=False)
"""For weights of 8 bits with a scale for each channel."""
APART = Effort(64, (2048, 2), (1.0,), 1, scales=True, apart=True)
"""For weights of 4 bits, to tell which of them lose most."""
_FULL = Effort(256, (4096, 8), (0.03, 0.3, 3.0, 30.0), 3, scales=True, most=1 << 40)

_Parts = tuple[Moments, Moments | None]
"""Of the chunks that weights are fitted to, and of those that are held back."""


def round_sequentially(
    graph: Graph,
    encodings: Mapping[str, Encoding],
    data: Dataset,
    layers: Collection[str] | None = None,
    narrow: bool = True,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
    pieces: Sequence[int] | None = None,
    effort: Effort | None = None,
) -> FrozenMap[str, RoundedWeight]:
    """Round the weights of convolutions and dense layers; activations stay in float on the way.

    A layer whose output is added to a shortcut is rounded to the sum, so that it undoes what was lost in the shortcut.

    Parameters
    ----------
    graph
        The prepared float graph.
    encodings
        Of the weights: their type, and whether there is a scale for each channel. Scales are chosen anew, but those of
        overrides and those that suit a bias.
    data
        Calibration data; some 256 samples are used, some 32 where all weights have 8 bits and a scale for each channel.
    layers
        Names of those whose weights are rounded so; None: all. The others' go to the nearest integer.
    narrow
        Whether the smallest integer is left unused.
    progress, cancel
        To watch and to stop it.
    executor
        A cluster, whose workers run the samples and add up moments; whatever else it is, samples are run here.
    pieces
        Numbers of the pieces of the data that may be used; None: all.
    effort
        None: what the weights need.

    Returns
    -------
    FrozenMap
        By name of the weight. The result depends on the arguments alone, not on the number of threads or workers.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    groups = find_groups(graph)
    all_of = {at: weight for at, group in enumerate(groups) if (weight := _weight(graph, group, encodings)) is not None}
    todo = {at: weight for at, weight in all_of.items() if layers is None or groups[at].head.name in layers}
    found: dict[str, RoundedWeight] = {}
    if not todo:
        return FrozenMap(found)
    end, where = max(todo), executor if isinstance(executor, Cluster) else None
    effort = effort or effort_of(graph, {weight: encodings[weight] for weight in todo.values()})
    chunks = _chunks(data, pieces or range(data.pieces), effort.samples, where is not None)
    nearest = {
        w: _nearest(graph.constants[w].array, encodings[w].qparams) for at, w in all_of.items() if at not in todo
    }

    def work() -> None:
        """From front to back; again where workers die with what they held, but no weight is rounded twice."""
        flow = Flow(graph, groups, (), {**nearest}, data.sizes, where, cancel).fed(chunks)
        for first, last in _stretches(flow, end):
            leading, others = flow.split(_few(flow, first, last))
            for at in range(first, last + 1):
                if stopped(cancel):
                    raise Cancelled("rounding of the weights was stopped")
                if at in todo:
                    if todo[at] not in found:
                        shortcut = None if effort.apart else _shortcut(graph, groups[at], flow.alive(at - 1))
                        given = graph, groups[at], shortcut, encodings[todo[at]], leading, narrow, effort
                        found[todo[at]] = _round(*given)
                        if progress is not None:
                            progress(len(found), len(todo))
                    if not effort.apart:
                        flow.constants.update(found[todo[at]].constants(todo[at]))
                if at < end:
                    leading = leading.advanced(at, at)
            if last < end:
                flow = leading.joined(others.advanced(first, last))

    with one_blas_thread():
        if where is None:
            work()
        else:
            where.repeated(work)
    return FrozenMap(found)


def _stretches(flow: Flow, end: int) -> Iterator[tuple[int, int]]:
    """First and last group of the stretches between places where the values of all samples can be kept."""
    first, chunks = 0, len(flow.chunks)
    for at in range(end + 1):
        if at == end or flow.nbytes(at) * chunks * _CHUNK <= _BUDGET:
            yield first, at
            first = at + 1


def _few(flow: Flow, first: int, last: int) -> int:
    """How many chunks can be kept within a stretch; the others go through it when its weights are rounded."""
    widest = max(flow.nbytes(at) for at in range(first, last + 1))
    return min(len(flow.chunks), max(_FEWEST, _BUDGET // max(1, widest * _CHUNK)))


def _weight(graph: Graph, group: Group, encodings: Mapping[str, Encoding]) -> str | None:
    """The weight of a group that can be rounded."""
    head = group.head
    if rule_of(head) != QuantRule.MAC or not can_unfold(head) or len(head.inputs) < 2:
        return None
    name = head.inputs[1]
    if name not in graph.constants or len(graph.consumers[name]) > 1 or name not in encodings:
        return None
    return name if encodings[name].qparams.qmax < 2**_BITS else None


def effort_of(graph: Graph, encodings: Mapping[str, Encoding]) -> Effort:
    """What those weights of a graph need that can be rounded."""
    found = (_weight(graph, group, encodings) for group in find_groups(graph))
    kinds = [encodings[weight].qparams for weight in found if weight is not None]
    fine = all(each.axis is not None and each.qmax - each.qmin >= 2 ** (_BITS - 1) for each in kinds)
    return LIGHT if fine else _FULL


def _chunks(data: Dataset, pieces: Sequence[int], samples: int, elsewhere: bool) -> list[Feeds]:
    """Samples evenly spread, in chunks; the samples of each are spread evenly, too."""
    chosen = data.spread(max(1, samples // data.layout.step), pieces)
    if not data.layout.batched:
        return data.groups([[piece] for piece in chosen], elsewhere)
    alike: dict[object, list[int]] = {}
    for piece in chosen:
        alike.setdefault(data.kind(piece), []).append(piece)
    chunks = list[Sequence[int]]()
    for some in alike.values():
        number = max(1, len(some) // _CHUNK)
        chunks += [some[first::number] for first in range(number)]
    return data.groups(chunks, elsewhere)


def _shortcut(graph: Graph, group: Group, alive: Collection[str]) -> str | None:
    """What is added to a layer's output and is there already: the layer can undo a part of what was lost in it."""
    (made,) = group.outputs
    readers = graph.consumers[made]
    if len(readers) != 1 or not is_op(readers[0], Add) or made in graph.outputs:
        return None
    others = [value for value in readers[0].inputs if value != made and value in alive]
    return next((value for value in others if graph.types[value].shape == graph.types[made].shape), None)


def _round(
    graph: Graph,
    group: Group,
    shortcut: str | None,
    encoding: Encoding,
    flow: Flow,
    narrow: bool,
    effort: Effort,
) -> RoundedWeight:
    """Round one weight, and correct the bias after it; to the nearest, where it reads NaN, as logarithms are of sums
    that rounding took below zero."""
    head = group.head
    array = graph.constants[head.inputs[1]].array
    weights = exact = unfolded_weight(head, array)
    unit = unit_of(flow.asked(_Peak(head.inputs[0]), max))
    share = 0.0
    if shortcut is not None:  # what was lost there counts as further inputs of the float network's layer
        share = unit_of(flow.asked(_Lost(shortcut), max)) / unit
        exact = np.concatenate([weights, share * np.stack([np.eye(weights.shape[1])] * len(weights))], axis=2)
    least, more = effort.inputs
    wanted = max(1, (least + more * weights.shape[2]) // len(flow.chunks))
    found = flow.asked(_Taken(head, array.shape, shortcut, share, unit, wanted), _merged)
    fitted, *back = (found[held] for held in sorted(found))
    if not all(moments.are_numbers for moments in found.values()):
        return RoundedWeight(_nearest(array, encoding.qparams), encoding.qparams, encoding.qparams, None)
    parts = fitted, back[0] if back else None
    second, product, ridge = _chosen(weights, exact, parts, effort.ridges, _bias_node(graph, group) is not None)
    wanted, qparams = targets(weights, second, product, ridge), encoding.qparams
    low, (scales, zeros) = qparams.qmin + narrow, _grid(qparams, weights)
    levels = Levels(low, qparams.qmax, qparams.zero_points[0] if len({*qparams.zero_points}) == 1 else None)
    if effort.scales and encoding.calibrator != "override" and "raised" not in encoding.reason:
        best = _best_grid(wanted, second, levels, qparams)
        alive = best[0] > _DEAD * scales
        scales, zeros = np.where(alive, best[0], scales), np.where(alive, best[1], zeros)
        every = qparams.block or scales.shape[2]
        flat, points = (part[:, :, ::every].reshape(-1) for part in (scales, zeros))
        scale, point, whole = tuple(flat.tolist()), tuple(map(int, points)), qparams.axis is None
        qparams = replace(qparams, scale=scale[0] if whole else scale, zero_point=point[0] if whole else point)
    grid, damping = _grid(qparams, weights), max(_DAMPING[0], _DAMPING[1] * ridge)
    made = least_squares.rounded(wanted, second, *grid, levels, damping, effort.sweeps)
    real = _nearest(folded(made, array).astype(np.float32), qparams)
    bias = _bias(graph, group, exact, unfolded_weight(head, real.array), parts)
    return RoundedWeight(real, qparams, encoding.qparams, bias)


def _nearest(weight: Array, qparams: QParams) -> Constant:
    """A weight on the levels of its qparams, as real numbers."""
    return Constant(dequantize(quantize(weight, qparams), qparams).astype(np.float32))


@dataclass(frozen=True)
class _Peak:
    """The largest number in a value of the float network."""

    value: str

    def __call__(self, chunk: Both, number: int) -> float:
        return _peak(chunk.exact[self.value])


@dataclass(frozen=True)
class _Lost:
    """The largest difference between both networks in a value."""

    value: str

    def __call__(self, chunk: Both, number: int) -> float:
        return _peak(chunk.exact[self.value] - chunk.rounded[self.value])


def _peak(array: Array) -> float:
    """The largest magnitude, without an array of all of them."""
    return float(np.maximum(array.max(initial=0), -array.min(initial=0)))


@dataclass(frozen=True)
class _Taken:
    """Moments of about so many places of what a node reads, by whether the chunk is held back.

    What a shortcut lost is read by the float network beside it, in units of `share`.
    """

    head: Node
    shape: Sequence[int]
    shortcut: str | None
    share: float
    unit: float
    wanted: int

    def __call__(self, chunk: Both, number: int) -> dict[bool, Moments]:
        f, q = (np.asarray(values[self.head.inputs[0]], np.float32) for values in chunk[:2])
        every = max(1, round(places(self.head, f, self.shape) / self.wanted))
        exact = unfolded(self.head, f, self.shape, every, number % every, self.unit)
        rounded = exact if f is q else unfolded(self.head, q, self.shape, every, number % every, self.unit)
        both = [exact]
        if self.shortcut is not None:
            lost = np.subtract(chunk.exact[self.shortcut], chunk.rounded[self.shortcut], dtype=np.float32)
            both.append(placed(self.head, lost, every, number % every, self.unit * self.share))
        return {number % _HELD == _HELD - 1: Moments.of(both, rounded)} if rounded.count else {}


def _merged(*parts: Mapping[bool, Moments]) -> dict[bool, Moments]:
    """Those of all chunks."""
    found: dict[bool, Moments] = {}
    for part in parts:
        found |= {held: found[held].merge(new) if held in found else new for held, new in part.items()}
    return found


def _chosen(
    weights: Array, exact: Array, parts: _Parts, ridges: Sequence[float], centre: bool
) -> tuple[Array, Array, float]:
    """Moments of all inputs and of them with the float output; the ridge that does best on those held back."""
    fitted, back = parts

    def of(moments: Moments) -> tuple[Array, Array]:
        second, cross = moments.about(centre)
        return second, exact @ cross

    if back is None:
        return *of(fitted), _FEW_RIDGE
    everything = of(fitted.merge(back))
    if len(ridges) == 1:
        return *everything, ridges[0]
    unseen = of(back)
    losses = [loss(targets(weights, *of(fitted), ridge), *unseen) for ridge in ridges]
    return *everything, ridges[int(np.argmin(losses))]


def _best_grid(wanted: Array, second: Array, levels: Levels, qparams: QParams) -> tuple[Array, Array]:
    """What loses least, shaped as `_grid` gives it; each block of inputs is looked at by itself."""
    if qparams.block is None:
        return best_scales(wanted, second, levels, qparams.axis is None)
    size = qparams.block
    parts = [slice(first, first + size) for first in range(0, wanted.shape[2], size)]
    found = [best_scales(wanted[:, :, part], second[:, part, part], levels) for part in parts]
    scales, zeros = (np.repeat(np.concatenate(some, axis=2), size, axis=2) for some in zip(*found, strict=True))
    return scales, zeros


def _grid(qparams: QParams, weights: Array) -> tuple[Array, Array]:
    """Scales and zero points of each output, float64[groups, outputs, 1]; of each weight where they go by blocks."""
    groups, outputs, _ = weights.shape
    if qparams.block is not None:
        whole = qparams.scale_array(weights.shape[1:]), qparams.zero_point_array(weights.shape[1:])
        return whole[0].astype(np.float64)[np.newaxis], whole[1].astype(np.float64)[np.newaxis]
    each = (np.asarray(part, np.float64) for part in (qparams.scales, qparams.zero_points))
    scales, zeros = (np.broadcast_to(part, (groups * outputs,)).reshape(groups, outputs, 1) for part in each)
    return scales, zeros


def _bias_node(graph: Graph, group: Group) -> Node | None:
    """The node that adds a bias of the group's own."""
    node = next((node for node in group.nodes[1:] if rule_of(node) == QuantRule.BIAS), None)
    return None if node is None or len(graph.consumers[node.inputs[1]]) > 1 else node


def _bias(graph: Graph, group: Group, exact: Array, made: Array, parts: _Parts) -> tuple[str, Constant] | None:
    """The bias that brings the mean of each output back to the float network's."""
    node = _bias_node(graph, group)
    if node is None:
        return None
    fitted, back = parts
    means = (fitted if back is None else fitted.merge(back)).means
    shift = (exact @ means[0][:, :, None] - made @ means[1][:, :, None]).reshape(-1)
    before = graph.constants[node.inputs[1]].array.astype(np.float64)
    return node.inputs[1], Constant((before + shift.reshape(before.shape)).astype(np.float32))
