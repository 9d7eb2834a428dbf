"""What both models make of a few samples at one layer, value by value: computed for whoever looks, and not kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qbench.data.dataset import Chunk, Dataset
from qbench.errors import SessionError, nearest, shown
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.keys import value_keys
from qbench.evaluate.layers import Layer, layers_of
from qbench.evaluate.partial import partial_run
from qbench.evaluate.side_by_side import BATCH, programs_of
from qbench.forms.scores import floors
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array, QuantRule, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ir.specialize import sized
from qbench.ops.float.reshape import Transpose
from qbench.passes.annotate import points
from qbench.progress import Cancel
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quantize.quantized import Quantized

_SAMPLES, _BYTES = 8, 1 << 26  # at most, of one tensor
_IN_PLACE = {QuantRule.CLAMP, QuantRule.TABLE, QuantRule.ELEMENTWISE, QuantRule.AVERAGE, QuantRule.CONCAT}


@dataclass(frozen=True, eq=False)
class Values:
    """One tensor in both models.

    Parameters
    ----------
    layer, part, tensor
        Which one: what the layer's fused group makes, or the constant that it multiplies by.
    exact, quantized
        float32, of one shape: the float model's, and what the quantized model's stand for; NaN where a mask hides what
        a softmax reads. Samples along axis 0 of an activation.
    qparams
        Of the integers; None where the quantized model has real numbers there, too.
    axis
        Of the channels; None where there are none.
    """

    layer: str
    part: Literal["activation", "weight"]
    tensor: str
    exact: NDArray[np.float32]
    quantized: NDArray[np.float32]
    qparams: QParams | None
    axis: int | None


def layer_values(
    quantized: Quantized, data: Dataset, layer: str, cache: ValueCache, cancel: Cancel | None = None
) -> Values:
    """Run a few samples, evenly spread over the first batch of the data, as far as the layer.

    Raises
    ------
    SessionError
        No layer has that name, or it makes no real numbers.
    Cancelled
        Somebody asked to stop.
    """
    cache.begin()
    layers = layers_of(quantized, cache, data.sizes)
    graphs, ends = (quantized.prepared, quantized.graph), _named(layers, layer).ends
    if not ends or not is_float(quantized.prepared.types[ends[0][0]].dtype):
        raise SessionError(f"layer {shown(layer)} makes no real numbers that could be compared")
    pair, chunk = ends[0], _few(quantized.prepared, data, ends[0][0])
    programs = programs_of(quantized, dict.fromkeys(end for one in layers for end in one.ends), cache)
    made: list[Array] = []
    for graph, of, name in zip(graphs, programs, pair, strict=True):
        run = partial_run(of, value_keys(graph, cache.memo), chunk, {name}, cache, (), cancel=cancel)
        made.append(np.asarray(run.arrays[name]))
    q = quantized.graph.qparams.get(pair[1])
    exact, other = made[0].astype(np.float32), made[1] if q is None else dequantize(made[1], q)
    other = other.astype(np.float32).reshape(exact.shape)
    if pair[0] in (hidden := floors(quantized.prepared)):
        exact, other = (np.where(exact <= hidden[pair[0]], np.float32(np.nan), one) for one in (exact, other))
    axis = _channel_axis(quantized.prepared, pair[0])
    return Values(layer, "activation", pair[0], exact, other, q, axis)


def weight_values(quantized: Quantized, layer: str, cache: ValueCache) -> Values:
    """The weight that a layer multiplies by, before and after rounding; SessionError where it has none."""
    tensor = _named(layers_of(quantized, cache, {}), layer).report.weight
    if tensor is None:
        raise SessionError(f"layer {shown(layer)} has no quantized weight")
    q = quantized.encodings[tensor].qparams
    exact = quantized.prepared.constants[tensor].array
    rounded = dequantize(quantize(quantized.annotated.constants[tensor].array, q), q)
    axis = points(quantized.annotated)[tensor].channel_axis
    real, other = exact.astype(np.float32), rounded.astype(np.float32).reshape(exact.shape)
    return Values(layer, "weight", tensor, real, other, q, axis)


def _named(layers: Iterable[Layer], name: str) -> Layer:
    by_name = {one.report.name: one for one in layers}
    if name not in by_name:
        raise SessionError(f"no layer is called {shown(name)}{nearest(name, list(by_name))}")
    return by_name[name]


def _few(graph: Graph, data: Dataset, tensor: str) -> Chunk:
    """Samples of which the tensor's values are few enough to look at."""
    batch = next(data.batches(BATCH))
    rows = batch.stop - batch.start
    if not data.layout.batched:
        return batch
    count = max(1, min(_SAMPLES, rows, _BYTES // max(1, sized(graph, data.sizes).types[tensor].nbytes)))
    return data.part(batch, [i * rows // count for i in range(count)])


def _channel_axis(graph: Graph, tensor: str) -> int | None:
    """Where the op that made a tensor counts channels, or those before it that left its axes alone; else the last."""
    rank, node = graph.types[tensor].rank, graph.producers.get(tensor)
    axis = None if node is None else bind(node).channel_axis_of("output", rank)
    if axis is None and node is not None and graph.types[node.inputs[0]].rank == rank:
        order = node.attrs.get("axes") if is_op(node, Transpose) else None
        if isinstance(order, tuple):
            before = _channel_axis(graph, node.inputs[0])
            return None if before is None else order.index(before)
        if OPS[node.op].rule in _IN_PLACE:
            return _channel_axis(graph, node.inputs[0])
    return axis if axis is not None else None if rank < 2 else 1 if rank == 4 else rank - 1
