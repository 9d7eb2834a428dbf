"""What can be said of each layer before any data runs: its type, its reason, its encoding, where its values are."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbench.evaluate.cache import ValueCache
from qbench.evaluate.measure import decibels
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule, is_op
from qbench.ir.specialize import sized
from qbench.ops.integer.recurrent import StoredRecurrent
from qbench.ops.moves import moved_from
from qbench.ops.products import macs
from qbench.ops.qnn.dynamic import DynamicDense
from qbench.passes.annotate import quantized_value
from qbench.passes.groups import Group, find_groups, group_of
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quantize.quantized import Quantized
from qbench.report.entries import LayerReport


@dataclass(frozen=True)
class Layer:
    """A layer's report without measurements, and what to measure: float tensors and the values that stand for them.

    Parameters
    ----------
    report
        The report.
    pairs
        What the node itself makes, accumulators too: programs that keep those fuse nothing.
    ends
        What its fused group makes.
    """

    report: LayerReport
    pairs: tuple[tuple[str, str], ...]
    ends: tuple[tuple[str, str], ...]


def layers_of(quantized: Quantized, cache: ValueCache, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
    """One entry per node of the prepared graph, in execution order; products are counted for open sizes like these."""
    prepared = quantized.prepared
    at_sizes = sized(prepared, sizes)
    encoded = encoded_tensors(prepared, quantized.encodings)
    groups = {node.name: group for group in find_groups(prepared) for node in group.nodes}
    return tuple(
        _layer(quantized, node, groups[node.name], encoded[node.name], macs(at_sizes, at_sizes.node(node.name)), cache)
        for node in prepared.nodes
    )


def encoded_tensors(prepared: Graph, encodings: Collection[str]) -> dict[str, str | None]:
    """The tensor whose encoding each node has, by node name: what an override of the node changes.

    That is the output of the node's fused group; for ops that only move elements, the tensor that they move; None where
    that is not quantized.
    """
    outputs = group_of(prepared)
    found: dict[str, str | None] = {}
    for node in prepared.nodes:
        own = node.outputs[0]
        start = own if own in encodings else outputs[node.name]
        found[node.name] = next((value for value in moved_from(prepared, start) if value in encodings), None)
    return found


def value_of(graph: Graph, tensor: str) -> str | None:
    """The value of the integer graph that stands for a float tensor: in reals if there is one, else in integers."""
    if tensor in graph.types and (tensor in graph.qparams or is_float(graph.types[tensor].dtype)):
        return tensor
    return quantized_value(graph, tensor) or (tensor if tensor in graph.types else None)


def _layer(
    quantized: Quantized, node: Node, group: Group, encoded: str | None, products: int, cache: ValueCache
) -> Layer:
    dtype, reason = _runs_as(quantized, node, group.head, encoded)
    said: dict[str, Any] = {}
    if encoded is not None:
        encoding = quantized.encodings[encoded]
        low, high = encoding.qparams.qmin, encoding.qparams.qmax
        said |= {
            "threshold": encoding.threshold,
            "scale": encoding.qparams.scale,
            "zero_point": encoding.qparams.zero_point,
            "bits": (high - low).bit_length(),
            "calibrator": encoding.calibrator,
            "chosen_by": encoding.reason,
        }
    weight = _weight(quantized, node)
    if weight is not None:
        whole, worst = _weight_ratios(quantized, weight, cache)
        scale = quantized.encodings[weight].qparams.scale
        said |= {"weight": weight, "weight_scale": scale, "weight_sqnr_db": whole, "weight_worst_channel_db": worst}
    report = LayerReport(
        name=node.name,
        op=node.op,
        tensor=node.outputs[0],
        runs_as=dtype,
        reason=reason,
        encoded=encoded,
        macs=products,
        shape=quantized.prepared.types[node.outputs[0]].shape,
        **said,
    )
    pairs = _pairs(quantized, node, encoded)
    return Layer(report, pairs, _paired(quantized, group.outputs) or pairs)


def _pairs(quantized: Quantized, node: Node, encoded: str | None) -> tuple[tuple[str, str], ...]:
    """What to compare: the node's outputs, or its group's where its own is never there (the add before a relu)."""
    return _paired(quantized, node.outputs) or _paired(quantized, () if encoded is None else (encoded,))


def _paired(quantized: Quantized, tensors: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name in tensors if (value := value_of(quantized.graph, name)) is not None)


def _runs_as(quantized: Quantized, node: Node, head: Node, encoded: str | None) -> tuple[str, str | None]:
    """The layer's dtype, and the reason where that is a float one."""
    graph, rule = quantized.graph, OPS[node.op].rule
    runs = graph.by_name.get(node.name)
    if runs is not None and OPS[runs.op].rule != QuantRule.INTERNAL and graph.qparams.keys().isdisjoint(runs.outputs):
        types = [graph.types[name] for name in (*runs.outputs, *runs.inputs)]
        return next((type.dtype for type in types if is_float(type.dtype)), "int32"), runs.reason or None
    if is_op(runs, DynamicDense, StoredRecurrent):
        return "uint8" if is_op(runs, DynamicDense) else "int8", runs.reason if runs else None
    if runs is not None and rule == QuantRule.MAC:
        return graph.types[runs.inputs[0]].dtype, None
    if rule == QuantRule.BIAS and head is not node:
        return "int32", None
    value = quantized_value(graph, node.outputs[0])
    if value is None and encoded is not None:  # within a fused group, such as the add before a relu
        return quantized.encodings[encoded].qparams.dtype, None
    return graph.types[value or node.outputs[0]].dtype, None


def _weight(quantized: Quantized, node: Node) -> str | None:
    """The constant that a layer multiplies by, where it is quantized."""
    if OPS[node.op].rule != QuantRule.MAC and not OPS[node.op].reads_integers:
        return None
    constants, encodings = quantized.prepared.constants, quantized.encodings
    return next((name for name in node.inputs if name in constants and name in encodings), None)


def _weight_ratios(quantized: Quantized, name: str, cache: ValueCache) -> tuple[float | None, float | None]:
    """What rounding does to the weights alone: SQNR of them all, and of the channel where it is lowest.

    One scale for all channels spoils those whose weights are small, which hardly shows in the sum over all.
    """
    array, qparams = quantized.prepared.constants[name].array, quantized.encodings[name].qparams
    kept = quantized.annotated.constants[name]
    key = ("weight", quantized.prepared.constants[name].digest, kept.digest, qparams)
    found = cache.get_result(key)
    if found is None:
        exact = array.reshape(len(array) if array.ndim else 1, -1).astype(np.float64)
        error = exact - dequantize(quantize(kept.array, qparams), qparams).reshape(exact.shape)
        signal, noise = np.square(exact).sum(axis=1), np.square(error).sum(axis=1)
        channels = [decibels(*sums) for sums in zip(signal.tolist(), noise.tolist(), strict=True)]
        known = [ratio for ratio in channels if ratio is not None]
        found = (decibels(float(signal.sum()), float(noise.sum())), min(known, default=None))
        cache.put_result(key, found)
    return found
