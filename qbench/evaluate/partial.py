"""Running only what is asked for and not yet known."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from qbench.data.dataset import Chunk
from qbench.evaluate.cache import ValueCache
from qbench.ir.op import Array
from qbench.ir.types import TensorType
from qbench.progress import Cancel
from qbench.runtime.port import apart
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs


@dataclass(frozen=True)
class Partial:
    """What was wanted of a chunk: whole values, samples of values, and the nodes that had to run for them."""

    arrays: Mapping[str, Array]
    samples: Mapping[str, Array]
    nodes: frozenset[str]


def partial_run(
    programs: Programs,
    keys: Mapping[str, str],
    chunk: Chunk,
    wanted: Collection[str],
    cache: ValueCache,
    keep: Collection[str],
    threads: int | None = None,
    cancel: Cancel | None = None,
    sample: Mapping[str, int] | None = None,
) -> Partial:
    """Run one chunk of data as far as is needed: a step runs if a wanted value needs it and the cache has it not.

    Parameters
    ----------
    programs, keys
        Of one graph; see :func:`~qbench.evaluate.keys.value_keys`.
    chunk
        What to feed; it is not read where nothing needs it.
    wanted
        Names of values; the programs must make them.
    cache
        Where known values come from.
    keep
        Names of the values that go to the cache when they are made, if any step makes them.
    threads, cancel
        As for :meth:`~qbench.runtime.program.Program.run`.
    sample
        Names of more values, of which every so many elements are wanted: see `~qbench.runtime.program.Program.run`.
        These always go to the cache.
    """
    sample = sample or {}
    sampled = {name: cache.get((keys[name], chunk.digest, every)) for name, every in sample.items()}
    there = {name: array for name, array in sampled.items() if array is not None}
    if len(there) == len(sample) and (whole := _all_known(keys, chunk.digest, wanted, cache)) is not None:
        return Partial(whole, there, frozenset())  # where data has a size of its own, a plan would be for nothing
    program = programs.of(chunk.feeds)
    constants = {name: constant.array for name, constant in program.graph.constants.items()}
    missing = {name for name, array in sampled.items() if array is None}
    known, made, nodes, needed = _what_to_do(program, keys, chunk.digest, {*wanted, *missing}, cache, constants)
    if made.difference(known):
        whole = {name for name in made if name in wanted or name in keep or name in program.graph.outputs}
        kept = [name for name in program.graph.activations() if name in whole or name in made & missing]
        some = {name: sample[name] for name in kept if name not in whole}
        if not {*program.graph.outputs} <= {*known} | needed:
            needed |= {*program.graph.inputs}  # a run makes every output that it is not given
        feeds = {name: chunk.feeds[name] for name in program.graph.inputs if name in needed}
        results = program.run(feeds, start=known, keep=kept, sample=some, threads=threads, cancel=cancel, finite=False)
        for name in whole:
            if name in keep and _is_finite(results[name]):  # what a run starts from is quantized unseen
                cache.put((keys[name], chunk.digest), results[name])
        sampled |= {name: results.pop(name) for name in some}
        known = results | known
    for name in missing:
        found = sampled[name]
        if found is None:
            kind, count = program.graph.types[name], chunk.stop - chunk.start
            found = sample_of(_value(name, known, constants, chunk), kind, count, sample[name])
        cache.put((keys[name], chunk.digest, sample[name]), found)
        sampled[name] = found
    samples = {name: array for name, array in sampled.items() if array is not None}
    return Partial({name: _value(name, known, constants, chunk) for name in wanted}, samples, nodes)


def _all_known(
    keys: Mapping[str, str], digest: str, wanted: Collection[str], cache: ValueCache
) -> dict[str, Array] | None:
    """The wanted values, where the cache has each."""
    found = dict[str, Array]()
    for name in wanted:
        array = cache.get((keys[name], digest)) if name in keys else None
        if array is None:
            return None
        found[name] = array
    return found


def _what_to_do(
    program: Program,
    keys: Mapping[str, str],
    digest: str,
    wanted: Collection[str],
    cache: ValueCache,
    constants: Collection[str],
) -> tuple[dict[str, Array], set[str], frozenset[str], set[str]]:
    """What the cache knows of the values that are needed, the values that steps must make, their nodes, all needs."""
    needed, made, nodes = {*wanted}, set[str](), set[str]()
    known: dict[str, Array] = {}

    def look_up(name: str) -> bool:
        given = name not in keys or name in constants or name in program.graph.inputs
        array = None if given else cache.get((keys[name], digest))
        if array is not None:
            known[name] = array
        return array is not None

    for step in reversed(program.steps):
        outputs = needed.intersection(step.outputs)
        if outputs - {name for name in outputs if look_up(name)}:
            made |= {name for name in step.outputs if name in keys}
            nodes |= {*step.nodes}
            needed |= {*step.inputs}
    for name in program.graph.outputs:
        if name not in needed:
            look_up(name)
    return known, made, frozenset(nodes), needed


def _value(name: str, known: Mapping[str, Array], constants: Mapping[str, Array], chunk: Chunk) -> Array:
    return known[name] if name in known else constants[name] if name in constants else chunk.feeds[name]


def sample_of(array: Array, kind: TensorType, count: int, every: int) -> Array:
    """Every so many elements of each of so many samples: what a program gives of a value that it makes."""
    split = apart(array, kind, count)
    split = split[:, None] if split.ndim == 1 else split
    places = np.unravel_index(np.arange(0, math.prod(split.shape[1:]), every), split.shape[1:])
    return np.ascontiguousarray(split[(slice(None), *places)])  # without a copy of what may be a transposed view


def _is_finite(array: Array) -> bool:
    return array.dtype.kind in "biu" or bool(np.isfinite(array).all())
