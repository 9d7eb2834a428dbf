"""A plan as a table that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbench.runtime.plan import Plan
from qbench.runtime.step import EXTERNAL, Place, Step

if TYPE_CHECKING:
    import pandas as pd


def layout(place: Place) -> str:
    """How a value lies in memory: element type, sizes in the order of the memory's axes, that order, gaps."""
    sizes = "x".join(map(str, place.shape)) or "scalar"
    order = "channels last" if place.axes == (0, 2, 3, 1) else f"axes {','.join(map(str, place.axes))}"
    axes = "" if place.axes == tuple(range(len(place.axes))) else f" {order}"
    gaps = "" if place.contiguous else " with gaps"
    return f"{place.dtype}{' codes' if place.flipped else ''} {sizes}{axes}{gaps}"


def table(plan: Plan) -> pd.DataFrame:
    """One row per step: what it stands for, reads and makes, its kernels, and where its first output lies."""
    import pandas as pd  # takes half a second, which a run need not wait for

    columns = ["step", "ops", "reads", "makes", "kernels", "layout", "buffer", "offset", "bytes", "macs", "reason"]
    return pd.DataFrame([_row(plan, step) for step in plan.steps], columns=pd.Index(columns))


def _row(plan: Plan, step: Step) -> tuple[object, ...]:
    graph = plan.graph
    place = next((plan.places[name] for name in step.outputs if name in plan.places), None)
    return (
        step.name,
        tuple(graph.node(name).op for name in step.nodes),
        step.inputs,
        step.outputs,
        _kernels(step),
        layout(place) if place else "",
        place.buffer if place else None,
        _offset(plan, place),
        place.nbytes if place else None,
        step.macs,
        step.reason,
    )


def _kernels(step: Step) -> tuple[str, ...]:
    return ("interpreter",) if step.reason else tuple(instruction.kernel.name for instruction in step.instructions)


def _offset(plan: Plan, place: Place | None) -> int | None:
    """In the arena; None in the caller's memory."""
    if place is None or plan.offsets[place.buffer] == EXTERNAL:
        return None
    return int(plan.offsets[place.buffer]) + place.offset


def listing(plan: Plan) -> str:
    """The plan as text: a line for each step, then the memory it takes."""
    lines = [f"program {plan.graph.name}: {len(plan.steps)} steps"]
    for step in plan.steps:
        lines.append(f"{step.name}: {' + '.join(plan.graph.node(name).op for name in step.nodes) or 'layout'}")
        lines += [f"  reads {name}: {_where(plan, name)}" for name in step.inputs]
        lines += [f"  makes {name}: {_where(plan, name)}" for name in step.outputs]
        lines += [f"  by    {kernel}" for kernel in _kernels(step) or ("nothing: it is there already",)]
        if step.reason:
            lines.append(f"  since {step.reason}")
    values = sum(place.nbytes for place in plan.places.values() if _offset(plan, place) is not None)
    saved = f" ({plan.arena_bytes / values:.0%})" if values else ""
    lines.append(f"arena: {plan.arena_bytes:,} bytes for values of {values:,} bytes{saved}")
    return "\n".join(lines)


def _where(plan: Plan, name: str) -> str:
    if name in plan.graph.constants:
        return "constant"
    if name not in plan.places:
        return "an array"
    place = plan.places[name]
    offset = _offset(plan, place)
    return f"{layout(place)}, " + ("in the caller's memory" if offset is None else f"at {offset:,}")
