"""What each layer loses by itself, and what it inherits from the layers before it.

A layer is computed in integers from exact inputs: the float model's own, rounded to their encodings. How far that is
from what the float layer makes of the same rounded inputs is the layer's own error: rounding and clipping an input is
charged to the layer that makes it, rounding the model's input to those that read it. The rest of the error of the
quantized model's value is what the errors of all layers before have become here. An edit changes the own errors of a
layer and of those that read it, and nothing else: only they are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from qbench.data.dataset import Chunk, Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.ideal import ideal_graph, read_by
from qbench.evaluate.keys import value_keys
from qbench.evaluate.measure import Deviation, deviation, stride
from qbench.evaluate.partial import partial_run, sample_of
from qbench.evaluate.side_by_side import BATCH, Pair, float_values, programs_of
from qbench.ir.batch import batch_symbol
from qbench.ir.build import build
from qbench.ir.dtypes import is_float, numpy_dtype
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import Array, is_op
from qbench.ir.qparams import QParams
from qbench.ir.sizes import size_of
from qbench.ir.specialize import specialize
from qbench.ir.types import TensorType, dim_factors, numel
from qbench.ops.float.select import Cast
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.passes.annotate import quantized_value
from qbench.progress import Cancel
from qbench.quant.arithmetic import dequantize
from qbench.quantize.quantized import Quantized
from qbench.runtime.feeds import check_feeds
from qbench.runtime.programs import Programs

_PartRun = Callable[
    [Graph, Mapping[str, str], Mapping[str, Array], Mapping[str, int], Iterable[str]], Mapping[str, Array]
]

_MOST_SAMPLES, _MOST_BYTES = 8, 1 << 27  # of exact inputs


@dataclass(frozen=True, slots=True)
class Own:
    """Of one value: the error that its layer makes of exact inputs, and what the layers before add to it."""

    own: Deviation = field(default_factory=Deviation)
    inherited: Deviation = field(default_factory=Deviation)

    def __add__(self, other: Own) -> Own:
        return Own(self.own + other.own, self.inherited + other.inherited)


def own_errors(
    quantized: Quantized,
    probe: Dataset,
    pairs: Iterable[Pair],
    cache: ValueCache,
    elements: int,
    cancel: Cancel | None = None,
) -> dict[Pair, Own]:
    """Measure both errors of each pair on some samples of the probe.

    Parameters
    ----------
    quantized, cache, cancel
        As for :func:`~qbench.evaluate.evaluate.evaluate`.
    probe
        A few samples.
    pairs
        Float tensors and the values that stand for them, where fused groups end.
    elements
        About how many elements of each value are compared in each sample.
    """
    exact, graph = quantized.prepared, quantized.graph
    counts = _counting(exact)
    cuts, wanted_pairs = _cuts(quantized), tuple(pairs)
    usable = [p for p in wanted_pairs if p[1] in graph.producers and _is_comparable(exact.types[p[0]], counts)]
    stand_ins = {pair: (pair[0], _integers(graph, cuts, *pair)) for pair in usable}
    keys = value_keys(exact, cache.memo), value_keys(graph, cache.memo)
    said = {
        value: f"exact {keys[0][tensor]} as {graph.types[value].dtype} {graph.qparams.get(value)}"
        for value, tensor in cuts.items()
    }
    own_keys = value_keys(graph, cache.memo, said)
    batch = next(probe.batches(BATCH))
    rows = [0] if counts is None else _rows(batch, exact, cuts.values())
    few = probe.part(batch, rows) if probe.layout.batched else batch
    known_as = {
        (a, b): ("own", keys[0][a], keys[1][b], own_keys[b], few.digest, elements) for a, b in stand_ins.values()
    }
    known: dict[Pair, Own | None] = {pair: cache.get_result(key) for pair, key in known_as.items()}
    found = {pair: own for pair, own in known.items() if own is not None}
    every = {pair: stride(numel(exact.types[pair[0]].shape), elements) for pair in known if pair not in found}
    if not every:
        return {pair: found[other] for pair, other in stand_ins.items()}

    programs = programs_of(quantized, wanted_pairs, cache)

    def samples(side: int) -> Mapping[str, Array]:
        some = {pair[side]: step for pair, step in every.items()}
        of_batch = {name: cache.get((keys[side][name], batch.digest, step)) for name, step in some.items()}
        if counts and any(array is not None for array in of_batch.values()):  # a probe has just been there
            run = partial_run(programs[side], keys[side], batch, (), cache, (), cancel=cancel, sample=some)
            return {name: array[rows] for name, array in run.samples.items()}
        return partial_run(programs[side], keys[side], few, (), cache, (), cancel=cancel, sample=some).samples

    def exact_inputs(tensors: Collection[str]) -> Mapping[str, Array]:
        run = partial_run(programs[0], keys[0], few, tensors, cache, {*cuts.values()}, cancel=cancel)
        return {name: _finite(array) for name, array in run.arrays.items()}

    def part_run(
        part: Graph, said: Mapping[str, str], fed: Mapping[str, Array], sample: Mapping[str, int], keep: Iterable[str]
    ) -> Mapping[str, Array]:
        """Samples of what a part of the network makes; a sample of the data is there what it is in the whole."""
        part = specialize(part, {**check_feeds(exact, few.feeds), **({counts: counts} if counts else {})})
        programs, chunk = Programs(part, keep), replace(few, feeds=fed)
        if batch_symbol(part) == counts:
            return partial_run(programs, said, chunk, (), cache, (), cancel=cancel, sample=sample).samples
        arrays = partial_run(programs, said, chunk, sample, cache, (), cancel=cancel).arrays
        found = {name: sample_of(arrays[name], part.types[name], len(rows), every) for name, every in sample.items()}
        for name, array in found.items():
            cache.put((said[name], few.digest, sample[name]), array)
        return found

    reference, values = samples(0), samples(1)
    wanted = {value: step for (_, value), step in every.items()}
    own = {value: cache.get((own_keys[value], few.digest, step)) for value, step in wanted.items()}
    stale = {value: wanted[value] for value, array in own.items() if array is None}
    if stale:
        alone, tensors = _apart(quantized, cuts, stale)
        arrays = exact_inputs({*tensors.values()})
        fed = {name: arrays[tensor] for name, tensor in tensors.items()}
        own |= part_run(alone, own_keys, fed, stale, [*float_values(alone), *stale])
    ideal = _ideals(quantized, cuts, every, keys[0], few, cache, exact_inputs, part_run)
    for tensor, value in every:
        pair = tensor, value
        given = ideal.get(value, reference[tensor])
        found[pair] = _own(reference[tensor], given, own[value], values[value], graph.qparams.get(value))
        cache.put_result(known_as[pair], found[pair])
    return {pair: found[other] for pair, other in stand_ins.items()}


def _counting(exact: Graph) -> str | None:
    """The symbol that counts samples, where each value has them along axis 0 or is the same for all."""
    symbol = batch_symbol(exact)
    inside = {dim for kind in exact.types.values() for dim in kind.shape[1:] if isinstance(dim, str)}
    return None if any(symbol in size_of(dim).symbols for dim in inside) else symbol


def _is_comparable(kind: TensorType, counts: str | None) -> bool:
    """Whether what is sampled of a value has the same layout in the whole network and in a part of it."""
    symbol = dim_factors(kind.shape[0])[1] if kind.shape else None
    return kind.dtype != "bool" and (counts is None or symbol == counts)


def _finite(array: Array) -> Array:
    """The infinities of a mask as numbers, which a layer may be given; NaN, which nothing reads in the end, as 0."""
    return array if array.dtype.kind != "f" or np.isfinite(array).all() else np.nan_to_num(array)


def _integers(graph: Graph, cuts: Mapping[str, str], tensor: str, value: str) -> str:
    """The integers that a real value is made of, where it stands for the same tensor as they do."""
    maker = graph.producers[value]
    return maker.inputs[0] if is_op(maker, Dequantize) and cuts.get(maker.inputs[0]) == tensor else value


def _ideals(
    quantized: Quantized,
    cuts: Mapping[str, str],
    every: Mapping[Pair, int],
    keys: Mapping[str, str],
    few: Chunk,
    cache: ValueCache,
    exact_inputs: Callable[[Collection[str]], Mapping[str, Array]],
    part_run: _PartRun,
) -> dict[str, Array]:
    """By value: a sample of what its float layer makes of rounded inputs."""
    graph, exact = quantized.graph, quantized.prepared
    layers = {b: (a, read_by(graph, cuts, b)) for a, b in every if a in exact.producers}
    strides = {b: step for (_, b), step in every.items() if b in layers}
    known_as = {value: _ideal_key(graph, keys, *of) for value, of in layers.items()}
    known = {value: cache.get((key, few.digest, strides[value])) for value, key in known_as.items()}
    found = {value: array for value, array in known.items() if array is not None}
    stale = {value: of for value, of in layers.items() if value not in found}
    if not stale:
        return found
    ideal, inputs, outputs = ideal_graph(quantized, stale)
    arrays = exact_inputs({*inputs.values()})
    fed = {name: arrays[tensor] for name, tensor in inputs.items()}
    wanted = {outputs[value]: strides[value] for value in stale}
    said = {outputs[value]: known_as[value] for value in stale}
    samples = part_run(ideal, said, fed, wanted, wanted)
    return found | {value: samples[outputs[value]] for value in stale}


def _ideal_key(graph: Graph, keys: Mapping[str, str], tensor: str, reads: Mapping[str, str]) -> str:
    rounded = sorted(
        f"{keys[name]} {graph.types[value].dtype} {graph.qparams.get(value)}" for name, value in reads.items()
    )
    return f"ideal {keys[tensor]} of {rounded}"


def _own(reference: Array, ideal: Array, own: Array | None, value: Array, integers: QParams | None) -> Own:
    assert own is not None
    signal = deviation(reference, value, None, integers).signal
    alone = own if integers is None else dequantize(own, integers)
    with np.errstate(over="ignore"):  # where a mask is added to a mask
        without = alone + (_finite(reference) - _finite(ideal))  # had all layers but this one been exact
    inherited = deviation(without, value, None, integers)
    return Own(replace(deviation(ideal, own, None, integers), signal=signal), replace(inherited, signal=signal))


def _rows(batch: Chunk, exact: Graph, tensors: Iterable[str]) -> list[int]:
    """Which samples of a batch to take: evenly spread, as many as there is room for whole tensors."""
    types = [exact.types[name] for name in {*tensors}]
    size = sum(numel(type.shape) * numpy_dtype(type.dtype).itemsize for type in types)
    rows = batch.stop - batch.start
    count = max(1, min(_MOST_SAMPLES, rows, _MOST_BYTES // max(1, size)))
    return [index * rows // count for index in range(count)]


def _cuts(quantized: Quantized) -> dict[str, str]:
    """Where layers can be given exact values: the float tensor, by the value that stands for it between layers."""
    exact, graph, constants = quantized.prepared, quantized.graph, quantized.prepared.constants
    cuts = {name: name for name in float_values(graph) if name in exact.types}
    for tensor in quantized.encodings:
        value = None if tensor in constants else quantized_value(graph, tensor)
        if value is not None:
            cuts[value] = tensor
    for node in graph.nodes:
        if is_op(node, Quantize):
            source = node.inputs[0]
            while source in graph.producers and is_op(graph.producers[source], Cast):
                source = graph.producers[source].inputs[0]
            if source in cuts:
                cuts[node.output] = source
    return cuts


def _apart(quantized: Quantized, cuts: Mapping[str, str], wanted: Iterable[str]) -> tuple[Graph, dict[str, str]]:
    """A graph that makes values from exact ones, and the float tensor that each of its inputs is."""
    exact, graph = quantized.prepared, quantized.graph
    inputs: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    qparams = dict(graph.qparams)

    def cut(value: str) -> str:
        """The name of the exact value that stands for one that another layer makes."""
        given, tensor = f"exact {cuts[value]}", cuts[value]
        inputs[given] = tensor
        kind = graph.types[value]
        if kind == exact.types[tensor]:
            return given
        made = f"exact {value} as {kind.dtype}"
        if made not in nodes:
            attrs = FrozenMap[str, Attr]({"dtype": kind.dtype} if is_float(kind.dtype) else {})
            nodes[made] = Node(made, Cast.name if attrs else Quantize.name, (given,), (made,), attrs)
            qparams.update({made: graph.qparams[value]} if value in graph.qparams else {})
        return made

    todo = [graph.producers[value] for value in wanted]
    while todo:
        node = todo.pop()
        if node.name in nodes:
            continue
        nodes[node.name] = replace(node, inputs=tuple(cut(name) if name in cuts else name for name in node.inputs))
        todo += [graph.producers[name] for name in node.inputs if name not in cuts and name in graph.producers]
        inputs |= {name: name for name in node.inputs if name in graph.inputs and name not in cuts}
    types = {name: exact.types[tensor] for name, tensor in inputs.items()}
    first = next(iter(wanted))
    return build("alone", types, [first], nodes.values(), graph.constants, qparams), inputs
