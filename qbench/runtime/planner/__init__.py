"""From a graph to a program: fuse, choose layouts, place, and make the instructions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import qbench.ops  # pyright: ignore[reportUnusedImport] fills the registry that bind() reads
import qbench.runtime.lowerings  # noqa: F401  # pyright: ignore[reportUnusedImport] fills LOWERINGS
from qbench.errors import GraphError, nearest, shown
from qbench.forms.recurrences import with_stored_recurrences
from qbench.ir.batch import batch_symbol
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.ir.specialize import specialize
from qbench.kernels.levels import Level, current
from qbench.ops.legal import legal
from qbench.ops.products import macs
from qbench.runtime.lowerings.copy import copy_instructions, fill_instructions
from qbench.runtime.lowerings.lowering import Site
from qbench.runtime.memory import GUARDED
from qbench.runtime.plan import Plan
from qbench.runtime.planner.arena import Lifetime, arrange, spread
from qbench.runtime.planner.chains import find_chains, linked, side_by_side
from qbench.runtime.planner.fold import fold
from qbench.runtime.planner.lay_out import Copy, Laid, LaidOut, lay_out
from qbench.runtime.planner.place_all import Placement, place_all
from qbench.runtime.planner.tasks import tasks
from qbench.runtime.step import EXTERNAL, Step


def make_plan(
    graph: Graph,
    *,
    keep: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    level: Level | None = None,
) -> Plan:
    """Lay a graph out for this machine: fused steps, packed weights, one arena.

    Parameters
    ----------
    graph, keep, sizes, level
        As for :func:`qbench.plan`.

    Raises
    ------
    GraphError
        An open size without a number, or `keep` names no value.
    DataError
        Sizes that the graph does not take.
    """
    graph, keep, level = legal(with_stored_recurrences(graph)), tuple(keep), current() if level is None else level
    for name in keep:
        if name not in graph.types:
            raise GraphError(f"the graph has no value {shown(name)} to keep{nearest(name, graph.types)}")
    sizes, symbol = dict(sizes or {}), batch_symbol(graph)
    if symbol is not None and symbol not in sizes:
        open_batch = fold(specialize(graph, {symbol: symbol, **sizes}), keep)
        fixed = fold(specialize(open_batch, {symbol: 1}), (*graph.outputs, *keep))
    else:
        open_batch = fixed = fold(specialize(graph, sizes), keep)
    laid_out = lay_out(fixed, tasks(fixed, keep, level))
    placement = place_all(laid_out)
    candidates = find_chains(laid_out)
    for chain in candidates:
        laid_out.steps[:] = side_by_side(laid_out.steps, chain)
    lowered = [_lower(step, laid_out, placement) for step in laid_out.steps]
    spans = _spans(laid_out, candidates, lowered)
    offsets, arena_bytes, gaps = _arrange(placement, lowered, spans)
    return Plan(
        graph=open_batch,
        single=fixed,
        steps=tuple(done.step for done in lowered),
        chains=tuple(tuple(done.step for done in lowered[first : last + 1]) for first, last in spans),
        places=placement.places,
        borders={
            name: tuple(fill_instructions(placement.places[name], layout))
            for name, layout in laid_out.layouts.items()
            if any(layout.border) and name in placement.places
        },
        inputs={name: placement.places[name].buffer for name in graph.inputs},
        outputs={
            name: placement.places[name].buffer for name in graph.outputs if name in laid_out.external - {*graph.inputs}
        },
        offsets=offsets,
        arena_bytes=arena_bytes,
        gaps=gaps,
        constants=tuple(array for done in lowered for array in done.constants),
        lowerings=tuple(step.task.lowering for step in laid_out.steps if isinstance(step, Laid)),
    )


class _Lowered(NamedTuple):
    step: Step
    scratch: tuple[int, ...]
    constants: Sequence[Array]


def _lower(step: Copy | Laid, laid_out: LaidOut, placement: Placement) -> _Lowered:
    places, graph = placement.places, laid_out.graph
    if isinstance(step, Copy):
        made = copy_instructions(places[step.source], places[step.target], laid_out.layouts[step.target])
        return _Lowered(Step(step.target, (), (step.source,), (step.target,), tuple(made)), (), ())
    task = step.task
    here = {name: places[place] for name, place in step.reads.items()}
    here |= {name: places[name] for name in task.step.outputs}
    for name, layout in (*step.layouts.inputs.items(), *step.layouts.outputs.items()):
        if layout is not None:
            here[name] = here[name].ordered(layout.axes)
    instructions, pointers, scratch, constants = (), dict[str, tuple[int, ...]](), list[int](), list[Array]()
    if (lowering := task.lowering) is not None:
        site = Site(lowering.graph, here, laid_out.layouts, lowering.level, len(placement.sizes))
        instructions, pointers = lowering.lower(site), lowering.pointers
        scratch, constants = site.scratch, site.constants
    done = Step(
        name=task.step.head.name,
        nodes=tuple(node.name for node in task.step.nodes),
        inputs=tuple(step.reads[name] for name in task.inputs),
        outputs=task.step.outputs,
        instructions=instructions,
        macs=sum(macs(graph, node) for node in task.step.nodes),
        reason=task.reason,
        pointers={step.reads[name]: sizes for name, sizes in pointers.items()},
    )
    return _Lowered(done, tuple(placement.buffer(size) for size in scratch), constants)


def _spans(
    laid_out: LaidOut, candidates: Sequence[Sequence[Laid]], lowered: Sequence[_Lowered]
) -> list[tuple[int, int]]:
    """First and last step of each chain whose instructions pass on rows."""
    starts = [(laid_out.steps.index(chain[0]), len(chain)) for chain in candidates]
    return [
        (start + first, start + last)
        for start, count in starts
        for first, last in linked([done.step for done in lowered[start : start + count]])
    ]


def _arrange(
    placement: Placement, lowered: Sequence[_Lowered], spans: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int64], int, tuple[tuple[int, int], ...]]:
    """Offsets of the buffers in the arena, its size, its gaps; a buffer lives while its steps or their chains do."""
    chain_of = {number: span for span in spans for number in range(span[0], span[1] + 1)}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, (step, scratch, _) in enumerate(lowered):
        for buffer in {placement.places[name].buffer for name in (*step.inputs, *step.outputs)}.union(scratch):
            begin, last[buffer] = chain_of.get(number, (number, number))
            first.setdefault(buffer, begin)
    lifetimes = [
        Lifetime(size, first.get(buffer, 0), last.get(buffer, 0)) for buffer, size in enumerate(placement.sizes)
    ]
    offsets, total, gaps = spread(lifetimes) if GUARDED else (*arrange(lifetimes), ())
    external = [EXTERNAL if number in placement.external else offset for number, offset in enumerate(offsets)]
    return np.asarray(external, np.int64), total, gaps
