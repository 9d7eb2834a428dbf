"""What TFLite's operators take in: the bias, the requantize and the activation that follow a node alone."""

from dataclasses import dataclass

from qbench.exporters.tflite.writer import Inexpressible, Writer
from qbench.ir.graph import Graph, Node
from qbench.ir.op import bind, is_op
from qbench.ops.float.activation import Relu
from qbench.ops.float.dense import BiasAdd
from qbench.ops.qnn.requantize import QnnRequantize
from qbench.quant.activations import ACTIVATION_BOUNDS, activation_bounds
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import rounding_of

_FUSABLE = ("RELU", "RELU_N1_TO_1", "RELU6")
_FUSABLE_INT16 = ("RELU", "RELU6")
"""LiteRT has no kernel for the other one by itself."""


@dataclass(frozen=True)
class Followers:
    """The nodes that one operator stands for after its head.

    Parameters
    ----------
    output
        What the last of them makes.
    bias
        Name of the bias.
    activation
        TFLite's name of the fused activation, or NONE.
    """

    output: str
    bias: str | None = None
    activation: str = "NONE"


def followers(writer: Writer, head: Node) -> Followers:
    """Find what follows a sum of products (or of another op: its activation), and mark it as written."""
    graph, last = writer.graph, head
    bias, wide = None, head.output in graph.qparams and graph.qparams[head.output].dtype in ("int32", "int64")
    after = _alone(graph, last)
    if after is not None and is_op(after, BiasAdd) and after.inputs[1] in graph.constants and bind(head).has_weight():
        bias, last = after.inputs[1], after
        writer.done.add(after.name)
        after = _alone(graph, last)
    if wide:
        if after is None or not is_op(after, QnnRequantize):
            raise Inexpressible("a sum of products that is not narrowed at once")
        check_rounding(after, head.op)
        last = after
        writer.done.add(after.name)
        read, made = (graph.qparams[value].dtype for value in (head.inputs[0], after.output))
        if ("16" in read) != ("16" in made):
            told = 'keep it in float, or give both one dtype (preset="int8" does)'
            raise Inexpressible(f"{made} of {read} data, while kernels make as many bits as they read: {told}")
        after = _alone(graph, last)
    activation = None if after is None else activation_of(writer, after)
    if after is not None and activation is not None:
        writer.done.add(after.name)
        return Followers(after.output, bias, activation)
    return Followers(last.output, bias)


def check_rounding(node: Node, head: str) -> None:
    """Raise Inexpressible where a node does not round as TFLite does after an op of that name."""
    rounding: Rounding = getattr(bind(node), "rounding")  # noqa: B009
    wanted = rounding_of("tflite", head)
    if rounding != wanted:
        raise Inexpressible(f"the rounding {rounding}: TFLite's is {wanted}")


def activation_of(writer: Writer, node: Node) -> str | None:
    """The fused activation that a clip or relu is; None where it is none."""
    bounds = bind(node).bounds
    if bounds is None:
        return None
    q = writer.q(node.output)
    if is_op(node, Relu):
        return "RELU"
    low, high = bounds
    if q is None:
        return next((name for name in _FUSABLE if ACTIVATION_BOUNDS[name] == (low, high)), None)
    smallest, largest = writer.bounds(node.output)
    offset = writer.offset(node.output)
    inside = max(int(low) - offset, smallest), min(int(high) - offset, largest)
    names = _FUSABLE if q.dtype != "int16" else _FUSABLE_INT16
    return next((name for name in names if activation_bounds(name, q) == inside), None)


def _alone(graph: Graph, node: Node) -> Node | None:
    """The one node that reads what a node makes, where nothing else needs it."""
    if node.output in graph.outputs or len(graph.consumers[node.output]) != 1:
        return None
    reader = graph.consumers[node.output][0]
    return reader if reader.inputs[0] == node.output else None
