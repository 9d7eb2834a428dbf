"""Where runs may start again: the few values of a program that are worth keeping whole."""

from collections.abc import Iterator

from qbench.runtime.program import Program

_STRETCHES = 16
_MACS_PER_ELEMENT = 32  # multiplied and added in about the time that it takes to write one


def checkpoints(program: Program, budget: int) -> frozenset[str]:
    """Values to keep, so that a run after an edit need not repeat much more than what the edit made stale.

    A program is cut into stretches that take about as long as each other. In each, what crosses the place where the
    fewest bytes are alive is kept: the narrow end of a bottleneck, say, rather than what is within.

    Parameters
    ----------
    program
        Any.
    budget
        Bytes for one sample; the stretches whose places take most are left out.
    """
    sizes = {name: _nbytes(program, name) for step in program.steps for name in step.outputs if name in program.places}
    total = sum(_cost(program))
    best: dict[int, tuple[int, frozenset[str]]] = {}
    spent = 0
    for cost, alive in zip(_cost(program), _alive(program), strict=True):
        spent += cost
        stretch, size = _STRETCHES * spent // (total + 1), sum(map(sizes.__getitem__, alive))
        if alive and (stretch not in best or size < best[stretch][0]):
            best[stretch] = size, frozenset(alive)
    kept = set[str]()
    for _, names in sorted(best.values(), key=lambda entry: entry[0]):
        if sum(map(sizes.__getitem__, kept | names)) <= budget:
            kept |= names
    return frozenset(kept)


def _alive(program: Program) -> Iterator[set[str]]:
    """After each step, the values made by then that later steps read; what is alive is one set, that changes."""
    graph = program.graph
    original: dict[str, str] = {}  # of copies in another layout
    for step in program.steps:
        original |= {copy: original.get(step.inputs[0], step.inputs[0]) for copy in step.outputs if not step.nodes}
    last = {original.get(name, name): number for number, step in enumerate(program.steps) for name in step.inputs}
    ends: dict[int, list[str]] = {}
    for name, number in last.items():
        ends.setdefault(number, []).append(name)
    alive = set[str]()
    for number, step in enumerate(program.steps):
        alive.difference_update(ends.get(number, ()))
        alive.update(name for name in step.outputs if name in graph.types and last.get(name, -1) > number)
        yield alive


def _cost(program: Program) -> list[int]:
    places = program.places
    made = [sum(places[name].nbytes for name in step.outputs if name in places) for step in program.steps]
    return [step.macs // _MACS_PER_ELEMENT + size for step, size in zip(program.steps, made, strict=True)]


def _nbytes(program: Program, name: str) -> int:
    kind = program.graph.types.get(name)
    return 0 if kind is None else kind.nbytes
