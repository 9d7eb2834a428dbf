"""A large model cut into stages, each planned by itself: weights are packed for one of them at a time."""

from collections.abc import Collection
from dataclasses import dataclass

from qbench.ir.batch import batch_symbol
from qbench.ir.build import build
from qbench.ir.graph import Graph, Node

_LARGE, _STAGE = 1 << 30, 1 << 28  # bytes of constants


@dataclass(frozen=True)
class Stage:
    """A part of a graph.

    Parameters
    ----------
    graph
        From values that earlier stages made to those that later ones read.
    observed
        The values that statistics are taken of.
    done
        What is carried until then and read no more.
    carried
        Bytes of one sample that are carried on.
    """

    graph: Graph
    observed: tuple[str, ...]
    done: frozenset[str]
    carried: int


def stages_of(graph: Graph, observed: Collection[str]) -> list[Stage]:
    """The stages of a graph with more than 1 GiB of constants, each with up to 256 MiB; none of any other.

    None, too, of one that leaves more open than the number of samples.
    """
    if not is_large(graph) or not _is_plain(graph):
        return []
    parts = _parts(graph)
    last = {value: number for number, nodes in enumerate(parts) for node in nodes for value in node.inputs}
    last |= dict.fromkeys(graph.outputs, len(parts))
    alive, stages, seen = set(graph.inputs), list[Stage](), set[str]()
    for number, nodes in enumerate(parts):
        made = [value for node in nodes for value in node.outputs]
        read = dict.fromkeys(v for node in nodes for v in node.inputs if v in graph.types and v not in graph.constants)
        given = {value: graph.types[value] for value in read if value not in made}
        wanted = tuple(v for v in (*given, *made) if v in observed and v not in seen)
        seen.update(wanted)
        outputs = [value for value in made if last.get(value, -1) > number]
        alive.update(outputs)
        done = frozenset(value for value in alive if last.get(value, -1) <= number)
        alive -= done
        part = build(f"stage {number}", given, outputs, nodes, graph.constants)
        stages.append(Stage(part, wanted, done, sum(graph.types[value].nbytes for value in alive)))
    return stages if seen >= {*observed} else []


def is_large(graph: Graph) -> bool:
    """Whether it has more than 1 GiB of constants, each counted once: what plans it as a whole is not done unasked."""
    held = {id(constant.array): constant.array.nbytes for constant in graph.constants.values()}
    return sum(held.values()) > _LARGE


def _is_plain(graph: Graph) -> bool:
    known = batch_symbol(graph)
    return all(isinstance(size, int) or size == known for kind in graph.types.values() for size in kind.shape)


def _parts(graph: Graph) -> list[list[Node]]:
    parts, size = [list[Node]()], 0
    for node in graph.nodes:
        needs = sum(graph.constants[name].array.nbytes for name in node.inputs if name in graph.constants)
        if parts[-1] and size + needs > _STAGE:
            parts.append([])
            size = 0
        parts[-1].append(node)
        size += needs
    return parts
