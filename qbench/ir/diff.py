"""What differs between two graphs, aligned by names and provenance rather than by lines of text."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from qbench.ir.align import align
from qbench.ir.graph import Graph, Node, check_graph, print_attr, print_node, print_qparams, value_line

Kind = Literal["same", "changed", "added", "removed"]
Section = Literal["input", "node", "constant", "output"]
_MARKS: dict[Kind, str] = {"same": "  ", "changed": "! ", "added": "+ ", "removed": "- "}
_CONTEXT = 2
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs: ``op``, ``inputs``, ``strides``, ``type of y``, ``values``... and both its states."""

    what: str
    left: str
    right: str

    def __str__(self) -> str:
        first = next((i for i, (a, b) in enumerate(zip(self.left, self.right, strict=False)) if a != b), 0)
        return f"{self.what}: {_window(self.left, first)} -> {_window(self.right, first)}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An input, node, constant or output of one graph beside its counterpart in the other.

    Parameters
    ----------
    section, kind
        What it is, and what became of it.
    left_name, right_name
        Its names; None on the side where it is missing.
    left, right
        Its lines of IR text, abbreviated; empty on the side where it is missing.
    changes
        What differs, where kind is ``changed``.
    related
        For a removed node, the nodes on the right that name one of its sources as theirs: what it was merged into. For
        an added node, those on the left that it was made from.
    """

    section: Section
    kind: Kind
    left_name: str | None
    right_name: str | None
    left: str = ""
    right: str = ""
    changes: tuple[Change, ...] = ()
    related: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "changed":
            return "\n".join([f"- {self.left}", f"+ {self.right}", *(f"    {change}" for change in self.changes)])
        line = _MARKS[self.kind] + (self.right or self.left)
        if not self.related:
            return line
        return f"{line}\n    {'merged into' if self.kind == 'removed' else 'made from'} {', '.join(self.related)}"


@dataclass(frozen=True, slots=True)
class GraphDiff:
    """All inputs, nodes, constants and outputs of two graphs, side by side in execution order."""

    left: str
    right: str
    entries: tuple[Entry, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but, perhaps, the order of the nodes."""
        return all(entry.kind == "same" for entry in self.entries)

    def of(self, *kinds: Kind, section: Section | None = None) -> tuple[Entry, ...]:
        """The entries of these kinds (of any, where none is given) and of that section."""
        return tuple(e for e in self.entries if (not kinds or e.kind in kinds) and section in (None, e.section))

    def __str__(self) -> str:
        count = Counter(entry.kind for entry in self.of(section="node"))
        summary = ", ".join(f"{count[kind]} {kind}" for kind in _MARKS)
        return "\n".join([f"--- {self.left}", f"+++ {self.right}", f"nodes: {summary}", *self._lines()]) + "\n"

    def _lines(self) -> Iterator[str]:
        differs = [entry.kind != "same" for entry in self.entries]
        skipped = 0
        for index, entry in enumerate(self.entries):
            if not any(differs[max(0, index - _CONTEXT) : index + _CONTEXT + 1]):
                skipped += 1
                continue
            if skipped:
                yield f"  ... {skipped} the same"
            skipped = 0
            yield str(entry)
        if skipped:
            yield f"  ... {skipped} the same"


def diff(left: Graph, right: Graph) -> GraphDiff:
    """Compare two graphs.

    Two nodes are counterparts where their names are equal, else where they make a value of the same name, else where
    they come from the same source node. Two constants are where their names are equal, else where their content is.

    Parameters
    ----------
    left, right
        Before and after.

    Returns
    -------
    GraphDiff
        Line by line, what stayed, changed, came and went; it prints.
    """
    for graph in (left, right):
        check_graph(graph)
    values = _values(left, right)
    sections = [
        *values("input", left.inputs, right.inputs),
        *_nodes(left, right),
        *values("constant", tuple(left.constants), tuple(right.constants)),
        *values("output", left.outputs, right.outputs),
    ]
    return GraphDiff(left.name, right.name, tuple(sections))


def _nodes(left: Graph, right: Graph) -> Iterator[Entry]:
    became, was = _by_source(right), _by_source(left)
    for a, b in align([_node_keys(n) for n in left.nodes], [_node_keys(n) for n in right.nodes]):
        old = None if a is None else left.nodes[a]
        new = None if b is None else right.nodes[b]
        old_line = "" if old is None else print_node(left, old)
        new_line = "" if new is None else print_node(right, new)
        if old is not None and new is not None:
            changes = tuple(_node_changes(left, old, right, new))
            yield Entry("node", "changed" if changes else "same", old.name, new.name, old_line, new_line, changes)
        elif old is not None:
            yield Entry("node", "removed", old.name, None, old_line, related=_related(old, became))
        elif new is not None:
            yield Entry("node", "added", None, new.name, "", new_line, related=_related(new, was))


def _node_keys(node: Node) -> Sequence[Sequence[Hashable]]:
    kind = node.op.rpartition(".")[2]  # nn.dense, qnn.dense and integer.dense are the same thing at different stages
    origins = node.sources or (node.name,)
    return (node.name,), node.outputs, [(kind, origin) for origin in origins], origins


def _by_source(graph: Graph) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for source in node.sources:
            found[source].append(node.name)
    return found


def _related(node: Node, by_source: dict[str, list[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for source in node.sources for name in by_source.get(source, ())))


def _node_changes(left: Graph, old: Node, right: Graph, new: Node) -> Iterator[Change]:
    for what in ("name", "op", "inputs", "outputs", "sources", "reason"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            yield Change(what, _listed(before), _listed(after))
    for key in dict.fromkeys((*old.attrs, *new.attrs)):
        before = print_attr(old.attrs[key]) if key in old.attrs else "default"
        after = print_attr(new.attrs[key]) if key in new.attrs else "default"
        if before != after:
            yield Change(key, before, after)
    for a, b in zip(old.outputs, new.outputs, strict=False):
        yield from _value_changes(left, a, right, b)


def _value_changes(left: Graph, a: str, right: Graph, b: str) -> Iterator[Change]:
    if left.types[a] != right.types[b]:
        yield Change(f"type of {b}", str(left.types[a]), str(right.types[b]))
    before, after = left.qparams.get(a), right.qparams.get(b)
    if before != after:
        short, full = (
            [print_qparams(q, short=brief) if q else "none" for q in (before, after)] for brief in (True, False)
        )
        yield Change(f"qparams of {b}", *(short if short[0] != short[1] else full))


def _values(left: Graph, right: Graph) -> Callable[[Section, tuple[str, ...], tuple[str, ...]], Iterator[Entry]]:
    def keys(graph: Graph, name: str, other: Graph) -> Sequence[Sequence[Hashable]]:
        renamed = name in graph.constants and name not in other.constants
        return ((name,), (graph.constants[name].digest,)) if renamed else ((name,),)

    def entries(section: Section, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[Entry]:
        pairs = align([keys(left, name, right) for name in old], [keys(right, name, left) for name in new])
        for i, j in pairs:
            a, b = None if i is None else old[i], None if j is None else new[j]
            old_line = "" if a is None else value_line(left, a, short=True)
            new_line = "" if b is None else value_line(right, b, short=True)
            changes: list[Change] = []
            if a is not None and b is not None:
                if a != b:
                    changes.append(Change("name", a, b))
                changes += _value_changes(left, a, right, b)
                if section == "constant" and left.constants[a] != right.constants[b]:
                    changes.append(Change("values", left.constants[a].digest[:12], right.constants[b].digest[:12]))
            kind: Kind = "removed" if b is None else "added" if a is None else "changed" if changes else "same"
            yield Entry(section, kind, a, b, old_line, new_line, tuple(changes))

    return entries


def _listed(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else f"({', '.join(value)})"


def _window(text: str, first: int) -> str:
    """At most `_WIDEST` characters of a text, from a little before its first difference."""
    if len(text) <= _WIDEST:
        return text
    start = max(0, min(first - _WIDEST // 3, len(text) - _WIDEST))
    end = start + _WIDEST
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"
