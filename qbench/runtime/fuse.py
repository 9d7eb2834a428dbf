"""Which nodes run as one step: a product or sum with the bias, requantize, summand and clamps that follow it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Epilogue
from qbench.ops.float.elementwise import Add, Multiply

_OF_TWO = {Add.name: Epilogue.ADD, Multiply.name: Epilogue.SCALE}
"""Ops whose other operand is made at run time as well: what they are to an op before them in a step."""


def follows_as(node: Node) -> Epilogue | None:
    """What a node is to an op before it in a step."""
    return _OF_TWO.get(node.op, OPS[node.op].epilogue)


@dataclass(frozen=True)
class Fused:
    """Nodes that run as one step, each but the first reading what the one before it made.

    Parameters
    ----------
    nodes
        In execution order.
    """

    nodes: tuple[Node, ...]

    @property
    def head(self) -> Node:
        """The node that the others follow."""
        return self.nodes[0]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the values that the step makes."""
        return self.nodes[-1].outputs

    @property
    def integers(self) -> str:
        """The value that its results are before they are made real; where they are not, its first output."""
        real = self.follower(Epilogue.DEQUANTIZE)
        return self.outputs[0] if real is None else real.inputs[0]

    def follower(self, what: Epilogue) -> Node | None:
        """The first node after the head that does this."""
        return next(iter(self.followers(what)), None)

    def followers(self, what: Epilogue) -> tuple[Node, ...]:
        """All nodes after the head that do this."""
        return tuple(node for node in self.nodes[1:] if follows_as(node) is what)

    def inputs(self, graph: Graph) -> tuple[str, ...]:
        """Names of the values that the step reads: no constants, nothing made inside, each name once."""
        inside = {name for node in self.nodes for name in node.outputs}
        read = dict.fromkeys(name for node in self.nodes for name in node.inputs)
        return tuple(name for name in read if name not in inside and name not in graph.constants)


def fuse(
    graph: Graph, keep: Collection[str] = (), takes: Callable[[str], Collection[Epilogue]] = lambda op: OPS[op].absorbs
) -> tuple[Fused, ...]:
    """Group the nodes of a graph into steps, in an order in which they can run.

    Parameters
    ----------
    graph
        Any graph.
    keep
        Values that must come out of a step: nothing is fused behind them. The graph's outputs always do.
    takes
        What a kernel can do behind an op, by the op's name: of that is fused what the op absorbs, and sums.
    """
    visible = {*graph.outputs, *keep}
    taken: set[str] = set()
    steps: dict[str, Fused] = {}  # by the name of the last node
    for node in graph.nodes:
        if node.name not in taken:
            chain = _chain(graph, node, visible, takes(node.op), taken)
            taken.update(member.name for member in chain)
            steps[chain[-1].name] = Fused(chain)
    return tuple(steps[node.name] for node in graph.nodes if node.name in steps)


def _chain(
    graph: Graph, head: Node, visible: Collection[str], can: Collection[Epilogue], taken: Collection[str]
) -> tuple[Node, ...]:
    absorbs = {*OPS[head.op].absorbs, Epilogue.ADD}
    chain, left = [head], [what for what in Epilogue if what in absorbs and what in can]
    while left and (follower := _only_follower(graph, chain[-1], visible)) is not None:
        what = follows_as(follower)
        if what is None or what not in left or follower.name in taken:  # two products may want the same sum
            break
        chain.append(follower)
        del left[: left.index(what) + (what is not Epilogue.CLAMP)]
    return tuple(chain)


def _only_follower(graph: Graph, node: Node, visible: Collection[str]) -> Node | None:
    """The one node that reads what a node makes, if its other operands are constants; or it adds a like value, or
    multiplies what was cast."""
    value = node.outputs[0]
    consumers = graph.consumers[value]
    if value in visible or len(consumers) != 1:
        return None
    (consumer,) = consumers
    if follows_as(consumer) is Epilogue.ADD:
        others = [name for name in consumer.inputs if name != value]
        alike = all(graph.types[name] == graph.types[value] and name not in graph.constants for name in others)
        return consumer if len(others) == 1 and alike else None
    if follows_as(consumer) is Epilogue.SCALE:
        whole = graph.types[consumer.output] == graph.types[value]
        return consumer if whole and follows_as(node) is Epilogue.CAST and len({*consumer.inputs}) == 2 else None
    fits = consumer.inputs[0] == value and all(name in graph.constants for name in consumer.inputs[1:])
    return consumer if fits else None
