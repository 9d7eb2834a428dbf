"""A program as a table that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbench.runtime.step import EXTERNAL, Place, Step

if TYPE_CHECKING:
    import pandas as pd

    from qbench.runtime.program import Program

__all__ = ["layout", "listing", "table"]


def layout(place: Place) -> str:
    """How a value lies in memory: element type, sizes in the order of the memory's axes, that order, gaps."""
    sizes = "x".join(map(str, place.shape)) or "scalar"
    order = "channels last" if place.axes == (0, 2, 3, 1) else f"axes {','.join(map(str, place.axes))}"
    axes = "" if place.axes == tuple(range(len(place.axes))) else f" {order}"
    gaps = "" if place.contiguous else " with gaps"
    return f"{place.dtype}{' codes' if place.flipped else ''} {sizes}{axes}{gaps}"


def table(program: Program) -> pd.DataFrame:
    """One row per step: what it stands for, reads and makes, its kernels, and where its first output lies."""
    import pandas as pd  # takes half a second, which a run need not wait for

    columns = ["step", "ops", "reads", "makes", "kernels", "layout", "buffer", "offset", "bytes", "macs", "reason"]
    return pd.DataFrame([_row(program, step) for step in program.steps], columns=pd.Index(columns))


def _row(program: Program, step: Step) -> tuple[object, ...]:
    graph = program.graph
    place = next((program.places[name] for name in step.outputs if name in program.places), None)
    return (
        step.name,
        tuple(graph.node(name).op for name in step.nodes),
        step.inputs,
        step.outputs,
        _kernels(step),
        layout(place) if place else "",
        place.buffer if place else None,
        _offset(program, place),
        place.nbytes if place else None,
        step.macs,
        step.reason,
    )


def _kernels(step: Step) -> tuple[str, ...]:
    return ("interpreter",) if step.reason else tuple(instruction.kernel.name for instruction in step.instructions)


def _offset(program: Program, place: Place | None) -> int | None:
    """In the arena; None in the caller's memory."""
    if place is None or program.offsets[place.buffer] == EXTERNAL:
        return None
    return int(program.offsets[place.buffer]) + place.offset


def listing(program: Program) -> str:
    """The program as text: a line for each step, then the memory it takes."""
    lines = [f"program {program.graph.name}: {len(program.steps)} steps"]
    for step in program.steps:
        lines.append(f"{step.name}: {' + '.join(program.graph.node(name).op for name in step.nodes) or 'layout'}")
        lines += [f"  reads {name}: {_where(program, name)}" for name in step.inputs]
        lines += [f"  makes {name}: {_where(program, name)}" for name in step.outputs]
        lines += [f"  by    {kernel}" for kernel in _kernels(step) or ("nothing: it is there already",)]
        if step.reason:
            lines.append(f"  since {step.reason}")
    values = sum(place.nbytes for place in program.places.values() if _offset(program, place) is not None)
    saved = f" ({program.arena_bytes / values:.0%})" if values else ""
    lines.append(f"arena: {program.arena_bytes:,} bytes for values of {values:,} bytes{saved}")
    return "\n".join(lines)


def _where(program: Program, name: str) -> str:
    if name in program.graph.constants:
        return "constant"
    if name not in program.places:
        return "an array"
    place = program.places[name]
    offset = _offset(program, place)
    return f"{layout(place)}, " + ("in the caller's memory" if offset is None else f"at {offset:,}")
