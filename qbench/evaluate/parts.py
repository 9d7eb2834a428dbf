"""Parts of the network run by themselves, on a few samples, from exact values: what the float model makes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from qbench.data.dataset import Chunk, Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.ideal import ideal_graph, read_by
from qbench.evaluate.keys import value_keys
from qbench.evaluate.partial import partial_run, sample_of
from qbench.evaluate.side_by_side import BATCH, Pair, float_values, programs_of
from qbench.ir.batch import batch_symbol
from qbench.ir.build import build
from qbench.ir.dtypes import is_float
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import Array, is_op
from qbench.ir.sizes import size_of
from qbench.ir.specialize import sized, specialize
from qbench.ir.types import TensorType, dim_factors
from qbench.ops.float.select import Cast
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.passes.annotate import quantized_value
from qbench.progress import Cancel
from qbench.quantize.quantized import Quantized
from qbench.runtime.feeds import check_feeds
from qbench.runtime.programs import Programs

_MOST_SAMPLES, _MOST_BYTES = 8, 1 << 27  # of exact inputs


class Parts:
    """Parts of a quantized network on some samples of the first batch of a probe.

    Parameters
    ----------
    quantized, probe, pairs, cache, cancel
        As for :func:`~qbench.evaluate.own_errors.own_errors`.
    """

    def __init__(
        self, quantized: Quantized, probe: Dataset, pairs: Iterable[Pair], cache: ValueCache, cancel: Cancel | None
    ) -> None:
        self._quantized, self._pairs, self._cache, self._cancel = quantized, tuple(pairs), cache, cancel
        self._exact, self._graph = quantized.prepared, quantized.graph
        self.keys = value_keys(self._exact, cache.memo), value_keys(self._graph, cache.memo)
        """Identity of each value of the float and of the quantized network."""
        self._counts = _counting(self._exact)
        self._batch = next(probe.batches(BATCH))
        self.types = sized(self._exact, probe.sizes).types
        """Of the float network's values in a sample."""
        self.cuts = _cuts(quantized)
        """Where layers can be given exact values: the float tensor, by the value that stands for it between layers."""
        counts = self._counts
        self._rows = [0] if counts is None else _rows(self._batch, self.types, self.cuts.values())
        self.few = probe.part(self._batch, self._rows) if probe.layout.batched else self._batch
        """The samples."""
        said = {
            value: f"exact {self.keys[0][tensor]} as {self._graph.types[value].dtype} {self._graph.qparams.get(value)}"
            for value, tensor in self.cuts.items()
        }
        self.own_keys = value_keys(self._graph, cache.memo, said)
        """Identity of what each value is where all layers before its own are exact."""

    @cached_property
    def _programs(self) -> tuple[Programs, Programs]:
        """Of the whole networks."""
        return programs_of(self._quantized, self._pairs, self._cache)

    def stand_ins(self) -> dict[Pair, Pair]:
        """The pairs that can be compared, each with the one to compare: integers rather than the reals made of them;
        reals rather than integers of several scales, as a sample does not say whose scale an element has."""
        types, made = self._exact.types, self._graph.producers
        usable = [pair for pair in self._pairs if pair[1] in made and _is_comparable(types[pair[0]], self._counts)]
        stand_ins = {pair: (pair[0], self._integers(*pair)) for pair in usable}
        return {pair: stand_in for pair, stand_in in stand_ins.items() if self._has_one_scale(stand_in[1])}

    def whole(self, strides: Mapping[Pair, int]) -> tuple[Mapping[str, Array], ...]:
        """A sample of both values of each pair that a stride is given for, as the whole networks make them."""
        batch, keys = self._batch, self.keys

        def samples(side: int) -> Mapping[str, Array]:
            some = {pair[side]: step for pair, step in strides.items()}
            of_batch = {name: self._cache.get((keys[side][name], batch.digest, step)) for name, step in some.items()}
            known = self._counts is not None and any(array is not None for array in of_batch.values())
            chunk = batch if known else self.few  # a probe has just been there
            program, said = self._programs[side], keys[side]
            run = partial_run(program, said, chunk, (), self._cache, (), cancel=self._cancel, sample=some)
            return {name: array[self._rows] for name, array in run.samples.items()} if known else run.samples

        return samples(0), samples(1)

    def own(self, strides: Mapping[str, int]) -> dict[str, Array]:
        """A sample of what the layer of each value makes of exact inputs."""
        known = {value: self._kept(self.own_keys[value], step) for value, step in strides.items()}
        found = {value: array for value, array in known.items() if array is not None}
        stale = {value: step for value, step in strides.items() if value not in found}
        if stale:
            alone, tensors = _apart(self._quantized, self.cuts, stale)
            found |= self._run(alone, self.own_keys, tensors, stale, [*float_values(alone), *stale])
        return found

    def ideals(self, strides: Mapping[Pair, int]) -> dict[str, Array]:
        """By value: a sample of what its float layer makes of rounded inputs."""
        graph, (keys, _) = self._graph, self.keys
        layers = {b: (a, read_by(graph, self.cuts, b)) for a, b in strides if a in self._exact.producers}
        steps = {b: step for (_, b), step in strides.items() if b in layers}
        known_as = {value: _ideal_key(graph, keys, *of) for value, of in layers.items()}
        known = {value: self._kept(key, steps[value]) for value, key in known_as.items()}
        found = {value: array for value, array in known.items() if array is not None}
        stale = {value: of for value, of in layers.items() if value not in found}
        if stale:
            ideal, tensors, outputs = ideal_graph(self._quantized, stale)
            wanted = {outputs[value]: steps[value] for value in stale}
            said = {outputs[value]: known_as[value] for value in stale}
            samples = self._run(ideal, said, tensors, wanted, wanted)
            found |= {value: samples[outputs[value]] for value in stale}
        return found

    def _kept(self, key: str, step: int) -> Array | None:
        return self._cache.get((key, self.few.digest, step))

    def _run(
        self,
        part: Graph,
        said: Mapping[str, str],
        tensors: Mapping[str, str],
        sample: Mapping[str, int],
        keep: Iterable[str],
    ) -> Mapping[str, Array]:
        """Samples of what a part makes of exact tensors; one of the data is there what it is in the whole network."""
        few, counts, cache = self.few, self._counts, self._cache
        exact = self._exact_values({*tensors.values()})
        chunk = replace(few, feeds={name: exact[tensor] for name, tensor in tensors.items()})
        part = specialize(part, {**check_feeds(self._exact, few.feeds), **({counts: counts} if counts else {})})
        programs = Programs(part, keep)
        if batch_symbol(part) == counts:
            return partial_run(programs, said, chunk, (), cache, (), cancel=self._cancel, sample=sample).samples
        arrays = partial_run(programs, said, chunk, sample, cache, (), cancel=self._cancel).arrays
        rows = len(self._rows)
        found = {name: sample_of(arrays[name], part.types[name], rows, every) for name, every in sample.items()}
        for name, array in found.items():
            cache.put((said[name], few.digest, sample[name]), array)
        return found

    def _exact_values(self, tensors: Collection[str]) -> Mapping[str, Array]:
        cuts = {*self.cuts.values()}
        run = partial_run(self._programs[0], self.keys[0], self.few, tensors, self._cache, cuts, cancel=self._cancel)
        return {name: finite(array) for name, array in run.arrays.items()}

    def _integers(self, tensor: str, value: str) -> str:
        """The integers that a real value is made of, where it stands for the same tensor as they do; of integers of
        several scales the reals that are made of them, where there are any."""
        maker = self._graph.producers[value]
        if is_op(maker, Dequantize) and self.cuts.get(maker.inputs[0]) == tensor:
            return maker.inputs[0] if self._has_one_scale(maker.inputs[0]) else value
        readers = () if self._has_one_scale(value) else self._graph.consumers[value]
        return next((node.output for node in readers if is_op(node, Dequantize)), value)

    def _has_one_scale(self, value: str) -> bool:
        q = self._graph.qparams.get(value)
        return q is None or q.axis is None


def finite(array: Array) -> Array:
    """The infinities of a mask as numbers, which a layer may be given; NaN, which nothing reads in the end, as 0."""
    return array if array.dtype.kind != "f" or np.isfinite(array).all() else np.nan_to_num(array)


def _counting(exact: Graph) -> str | None:
    """The symbol that counts samples, where each value has them along axis 0 or is the same for all."""
    symbol = batch_symbol(exact)
    inside = {dim for kind in exact.types.values() for dim in kind.shape[1:] if isinstance(dim, str)}
    return None if any(symbol in size_of(dim).symbols for dim in inside) else symbol


def _is_comparable(kind: TensorType, counts: str | None) -> bool:
    """Whether what is sampled of a value has the same layout in the whole network and in a part of it."""
    symbol = dim_factors(kind.shape[0])[1] if kind.shape else None
    return kind.dtype != "bool" and (counts is None or symbol == counts)


def _ideal_key(graph: Graph, keys: Mapping[str, str], tensor: str, reads: Mapping[str, str]) -> str:
    rounded = sorted(
        f"{keys[name]} {graph.types[value].dtype} {graph.qparams.get(value)}" for name, value in reads.items()
    )
    return f"ideal {keys[tensor]} of {rounded}"


def _rows(batch: Chunk, types: Mapping[str, TensorType], tensors: Iterable[str]) -> list[int]:
    """Which samples of a batch to take: evenly spread, as many as there is room for whole tensors."""
    size = sum(types[name].nbytes for name in {*tensors})
    rows = batch.stop - batch.start
    count = max(1, min(_MOST_SAMPLES, rows, _MOST_BYTES // max(1, size)))
    return [index * rows // count for index in range(count)]


def _cuts(quantized: Quantized) -> dict[str, str]:
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
