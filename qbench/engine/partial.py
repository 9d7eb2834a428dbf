"""Running only what is asked for and not yet known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from qbench.engine.cache import ValueCache
from qbench.engine.dataset import Chunk
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs

__all__ = ["Partial", "partial_run"]


@dataclass(frozen=True)
class Partial:
    """The arrays of the values that were wanted, and the names of the nodes that had to run for them."""

    arrays: Mapping[str, Array]
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
) -> Partial:
    """Run one chunk of data as far as is needed: a step runs if a wanted value needs it and the cache has it not.

    Parameters
    ----------
    programs, keys
        Of one graph; see :func:`~qbench.engine.keys.value_keys`.
    chunk
        What to feed.
    wanted
        Names of values; the programs must make them.
    cache
        Where known values come from.
    keep
        Names of the values that go to the cache when they are made, if any step makes them.
    threads, cancel
        As for :meth:`~qbench.runtime.program.Program.run`.
    """
    program = programs.of(chunk.feeds)
    graph = program.graph
    given = {**chunk.feeds, **{name: constant.array for name, constant in graph.constants.items()}}
    known, made, nodes = _what_to_do(program, keys, chunk.digest, wanted, cache, given)
    if made.difference(known):
        kept = [name for name in graph.activations() if name in made and (name in wanted or name in keep)]
        results = program.run(chunk.feeds, start=known, keep=kept, threads=threads, cancel=cancel)
        for name in kept:
            if name in keep and _is_finite(results[name]):  # a run takes no others to start from
                cache.put((keys[name], chunk.digest), results[name])
        known = results | known
    return Partial({name: known[name] if name in known else given[name] for name in wanted}, nodes)


def _what_to_do(
    program: Program,
    keys: Mapping[str, str],
    digest: str,
    wanted: Collection[str],
    cache: ValueCache,
    given: Collection[str],
) -> tuple[dict[str, Array], set[str], frozenset[str]]:
    """What the cache knows of the values that are needed, the values that steps must make, and their nodes."""
    needed, made, nodes = {*wanted}, set[str](), set[str]()
    known: dict[str, Array] = {}

    def look_up(name: str) -> bool:
        array = cache.get((keys[name], digest)) if name in keys and name not in given else None
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
            look_up(name)  # a run makes every output that it is not given
    return known, made, frozenset(nodes)


def _is_finite(array: Array) -> bool:
    return array.dtype.kind in "biu" or bool(np.isfinite(array).all())
